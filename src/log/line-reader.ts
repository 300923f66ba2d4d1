// Reads a line that continues live.
//
// In: live messages, and the store of the line. Out: the messages of the line in order; some come twice.
// Never: a live message before the stored ones that are missing before it, unless the store doesn't get them.
import { between, type Head, type Place } from '../protocol/place.js';
import type { LineStore } from './line-store.js';

/** Where a message comes from: `missed`: a store, later than live. `past`: a store, from before the reader began. */
export type Origin = 'live' | 'missed' | 'past';

interface ReaderParts<M extends Head> {
  /** Without a store, what is missing stays missing. */
  readonly store: LineStore | undefined;
  /** How much of the past comes first, in ms. */
  readonly sinceMs: number;
  readonly decode: (bytes: Uint8Array) => M | undefined;
  readonly place: () => Place | undefined;
  /** Takes the next message, or one after missing ones. */
  readonly receive: (message: M, origin: Origin) => void;
  /** Takes the place after a message, without its records. */
  readonly join: (message: M) => void;
  /** The store has refused to be read, or can be read again (`undefined`). */
  readonly refused: (error: unknown) => void;
}

/** Live messages that wait while the store is read. */
interface Reading<M> {
  readonly messages: M[];
  bytes: number;
  /** What comes now is dropped: the store has it. */
  isFull: boolean;
  /** Until when it waits for what the store lacks; `undefined`: no longer, this process continues the line. */
  until: number | undefined;
  done: Promise<void>;
}

/**
 * How long a store may lack what is missing, and between two looks, in ms. An owner whose store was away takes up to 2 s
 * until it asks again, and another 2 s until it knows that there's no answer.
 */
const [fillMs, lookMs] = [5_000, 100];
const maxWaitingBytes = 1024 * 1024;

/** Reads a line: live messages, and those that are missing between them from a store. */
export class LineReader<M extends Head> {
  readonly #parts: ReaderParts<M>;
  #reading: Reading<M> | undefined;
  #isRefused = false;
  /** Whether the store had what was missing before. Otherwise, waiting only delays the live messages. */
  #isReliable = true;
  #isConnected = true;
  #catchingUp: Promise<void> | undefined;
  readonly #closed = new AbortController();

  constructor(parts: ReaderParts<M>) {
    this.#parts = parts;
  }

  receive(message: M, bytes: number): void {
    const { store, sinceMs, place, receive } = this.#parts;
    if (this.#reading !== undefined) return keep(this.#reading, message, bytes);
    if (this.#closed.signal.aborted) return;
    const isLater = this.#lacks(message) || (sinceMs > 0 && place() === undefined);
    if (store && isLater) void this.#read((reading) => this.#fill(store, message, reading), message);
    else receive(message, 'live');
  }

  /** The store can be reached again, or can't: then it may have what is missing, and nothing live comes that waits. */
  connected(isConnected: boolean): void {
    this.#isConnected = isConnected;
    if (this.#reading?.until !== undefined) this.#reading.until = this.#deadline();
  }

  /**
   * Reads what the line has after this reader's place. One without a place begins at the end. Live messages only wait
   * if there's something to read: a store that hangs doesn't stop them.
   */
  catchUp(): Promise<void> {
    this.#catchingUp ??= this.#catchUp().finally(() => (this.#catchingUp = undefined));
    return this.#catchingUp;
  }

  /** Reads the line to its end, because this process continues it: nothing more is sent again. */
  async finish(): Promise<void> {
    await this.#catchingUp;
    await this.#endReading();
    await this.catchUp();
    await this.#endReading();
  }

  close(): void {
    this.#closed.abort();
    this.#reading = undefined;
  }

  #isLive(): boolean {
    return this.#reading === undefined && !this.#closed.signal.aborted;
  }

  async #endReading(): Promise<void> {
    while (this.#reading !== undefined) {
      this.#reading.until = undefined;
      await this.#reading.done;
    }
  }

  async #catchUp(): Promise<void> {
    const { store, place } = this.#parts;
    if (store === undefined || !this.#isLive()) return;
    const end = await this.#ask(() => store.end());
    if (end === undefined || !this.#isLive()) return;
    const have = place();
    const from = have && firstMissing(have, end);
    if (from !== undefined) await this.#read(() => this.#ask(() => this.#readFrom(store, from)));
    else if (have === undefined) await this.#read(() => this.#ask(() => this.#readFirst(store, end)));
  }

  /** Lets live messages wait while the store is read. */
  #read(read: (reading: Reading<M>) => Promise<void>, ...messages: M[]): Promise<void> {
    const waiting = { messages, bytes: 0, isFull: false, until: this.#deadline() };
    const reading: Reading<M> = (this.#reading = { ...waiting, done: Promise.resolve() });
    reading.done = read(reading).then(() => {
      if (this.#closed.signal.aborted) return;
      this.#reading = undefined;
      for (const each of messages) this.receive(each, 0);
    });
    return reading.done;
  }

  #deadline(): number {
    return this.#isConnected ? performance.now() + (this.#isReliable ? fillMs : 0) : Infinity;
  }

  /** Reads what is missing before a message, until the line has it. */
  async #fill(store: LineStore, message: M, reading: Reading<M>): Promise<void> {
    const isOver = (): boolean => !this.#isMissing(message, reading) || this.#closed.signal.aborted;
    for (;;) {
      const from = missingBefore(this.#parts.place(), message);
      const read = () => (from === undefined ? this.#readPast(store, message.at) : this.#readFrom(store, from));
      if (this.#isConnected) await this.#ask(read);
      if (isOver() || performance.now() >= (reading.until ?? 0)) break;
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
    if (this.#closed.signal.aborted) return;
    this.#isReliable = isOver();
    // What the store lacks after all is reported as missing.
    if (reading.messages[0] !== message) return;
    this.#parts.receive(message, 'live');
    reading.messages.shift();
  }

  /** Whether the line may still get what is missing before a message: no later generation continues it. */
  #isMissing(message: M, { messages }: Reading<M>): boolean {
    // An owner may send one again: the broker has restarted, and forgotten it.
    return this.#lacks(message) && messages.every((each) => each.gen <= message.gen || this.#lacks(each));
  }

  #lacks(message: M): boolean {
    return missingBefore(this.#parts.place(), message) !== undefined;
  }

  /** Begins with the past, or at the end. */
  async #readFirst(store: LineStore, end: Head): Promise<void> {
    // Nobody else says what time it is. This clock may be behind, but not behind what has been.
    await this.#readPast(store, Math.max(end.at, Date.now()));
    const { place, join } = this.#parts;
    // Meanwhile this process may have begun a line, or have the end already.
    if (place() === undefined)
      await this.#readFrom(store, end.offset, (each) => (place() === undefined ? join(each) : this.#missed(each)));
  }

  /** Reads what comes before the first message. @param now - the time of the stream */
  async #readPast(store: LineStore, now: number): Promise<void> {
    const { sinceMs, receive } = this.#parts;
    const from = sinceMs > 0 ? await store.since(now - sinceMs) : undefined;
    if (from !== undefined) await this.#readFrom(store, from, (message) => receive(message, 'past'));
  }

  async #readFrom(store: LineStore, from: number, take: (message: M) => void = this.#missed): Promise<void> {
    const { decode, place } = this.#parts;
    const { signal } = this.#closed;
    for await (const bytes of store.read(from, signal)) {
      if (signal.aborted) return;
      const message = decode(bytes);
      const answer = message && between(place(), message);
      // Only here it shows that a generation between the two began earlier.
      if (answer?.type === 'hole' && answer.from < from) return this.#readFrom(store, answer.from, take);
      if (message === undefined) continue;
      this.#receiveBefore(message);
      take(message);
    }
  }

  /** Receives what came live and the store lacks: its owner has gone, or has sent it again too late. */
  #receiveBefore(message: M): void {
    const isFirst = ({ gen, offset }: M): boolean =>
      this.#lacks(message) && (gen < message.gen || (gen === message.gen && offset < message.offset));
    const { messages = [] } = this.#reading ?? {};
    for (let first = messages[0]; first && isFirst(first); first = messages[0]) {
      messages.shift();
      this.#parts.receive(first, 'live');
    }
  }

  readonly #missed = (message: M): void => this.#parts.receive(message, 'missed');

  /** Asks the store, and reports if it refuses, and when it answers again. */
  async #ask<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const { refused } = this.#parts;
    const wasRefused = this.#isRefused;
    try {
      const answer = await ask();
      this.#isRefused = false;
      if (wasRefused) refused(undefined);
      return answer;
    } catch (error) {
      this.#isRefused = true;
      refused(error);
      return undefined;
    }
  }
}

const keep = <M>(reading: Reading<M>, message: M, bytes: number): void => {
  reading.isFull ||= reading.bytes + bytes > maxWaitingBytes;
  if (reading.isFull) return;
  reading.messages.push(message);
  reading.bytes += bytes;
};

/** From which offset on a reader lacks what a line has before a message; `undefined` if it lacks nothing. */
const missingBefore = (place: Place | undefined, message: Head): number | undefined => {
  const answer = between(place, message);
  if (answer.type === 'hole') return answer.from;
  // Nothing of the line that continues has arrived. It may also begin with this message.
  const isLater = answer.type === 'other' && place !== undefined && message.gen > place.gen;
  return isLater && (message.offset > message.began || message.after > place.gen) ? 0 : undefined;
};

/** From which offset on a reader lacks what a line has up to its last message; `undefined` if it has all. */
const firstMissing = (place: Place, end: Head): number | undefined => {
  const answer = between(place, end);
  if (answer.type === 'hole') return answer.from;
  if (answer.type === 'next' && (answer.skip < end.count || end.gen > place.gen)) return end.offset + answer.skip;
  // Nothing of the line that continues has arrived.
  return answer.type === 'other' && end.gen > place.gen ? 0 : undefined;
};
