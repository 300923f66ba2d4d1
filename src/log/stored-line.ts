// What all stores of a line have in common.
//
// In: messages, and what a store says of each. Out: which of them are stored.
// Never: an answer to a message from before the last `end()`, or a message after one that was refused.
import { Subject } from 'rxjs';
import type { Head } from '../protocol/place.js';
import {
  extentOf,
  type LineExtent,
  lineLimits,
  type LineRefusal,
  type LineStore,
  reaches,
  type Stored,
  StoreAway,
} from './line-store.js';

/** Nothing more is sent to a server that leaves so much unanswered: it hangs. */
const maxUnansweredBytes = 32 * 1024 * 1024;

/** Why a store doesn't have a message. */
export type Refused = Extract<Stored, { readonly refused: LineRefusal }>;

/** Messages that follow each other, and from where to read on. */
export interface Page<Key> {
  readonly messages: readonly Uint8Array[];
  readonly next: Key;
}

/** A line in a store. `Newest`: its last message. `Key`: what the store calls a message. */
export abstract class StoredLine<
  Newest extends { readonly head: Head | undefined } | undefined,
  Key,
> implements LineStore {
  readonly #reports$ = new Subject<Stored>();
  readonly stored$ = this.#reports$.asObservable();
  /** The newest message, stored or on its way. */
  protected sent: Head | undefined;
  /** Why nothing more is stored. */
  #refused: Refused | undefined;
  #toldGen = 0;
  /** Counts the calls of `end`. */
  #turn = 0;
  #unansweredBytes = 0;
  #answers = 0;
  /** Runs while an answer is missing. */
  #silence: NodeJS.Timeout | undefined;
  /** Where the last `read` has ended. */
  #tail: { readonly offset: number; readonly key: Key } | undefined;

  async end(): Promise<Head | undefined> {
    const newest = await this.newest();
    this.#turn += 1;
    this.#refused = undefined;
    this.sent = newest?.head;
    this.follow(newest);
    return this.sent;
  }

  append(head: Head, bytes: Uint8Array, only?: 'store' | 'live'): void {
    if (!this.isConnected || this.#unansweredBytes > maxUnansweredBytes) return this.#away('The store is disconnected');
    const isStored = only !== 'live' && this.#refused === undefined;
    const problem = isStored ? misplaced(this.sent, head) : undefined;
    if (problem === 'stored') return this.#reports$.next({ upTo: head.offset + head.count });
    if (problem === 'fenced')
      this.#refuse({ refused: 'fenced', error: new Error(`Generation ${this.sent?.gen} continues the line`) });
    try {
      if (isStored && this.#refused === undefined) {
        void this.hear(head, this.store(head, bytes, only === 'store'), bytes.byteLength);
        this.sent = head;
      } else this.#unstored(head, bytes, only);
    } catch (error) {
      // The client can't send it: it's too large.
      this.#refuse({ refused: 'full', error });
    }
  }

  async *read(from: number, signal: AbortSignal, isNext = false): AsyncIterable<Uint8Array> {
    const tail = isNext && this.#tail?.offset === from ? this.#tail : undefined;
    this.#tail = undefined;
    let key = tail?.key ?? (await this.find((head) => reaches(head, from)))?.key;
    let last: Uint8Array | undefined;
    for await (const { messages, next } of key === undefined ? [] : this.pages(key, signal)) {
      for (const bytes of messages) {
        if (signal.aborted) return;
        yield (last = bytes);
      }
      key = next;
    }
    const offset = last === undefined ? tail?.offset : endOf(this.headOf(last));
    if (key !== undefined && offset !== undefined) this.#tail = { offset, key };
  }

  async since(at: number): Promise<number | undefined> {
    return (await this.find((head) => head.at >= at))?.head.offset;
  }

  async extent(): Promise<LineExtent | undefined> {
    const first = await this.find(() => true);
    const last = first && (await this.last());
    return extentOf(first?.head, last, last === undefined ? 0 : await this.bytes());
  }

  abstract last(): Promise<Head | undefined>;
  abstract exists(): Promise<boolean>;

  protected abstract get isConnected(): boolean;
  /** Asks the server that decides about writes, and creates the store if it's missing. */
  protected abstract newest(): Promise<Newest>;
  /** The next message follows this one. */
  protected abstract follow(newest: Newest): void;
  /**
   * Stores a message after the last one, and publishes it unless that was done before. Rejects if there's no answer;
   * `undefined`: a later answer counts for this message, too.
   */
  protected abstract store(head: Head, bytes: Uint8Array, isAgain: boolean): Promise<Refused | undefined> | undefined;
  /** Publishes what the store doesn't take any more. Ends with the answer, if there is one. */
  protected abstract publish(bytes: Uint8Array, refused: LineRefusal): Promise<unknown> | undefined;
  /** Finds the first message with a property that all later ones have too. */
  protected abstract find(
    isFound: (head: Head) => boolean,
  ): Promise<{ readonly head: Head; readonly key: Key } | undefined>;
  /** Reads from a message to the newest. */
  protected abstract pages(from: Key, signal: AbortSignal): AsyncIterable<Page<Key>>;
  /** The size of all messages. */
  protected abstract bytes(): Promise<number>;
  protected abstract headOf(bytes: Uint8Array): Head | undefined;

  /** Handles the answer to a message, which counts for those before it. */
  protected async hear(
    { offset, count }: Head,
    answer: Promise<Refused | undefined> | undefined,
    bytes = 0,
  ): Promise<void> {
    if (answer === undefined) return;
    const turn = this.#turn;
    const refused = await this.#sent(bytes, answer).catch((error: unknown): Refused => ({ refused: 'away', error }));
    if (turn !== this.#turn || this.#refused !== undefined) return;
    if (refused === undefined) this.#reports$.next({ upTo: offset + count });
    else this.#refuse(refused);
  }

  /** Notices that the server hangs: one of many answers may take long, but then others come. */
  async #sent<T>(bytes: number, answer: Promise<T> | undefined): Promise<T | undefined> {
    this.#unansweredBytes += bytes;
    this.#silence ??= setTimeout(() => this.#silent(this.#answers), lineLimits.answerMs);
    try {
      return await answer;
    } finally {
      this.#answered(bytes);
    }
  }

  #answered(bytes: number): void {
    this.#answers += 1;
    this.#unansweredBytes -= bytes;
    if (this.#unansweredBytes === 0) this.#stopTimer();
    else this.#silence?.refresh();
  }

  #silent(answers: number): void {
    this.#stopTimer();
    // After a blocked event loop, answers may wait to be read.
    setImmediate(() => {
      if (answers === this.#answers) this.#away(`The store hasn't answered for ${lineLimits.answerMs} ms`);
    });
  }

  #stopTimer(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
  }

  #away(message: string): void {
    this.#refuse({ refused: 'away', error: new StoreAway(message) });
  }

  #refuse(refused: Refused): void {
    if (this.#refused !== undefined) return;
    this.#refused = refused;
    this.#toldGen = this.sent?.gen ?? 0;
    this.#reports$.next(refused);
  }

  #unstored({ gen }: Head, bytes: Uint8Array, only: 'store' | 'live' | undefined): void {
    const refused = this.#refused;
    if (only !== 'store') void this.#sent(bytes.byteLength, this.publish(bytes, refused?.refused ?? 'away'));
    // After a failed `end()`, the next generation doesn't know why nothing is stored.
    if (refused === undefined || gen <= this.#toldGen) return;
    this.#toldGen = gen;
    this.#reports$.next(refused);
  }
}

const endOf = (head: Head | undefined): number | undefined => head && head.offset + head.count;

/**
 * Why a message can't follow the last one: `stored` if the line has it, `fenced` if a later generation goes on. To
 * append it anyway would put the line out of order. The parts of a large record have the same offset.
 */
export const misplaced = (last: Head | undefined, { line, gen, offset }: Head): 'stored' | 'fenced' | undefined => {
  if (last?.line !== line || gen > last.gen) return undefined;
  if (gen < last.gen) return 'fenced';
  return offset < last.offset ? 'stored' : undefined;
};
