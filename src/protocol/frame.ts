import type { Feed } from './feed.js';

/**
 * One frame of the feed, exactly as the service pushed it (contract, section 6).
 *
 * The payload is opaque: nothing is parsed before `text()` or `json()` is called. You can store a frame and read it at any time: its bytes never
 * change.
 *
 * While `next` runs, a frame of the service is in the read buffer of the connection. `text()` decodes it there, and the frame keeps the text. `data`
 * copies it at the first access. At the end of the read, the frames that were not read are copied together. `byteLength` copies nothing.
 *
 * `data` is not an own property of such a frame. An object spread has no `data`, `structuredClone` and `postMessage` throw a `DataCloneError`, and
 * deep equality does not compare payloads. Use `frame.data` or `frame.text()` instead.
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

  constructor(feed: Feed, data: Data, isBinary: boolean, receivedAt: number, connection: number) {
    this.feed = feed;
    // A frame of the service creates its `data` when it is read.
    if ((data as Data | undefined) !== undefined) this.data = data;
    this.isBinary = isBinary;
    this.receivedAt = receivedAt;
    this.connection = connection;
  }

  /** The size of the payload in bytes. It needs no copy of the payload. */
  get byteLength(): number {
    return this.data.byteLength;
  }

  /** Decodes the payload as UTF-8. */
  text(): string {
    const data: Uint8Array = this.data;
    // `Uint8Array.toString()` prints numbers, so decode instead.
    return data.toString === printNumbers ? decoder.decode(data) : (data as Buffer).toString();
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
