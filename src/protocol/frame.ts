import type { Feed } from './feed.js';

/**
 * One frame of the feed, exactly as the service pushed it (contract, section 6).
 *
 * The payload is opaque: nothing is parsed until you call `text()` or `json()`. You can store a frame and read it at
 * any time: its bytes never change.
 *
 * While `next` runs, a frame from the service sits in the connection's read buffer. `text()` decodes it there, and the
 * frame keeps the text. `data` copies it on first access. Frames you didn't read are copied together at the end of the
 * read. `byteLength` copies nothing.
 *
 * `data` isn't an own property of such a frame. Spreading it loses `data`, `structuredClone` and `postMessage` throw a
 * `DataCloneError`, and deep equality doesn't compare payloads. Use `frame.data` or `frame.text()` instead.
 *
 * @typeParam Data - the payload's bytes: a `Buffer` by default, or a `Uint8Array` where the types of Node are missing
 * @example
 * ```ts
 * import { Frame } from 'rx-trade-feed';
 *
 * // { n: 1 }
 * new Frame('market', Buffer.from('{"n":1}'), false, Date.now(), 1).json();
 * ```
 */
export class Frame<
  Data extends Uint8Array = typeof globalThis extends Record<
    'Buffer',
    Record<'isBuffer', (value: unknown) => value is infer NodeBuffer extends Uint8Array>
  >
    ? NodeBuffer
    : Uint8Array,
> {
  readonly type = 'frame' as const;
  /** The feed named by the ticket. */
  declare readonly feed: Feed;
  /** The payload's bytes: a `Buffer`, or a plain `Uint8Array` if the frame came from a relay. */
  declare readonly data: Data;
  /** Whether the service sent it as a binary message. */
  declare readonly isBinary: boolean;
  /** When its bytes were read, in epoch ms. */
  declare readonly receivedAt: number;
  /** Which connection of this subscription it arrived on: 1, 2, … */
  declare readonly connection: number;

  constructor(feed: Feed, data: Data, isBinary: boolean, receivedAt: number, connection: number);
  /** @internal A {@link LazyFrame} creates its `data` on first access. */
  constructor(feed: Feed, data: undefined, isBinary: boolean, receivedAt: number, connection: number);
  constructor(feed: Feed, data: Data | undefined, isBinary: boolean, receivedAt: number, connection: number) {
    this.feed = feed;
    if (data !== undefined) this.data = data;
    this.isBinary = isBinary;
    this.receivedAt = receivedAt;
    this.connection = connection;
  }

  /** The payload's size in bytes. Doesn't copy the payload. */
  get byteLength(): number {
    return this.data.byteLength;
  }

  /** Decodes the payload as UTF-8. */
  text(): string {
    const data: Uint8Array = this.data;
    // Only a Buffer's `toString` decodes. That of any other byte array, whatever its realm, prints numbers.
    return isNodeBuffer(data) ? data.utf8Slice(0, data.length) : decodeUtf8(data);
  }

  /** Parses the payload as JSON. Throws a `SyntaxError` if it isn't JSON. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

/** The methods that `Buffer.toString` and `Buffer.write` call after checking their arguments. */
export interface NodeBuffer extends Uint8Array {
  latin1Slice(from: number, to: number): string;
  utf8Slice(from: number, to: number): string;
  latin1Write(text: string, from: number): number;
  indexOf(bytes: number | Uint8Array, from?: number): number;
}

export const isNodeBuffer = (bytes: Uint8Array): bytes is NodeBuffer => 'utf8Slice' in bytes;

let decoder: InstanceType<typeof TextDecoder> | undefined;

export const decodeUtf8 = (bytes: Uint8Array): string => {
  // Created here and not at import, because jsdom has none. Keeps a byte order mark, which is part of the payload.
  decoder ??= new TextDecoder('utf-8', { ignoreBOM: true });
  return decoder.decode(bytes);
};

/** A frame from any source: the service, a relay, a log. */
export type AnyFrame = Frame<Uint8Array>;

/** A frame that creates its `data` on first access. Its payload may share memory with other frames. */
export abstract class LazyFrame extends Frame {
  abstract readonly payload: {
    /** The payload without copying it. Don't store it: the memory may be reused. */
    readonly view: Uint8Array;
    /** Moves the payload to memory that it alone uses. */
    readonly own: () => void;
  };
  /** Returns a frame with the same payload. */
  abstract at(receivedAt: number, connection: number): LazyFrame;
}

export const frameAt = (frame: Frame, receivedAt: number, connection: number): Frame => {
  if (frame.receivedAt === receivedAt && frame.connection === connection) return frame;
  if (frame instanceof LazyFrame) return frame.at(receivedAt, connection);
  return new Frame(frame.feed, frame.data, frame.isBinary, receivedAt, connection);
};

/** Returns a frame's payload without copying it. Don't store it. */
export const payloadOf = (frame: AnyFrame): Uint8Array =>
  frame instanceof LazyFrame ? frame.payload.view : frame.data;

/**
 * Decides whether to emit a frame, by its payload, which is valid only during the call. `isUndisturbed`: no user code
 * has run since the last call.
 */
export type IsWanted = (payload: Uint8Array, isBinary: boolean, isUndisturbed: boolean) => boolean;

/** Returns a frame that keeps no larger buffer alive: the same one, or a copy if its bytes can't move. */
export const withOwnPayload = (frame: AnyFrame): AnyFrame => {
  if (frame instanceof LazyFrame) frame.payload.own();
  // A class that extends `Frame` may have private fields, which can't be copied.
  if (frame.constructor !== Frame || !isSparse(frame.data.byteLength, frame.data.buffer)) return frame;
  // It may have more fields, such as its offset in a log.
  const { feed, data, isBinary, receivedAt, connection, ...more } = frame;
  return Object.assign(new Frame(feed, ownBytes(data), isBinary, receivedAt, connection), more);
};

/** Returns the bytes if they use at least 3/4 of their buffer, otherwise a copy of the same class. */
export const ownBytes = (bytes: Uint8Array): Uint8Array => {
  if (!isSparse(bytes.byteLength, bytes.buffer)) return bytes;
  // Browsers have no `Buffer`, so this file doesn't name the class. A new Buffer may be part of Node's pool, so the
  // copy gets its own ArrayBuffer.
  const { [Symbol.species]: Kind } = bytes.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  const copy = new Kind(new ArrayBuffer(bytes.byteLength), 0, bytes.byteLength);
  copy.set(bytes);
  return copy;
};

/** Returns whether bytes use less than 3/4 of their buffer, and so keep more than 4/3 of their size alive. */
export const isSparse = (bytes: number, buffer: ArrayBufferLike): boolean => bytes * 4 < buffer.byteLength * 3;
