import type { Feed } from './feed.js';

/**
 * One frame of the feed, exactly as the service pushed it (contract, section 6).
 *
 * The payload is opaque: nothing is parsed before `text()` or `json()` is called. You can store a frame and read it at
 * any time: its bytes never change.
 *
 * While `next` runs, a frame of the service is in the read buffer of the connection. `text()` decodes it there, and the
 * frame keeps the text. `data` copies it at the first access. At the end of the read, the frames that were not read are
 * copied together. `byteLength` copies nothing.
 *
 * `data` is not an own property of such a frame. An object spread has no `data`, `structuredClone` and `postMessage`
 * throw a `DataCloneError`, and deep equality does not compare payloads. Use `frame.data` or `frame.text()` instead.
 *
 * @typeParam Data - the payload's bytes: a `Buffer` by default, or a `Uint8Array` where the types of Node are missing
 * @example
 * ```ts
 * import { Frame } from 'rx-trade-feed';
 *
 * new Frame('market', Buffer.from('{"n":1}'), false, Date.now(), 1).json(); // { n: 1 }
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

  constructor(feed: Feed, data: Data, isBinary: boolean, receivedAt: number, connection: number);
  /** @internal A {@link LazyFrame} creates its `data` when it is read. */
  constructor(feed: Feed, data: undefined, isBinary: boolean, receivedAt: number, connection: number);
  constructor(feed: Feed, data: Data | undefined, isBinary: boolean, receivedAt: number, connection: number) {
    this.feed = feed;
    if (data !== undefined) this.data = data;
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
    return data.toString === printNumbers ? decoder.decode(data) : data.toString();
  }

  /** Parses the payload as JSON. Throws a `SyntaxError` if it isn't JSON. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

// eslint-disable-next-line @typescript-eslint/unbound-method -- compared, not called
const printNumbers = Uint8Array.prototype.toString;
// A byte order mark is part of the payload, as in a Buffer.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A frame of any source: the service, a relay, a log. */
export type AnyFrame = Frame<Uint8Array>;

/** A frame that creates its `data` when it is read. Its payload can be in memory that other frames use, too. */
export abstract class LazyFrame extends Frame {
  abstract readonly payload: {
    /** The payload without a copy. Do not store it: its memory may be used again. */
    readonly view: Uint8Array;
    /** Moves the payload to memory that nothing else uses. */
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

/** Returns the payload of a frame without a copy. Do not store it. */
export const payloadOf = (frame: AnyFrame): Uint8Array =>
  frame instanceof LazyFrame ? frame.payload.view : frame.data;

/**
 * Decides about a payload, which is only there during the call. `isUndisturbed`: no code of the user has run since the
 * last call.
 */
export type IsWanted = (payload: Uint8Array, isBinary: boolean, isUndisturbed: boolean) => boolean;

/**
 * A stored frame must keep no larger buffer alive. The frame is the same value afterwards; a frozen one stays as it is.
 */
export const ownPayload = (frame: AnyFrame): void => {
  if (frame instanceof LazyFrame) frame.payload.own();
  else Reflect.set(frame, 'data', ownBytes(frame.data));
};

/** Returns bytes that use at least 3/4 of their buffer: the same, or a copy of the same class. */
export const ownBytes = (bytes: Uint8Array): Uint8Array => {
  if (!isSparse(bytes.byteLength, bytes.buffer)) return bytes;
  // This file does not name the class `Buffer`, because a browser does not have it. A new Buffer may be a part of
  // Node's pool, so the copy gets an ArrayBuffer.
  const { [Symbol.species]: Kind } = bytes.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  const copy = new Kind(new ArrayBuffer(bytes.byteLength), 0, bytes.byteLength);
  copy.set(bytes);
  return copy;
};

/** Returns whether bytes use less than 3/4 of their buffer. Such bytes keep more than 4/3 of their size alive. */
export const isSparse = (bytes: number, buffer: ArrayBufferLike): boolean => bytes * 4 < buffer.byteLength * 3;
