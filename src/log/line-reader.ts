import { between, type Head, type Place } from '../protocol/place.js';
import type { LineStore } from './line-store.js';

interface ReaderParts<M extends Head> {
  /** Without a store, what is missing stays missing. */
  readonly store: LineStore | undefined;
  readonly decode: (bytes: Uint8Array) => M | undefined;
  readonly place: () => Place | undefined;
  /** Takes the next message, or one after missing ones. */
  readonly receive: (message: M) => void;
  /** Takes the place after a message, without its records. */
  readonly join: (message: M) => void;
  /** The store has refused to be read, or answers again (`undefined`). */
  readonly refused: (error: unknown) => void;
}

/** How long a store may lack what is missing, and between two looks, in ms. */
const [fillMs, lookMs] = [2_000, 100];
/** How many bytes of live messages wait while the store is read. The store has the others. */
const maxWaitingBytes = 1024 * 1024;

/** Reads a line: live messages, and those that are missing between them from a store. */
export class LineReader<M extends Head> {
  readonly #parts: ReaderParts<M>;
  /** Live messages that wait while the store is read; `undefined` while it isn't. */
  #waiting: { readonly messages: M[]; bytes: number; isFull: boolean } | undefined;
  readonly #closed = new AbortController();

  constructor(parts: ReaderParts<M>) {
    this.#parts = parts;
  }

  receive(message: M, bytes: number): void {
    const { store, place, receive } = this.#parts;
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      waiting.isFull ||= waiting.bytes + bytes > maxWaitingBytes;
      if (waiting.isFull) return;
      waiting.messages.push(message);
      waiting.bytes += bytes;
      return;
    }
    if (store && between(place(), message).type === 'hole') void this.#fill(store, message);
    else receive(message);
  }

  /** Reads what the line has after this reader's place. One without a place begins at the end. */
  async catchUp(): Promise<void> {
    const { store, place, join, refused } = this.#parts;
    if (store === undefined || this.#waiting) return;
    const waiting: { messages: M[]; bytes: number; isFull: boolean } = { messages: [], bytes: 0, isFull: false };
    this.#waiting = waiting;
    try {
      const end = await store.end();
      const start = place()?.offset;
      if (end && start === undefined) await this.#read(store, end.offset, join);
      else if (end && start !== undefined && end.offset + end.count > start) await this.#read(store, start);
      refused(undefined);
    } catch (error) {
      refused(error);
    }
    if (this.#closed.signal.aborted) return;
    this.#waiting = undefined;
    for (const message of waiting.messages) this.receive(message, 0);
  }

  close(): void {
    this.#closed.abort();
    this.#waiting = { messages: [], bytes: 0, isFull: true };
  }

  /** Reads what is missing before a message, until the store has it, or for a while. */
  async #fill(store: LineStore, message: M): Promise<void> {
    const waiting = (this.#waiting = { messages: [message], bytes: 0, isFull: false });
    const until = performance.now() + fillMs;
    try {
      do {
        const place = this.#parts.place();
        if (place === undefined) break;
        await this.#read(store, place.offset);
        this.#parts.refused(undefined);
        if (between(this.#parts.place(), message).type !== 'hole') break;
        await new Promise((resolve) => setTimeout(resolve, lookMs));
      } while (performance.now() < until && !this.#closed.signal.aborted);
    } catch (error) {
      this.#parts.refused(error);
    }
    if (this.#closed.signal.aborted) return;
    this.#waiting = undefined;
    const [, ...others] = waiting.messages;
    // What the store lacks after all, the reader reports as missing.
    this.#parts.receive(message);
    for (const each of others) this.receive(each, 0);
  }

  async #read(store: LineStore, from: number, receive = this.#parts.receive): Promise<void> {
    const { decode } = this.#parts;
    const { signal } = this.#closed;
    for await (const bytes of store.read(from, signal)) {
      if (signal.aborted) return;
      const message = decode(bytes);
      if (message) receive(message);
    }
  }
}
