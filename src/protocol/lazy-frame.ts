import { type AnyFrame, Frame } from './frame.js';

/** A frame that creates its `data` when it is read. Its payload can be in memory that other frames use, too. */
export abstract class LazyFrame extends Frame {
  /** The payload without a copy. Do not store it: its memory may be used again. */
  abstract get view(): Buffer;
  /** Moves the payload to memory that no other frame uses. */
  abstract own(): void;
}

/** Returns whether bytes use less than 3/4 of their buffer. Such bytes keep more than 4/3 of their size alive. */
export const isSparse = (bytes: number, buffer: ArrayBufferLike): boolean => bytes * 4 < buffer.byteLength * 3;

/** Returns the payload of a frame without a copy. Do not store it. */
export const payloadOf = (frame: AnyFrame): Uint8Array => (frame instanceof LazyFrame ? frame.view : frame.data);
