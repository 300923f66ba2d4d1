import { setTimeout as delay } from 'node:timers/promises';
import { SizedQueue } from '../operators/bounded/ring.js';
import type { Head } from '../protocol/place.js';
import { isError } from '../protocol/type-guards.js';
import { type LineStore, type Stored, StoreAway } from './line-store.js';

interface Waiting {
  readonly head: Head;
  readonly data: Uint8Array;
  readonly bytes: number;
}

/** How much waits by default. Beyond that, the oldest is forgotten. Readers that lack it get a gap with its number. */
const defaultWaitingBytes = 16 * 1024 * 1024;
/** So much is kept although it's stored: a server can lose its memory before all readers have what it has confirmed. */
const maxStoredBytes = 2 * 1024 * 1024;
/** Between two attempts at a store that doesn't answer, or takes nothing, in ms. */
const [firstRetryMs, maxRetryMs] = [100, 2_000];

interface WriterHandlers {
  /** How large a message may be now. A server that was restarted may take less than before. */
  readonly maxBytes: () => number;
  readonly maxWaitingBytes?: number;
  /** The store has refused something, or answers again (`undefined`). */
  readonly refused: (error: unknown) => void;
  /** A later generation continues the line. */
  readonly fenced: (gen: number) => void;
}

/**
 * Appends one generation to a line, and sends again what the store has refused. `writing`: each message follows the one
 * before. `recovering`: it asks where the line ends, and messages are only heard live. `fenced`: another generation
 * continues the line. `closed`: it has ended.
 */
export class LineWriter {
  readonly #store: LineStore;
  readonly #handlers: WriterHandlers;
  /** The newest messages, of which the oldest may be stored. */
  readonly #messages = new SizedQueue<Waiting>();
  #state: 'writing' | 'recovering' | 'fenced' | 'closed' = 'writing';
  #timer: NodeJS.Timeout | undefined;
  /** The wait before the next attempt. None: the store has taken what it was sent. */
  #retryMs = 0;
  #storedUpTo = -Infinity;
  /** What the store said last, if it has refused something since it took something. */
  #refusal: unknown;

  constructor(store: LineStore, handlers: WriterHandlers) {
    this.#store = store;
    this.#handlers = handlers;
  }

  /** How many bytes the store doesn't have yet, as far as it has said so. */
  get waitingBytes(): number {
    const messages = this.#messages;
    let stored = 0;
    for (let n = 0; n < messages.size && endOf(messages.at(n).head) <= this.#storedUpTo; n += 1)
      stored += messages.at(n).bytes;
    return messages.bytes - stored;
  }

  /** @param isUnheard - whether live messages reach nobody */
  append(head: Head, data: Uint8Array, isUnheard = false): void {
    // When the store answers, it first gets those that wait.
    if (this.#state !== 'recovering') this.#store.append(head, data);
    else if (!isUnheard) this.#store.append(head, data, 'live');
    if (this.#state === 'fenced' || this.#state === 'closed') return;
    this.#messages.push({ head, data, bytes: data.byteLength });
    const { maxWaitingBytes = defaultWaitingBytes } = this.#handlers;
    while (this.#messages.bytes > maxWaitingBytes) this.#messages.shift();
  }

  /** Handles what the store says. */
  stored(stored: Stored): void {
    // While it finishes, the last answers still come.
    if ('upTo' in stored && !this.#isOver()) this.#forget(stored.upTo);
    this.#refusal = 'upTo' in stored ? undefined : stored.error;
    if (this.#state !== 'writing') return;
    if ('upTo' in stored) return this.#worked();
    if (stored.refused !== 'fenced') this.#handlers.refused(stored.error);
    this.#state = 'recovering';
    this.#tryLater();
  }

  /** The store can be reached again. It can have lost what it had confirmed: the copy of a server lags behind it. */
  retry(): void {
    if (this.#state === 'writing') this.#state = 'recovering';
    else if (this.#timer === undefined) return;
    this.#retryMs = 0;
    this.#tryLater();
  }

  /** Resolves once the store has all, or another generation goes on. Rejects with what it says if it doesn't in `ms`. */
  async finish(ms: number): Promise<void> {
    const until = performance.now() + ms;
    for (this.#retryMs = firstRetryMs; !this.#isOver();) {
      clearTimeout(this.#timer);
      this.#state = 'recovering';
      try {
        const end = await this.#store.end();
        if (this.#isOver()) return;
        if (this.#goOn(end) === 0) break;
        throw isError(this.#refusal) ? this.#refusal : new StoreAway('The store lacks messages that it was sent');
      } catch (error) {
        if (performance.now() >= until) throw error;
      }
      await delay(Math.min(this.#retryMs, until - performance.now()));
      this.#retryMs = Math.min(2 * this.#retryMs, maxRetryMs);
    }
    this.close();
  }

  /** An answer may take long. */
  #isOver(): boolean {
    return this.#state === 'fenced' || this.#state === 'closed';
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#state = 'closed';
    this.#messages.clear();
  }

  #tryLater(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#retryMs === 0) void this.#recover();
    else this.#timer = setTimeout(() => void this.#recover(), this.#retryMs);
    this.#retryMs = Math.min(Math.max(firstRetryMs, 2 * this.#retryMs), maxRetryMs);
  }

  async #recover(): Promise<void> {
    this.#timer = undefined;
    try {
      const end = await this.#store.end();
      if (this.#state === 'recovering') this.#goOn(end);
    } catch (error) {
      if (this.#state !== 'recovering') return;
      this.#handlers.refused(error);
      this.#tryLater();
    }
  }

  #worked(): void {
    if (this.#retryMs === 0) return;
    this.#retryMs = 0;
    this.#handlers.refused(undefined);
  }

  /** Sends again what the line lacks, and returns how much that is. Its readers have heard it already. */
  #goOn(end: Head | undefined): number {
    const own = this.#messages.newest?.head;
    if (own && end && end.gen > own.gen) {
      this.#state = 'fenced';
      this.#messages.clear();
      this.#handlers.fenced(end.gen);
      this.#worked();
      return 0;
    }
    this.#state = 'writing';
    const isOwn = end?.gen === own?.gen && end?.line === own?.line;
    this.#storedUpTo = isOwn ? endOf(end) : -Infinity;
    const lacking = this.#lacking(isOwn ? end : undefined);
    if (lacking.length === 0) this.#worked();
    // The store may answer at once, and then some are forgotten.
    for (const { head, data } of lacking) this.#store.append(head, data, 'store');
    return lacking.length;
  }

  /** Returns the messages after the last stored one. What has no records of its own belongs to the message after it. */
  #lacking(end: Head | undefined): readonly Waiting[] {
    const maxBytes = this.#handlers.maxBytes();
    const newest = this.#messages.newest?.head;
    let isNextLacking = end?.offset !== newest?.offset || end?.count !== newest?.count;
    const lacking: Waiting[] = [];
    for (let n = this.#messages.size - 1; n >= 0; n -= 1) {
      const message = this.#messages.at(n);
      const { offset, count } = message.head;
      const isAtEnd = count === 0 && offset >= this.#storedUpTo;
      isNextLacking = endOf(message.head) > this.#storedUpTo || (isAtEnd && isNextLacking);
      // Readers that lack one that's too large get a gap with its number.
      if (isNextLacking && message.bytes <= maxBytes) lacking.unshift(message);
    }
    return lacking;
  }

  #forget(upTo: number): void {
    this.#storedUpTo = Math.max(this.#storedUpTo, upTo);
    const messages = this.#messages;
    const isOver = (): boolean => messages.bytes > maxStoredBytes && endOf(messages.oldest?.head) <= upTo;
    while (isOver()) messages.shift();
  }
}

const endOf = (head: Head | undefined): number => (head ? head.offset + head.count : Infinity);
