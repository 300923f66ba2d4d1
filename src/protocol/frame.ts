import type { Feed } from './feed.js';

/**
 * One frame of the feed, exactly as the service pushed it (contract, section 6).
 *
 * The payload is opaque: nothing is parsed before `text()` or `json()` is called, and their results are not cached.
 * `data` is a view of the read buffer: copy it (`Buffer.from(frame.data)`) before you store frames. An operator that queues a
 * frame beyond its event-loop turn replaces `data` with a copy, unless the frame uses at least 3/4 of its read buffer.
 *
 * @example
 * ```ts
 * import { Frame } from 'rx-trade-feed';
 *
 * new Frame('market', Buffer.from('{"n":1}'), false, Date.now(), 1).json(); // { n: 1 }
 * ```
 */
export class Frame<Data extends Uint8Array = Buffer> {
  readonly type = 'frame' as const;
  /** The feed that the ticket names. */
  declare readonly feed: Feed;
  /** The payload's bytes: a `Buffer`, or a plain `Uint8Array` if the frame was received from a relay. */
  declare readonly data: Data;
  /** Whether the service sent it as a binary message. */
  declare readonly isBinary: boolean;
  /** When its bytes were read, in epoch ms. */
  declare readonly receivedAt: number;
  /** The number of its connection within this subscription: 1, 2, … */
  declare readonly connection: number;
  readonly #isAscii: boolean | undefined;

  /** @param isAscii - whether all bytes of `data` are known to be ASCII, which makes `text()` faster */
  constructor(feed: Feed, data: Data, isBinary: boolean, receivedAt: number, connection: number, isAscii?: boolean) {
    this.#isAscii = isAscii;
    this.feed = feed;
    this.data = data;
    this.isBinary = isBinary;
    this.receivedAt = receivedAt;
    this.connection = connection;
  }

  /** Decodes the payload as UTF-8. */
  text(): string {
    const data: Uint8Array = this.data;
    // `Uint8Array.toString()` prints numbers, so decode instead.
    return data.toString === printNumbers
      ? decoder.decode(data)
      : (data as Buffer).toString(this.#isAscii ? 'latin1' : 'utf8');
  }

  /** Parses the payload as JSON. Throws a `SyntaxError` if it is not JSON. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
const printNumbers = Uint8Array.prototype.toString;
// A byte order mark is part of the payload, as in a Buffer.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A frame of any source: the service, a relay, a recording. */
export type AnyFrame = Frame<Uint8Array>;
