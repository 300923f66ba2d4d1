import type { Feed } from './feed.js';

/**
 * One frame of the feed, exactly as the service pushed it (contract, section 6).
 *
 * The payload is opaque: nothing is parsed before `text()` or `json()` is called, and neither result is kept.
 * `data` is a view of the buffer that it was read into: copy it (`Buffer.from(frame.data)`) before you store frames. An operator that holds a
 * frame after its event-loop turn does this for you: it sets `data` to a Buffer of the same bytes that no other frame shares.
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
  /** The feed, as the ticket named it. */
  declare readonly feed: Feed;
  /** The payload's bytes: a `Buffer`; a plain `Uint8Array` where the frame came over a relay. */
  declare readonly data: Data;
  /** Whether the service sent it as a binary message. */
  declare readonly isBinary: boolean;
  /** When its bytes were read, in epoch ms. */
  declare readonly receivedAt: number;
  /** Which connection of this subscription it came over: 1, 2, … */
  declare readonly connection: number;
  readonly #isAscii: boolean | undefined;

  /** @param isAscii - whether `data` is known to hold ASCII alone: it is read faster then */
  constructor(feed: Feed, data: Data, isBinary: boolean, receivedAt: number, connection: number, isAscii?: boolean) {
    this.#isAscii = isAscii;
    this.feed = feed;
    this.data = data;
    this.isBinary = isBinary;
    this.receivedAt = receivedAt;
    this.connection = connection;
  }

  /** Reads the payload as UTF-8. */
  text(): string {
    const data: Uint8Array = this.data;
    // What is no Buffer would list its numbers.
    return data.toString === listed
      ? decoder.decode(data)
      : (data as Buffer).toString(this.#isAscii ? 'latin1' : 'utf8');
  }

  /** Reads the payload as JSON; throws a `SyntaxError` when it is none. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- to be compared, not called
const listed = Uint8Array.prototype.toString;
// A byte order mark is part of the payload, as it is in a Buffer.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A frame, wherever it came from. */
export type AnyFrame = Frame<Uint8Array>;
