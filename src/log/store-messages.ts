// The messages of a log in a store, one after the other.
//
// In: where to begin, the store, and what the writer says live. Out: messages in order; at the end, none for now.
// Never: a message that only was on its way to the store, or a search where the next message follows.
import { firstValueFrom, merge, Subject, type Subscription, timer } from 'rxjs';
import { between, isAfter, nextOffset, type Place } from '../protocol/place.js';
import { type LineStore, liveSubject } from './line-store.js';
import { type LogHead, logHeadOf } from './log-message.js';
import type { Records } from './records.js';
import { isConnected$, type StoredLog } from './stored-log.js';

/** How often the end is asked for even if no writer says that there's more, in ms. */
const pollMs = 1_000;
/** The first and the longest wait for a message that was announced, in ms. */
const [firstWaitMs, maxWaitMs] = [4, 250];

/** A message; `head`: `undefined` if another program has published it. */
export interface StoredMessage {
  readonly head: LogHead | undefined;
  readonly bytes: Uint8Array;
}

/** What a writer has said last, and when, in epoch ms. */
interface Heard {
  readonly head: LogHead;
  readonly at: number;
}

type Locate = (store: LineStore) => Promise<number | undefined>;

/** `search`: it goes on at an offset. `reading`: messages follow. `waiting`: it begins, or follows what was read. */
type State =
  | { readonly name: 'waiting' }
  | { readonly name: 'search'; readonly from: number }
  | { readonly name: 'reading'; readonly messages: AsyncIterator<Uint8Array>; readonly from: number | undefined };

export class StoredMessages {
  readonly #store: LineStore;
  readonly #records: Pick<Records, 'position' | 'placeIn'>;
  readonly #locate: Locate;
  readonly #closed = new AbortController();
  readonly #wake$ = new Subject<void>();
  readonly #listening: Subscription;
  #state: State = { name: 'waiting' };
  /** What is known of the end of the log. */
  heard: Heard | undefined;
  #askedAt = -Infinity;
  #waitMs = firstWaitMs;
  /** Why nothing more can be heard. */
  #failure: { readonly error: unknown } | undefined;

  /**
   * @param records - what has been read
   * @param locate - returns the offset to begin with; `undefined` if there's no log yet
   */
  constructor({ engine, spec }: StoredLog, records: Pick<Records, 'position' | 'placeIn'>, locate: Locate) {
    this.#store = engine.line(spec);
    [this.#records, this.#locate] = [records, locate];
    const error = (thrown: unknown): void => {
      this.#failure ??= { error: thrown };
      this.#wake$.next();
    };
    const next = (bytes: Uint8Array) => this.#hear(logHeadOf(bytes));
    this.#listening = engine.subscribe(liveSubject(spec)).subscribe({ next, error });
    this.#listening.add(isConnected$({ engine }).subscribe({ error }));
  }

  close(): void {
    this.#closed.abort();
    this.#listening.unsubscribe();
    this.#wake$.next();
  }

  /** Resolves when there may be more to read, and once it's closed. */
  async woken(): Promise<void> {
    const ms = this.#isBehind() ? this.#waitMs : maxWaitMs;
    this.#waitMs = Math.min(2 * this.#waitMs, maxWaitMs);
    if (this.#failure === undefined && !this.#isClosed()) await firstValueFrom(merge(this.#wake$, timer(ms)));
  }

  /** Resolves with the next message, or with `undefined` at the end. Rejects if the store can't be read: it goes on later. */
  async next(): Promise<StoredMessage | undefined> {
    if (this.#failure !== undefined) throw this.#failure.error;
    try {
      for (let bytes = await this.#read(); bytes !== undefined; bytes = await this.#read()) {
        const head = logHeadOf(bytes);
        if (head === undefined || this.#isExpected(head)) return { head, bytes };
      }
      return undefined;
    } catch (error) {
      const from = this.#records.position?.offset;
      this.#state = from === undefined ? { name: 'waiting' } : { name: 'search', from };
      throw error;
    }
  }

  /** A request may take long. */
  #isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  async #read(): Promise<Uint8Array | undefined> {
    const state = this.#state.name === 'reading' ? this.#state : await this.#begin();
    if (state === undefined || this.#isClosed()) return undefined;
    this.#state = state;
    const next: IteratorResult<Uint8Array, undefined> = await state.messages.next();
    if (this.#isClosed()) return undefined;
    if (next.value === undefined) this.#state = { name: 'waiting' };
    else this.#waitMs = firstWaitMs;
    return next.value;
  }

  /** Begins to read, unless there's certainly nothing more. */
  async #begin() {
    const state = this.#state;
    const position = this.#records.position;
    if (state.name === 'search') return this.#readFrom(state.from);
    if (position === undefined) {
      const from = await this.#locate(this.#store);
      return from === undefined ? undefined : this.#readFrom(from);
    }
    const searched = await this.#look(position);
    if (searched !== undefined) return this.#readFrom(searched);
    const head = this.heard?.head;
    return head && isAhead(head, position) ? this.#readFrom(nextOffset(position, head), true) : undefined;
  }

  /** Asks for the end from time to time. Returns from where to search what wasn't heard; `undefined` if that's nothing. */
  async #look(position: Place): Promise<number | undefined> {
    if (Math.abs(performance.now() - this.#askedAt) < pollMs) return undefined;
    this.#askedAt = performance.now();
    const last = (await this.#store.last()) as LogHead | undefined;
    if (last === undefined) return undefined;
    return again(position, last) ?? (isAhead(last, position) ? nextOffset(position, last) : undefined);
  }

  #readFrom(from: number, isNext = false) {
    const messages = this.#store.read(from, this.#closed.signal, isNext)[Symbol.asyncIterator]();
    return { name: 'reading', messages, from: isNext ? undefined : from } as const;
  }

  /** Whether a writer has said that there's more. */
  #isBehind(): boolean {
    const position = this.#records.position;
    const head = this.heard?.head;
    return head !== undefined && (position === undefined || isAhead(head, position));
  }

  #hear(head: LogHead | undefined): void {
    // A writer that was replaced may still say something.
    if (head === undefined || (this.heard?.head.line === head.line && this.heard.head.gen > head.gen)) return;
    this.heard = { head, at: Date.now() };
    this.#wake$.next();
  }

  /** Whether a message is the next one, or after records that are certainly missing. Otherwise it's searched. */
  #isExpected(head: LogHead): boolean {
    const place = this.#records.placeIn(head);
    if (between(place, head).type === 'old') return this.#records.position === undefined;
    const from = again(place, head);
    // A search that ends where it began.
    const isMissing = this.#state.name === 'reading' && this.#state.from === from;
    if (from !== undefined && !isMissing) {
      this.#state = { name: 'search', from };
      return false;
    }
    // Until its writer says more, the message itself shows that it's alive.
    const heard = this.heard?.head.next;
    if (heard === undefined || isAhead(head, heard)) this.heard = { head, at: Date.now() };
    return true;
  }
}

/** Whether records come after a place, up to the end of a message. Another line is all of them. */
const isAhead = ({ next }: LogHead, place: Place): boolean => isAfter(next, place) ?? true;

/** From where to search what is missing before a message; `undefined` if that's nothing. */
const again = (place: Place | undefined, head: LogHead): number | undefined => {
  const answer = between(place, head);
  if (answer.type === 'hole') return answer.from;
  // The offsets of another line say nothing.
  return answer.type === 'other' ? 0 : undefined;
};
