import { type AnyFrame, Frame } from './frame.js';

/** A frame that creates its `data` when it is read. Its payload can be in memory that other frames use, too. */
export abstract class LazyFrame extends Frame {
  /** The payload without a copy. Do not store it: its memory may be used again. */
  abstract get view(): Buffer;
  /** Copies the payload to another buffer. It does not decode, and creates no `data`. */
  abstract copyTo(target: Buffer, at: number): void;
  /**
   * Copies the payload to a block, and uses that memory from now on if the payload is only in memory that is used again.
   *
   * @param isShared - whether others use the bytes of the block, too: then `data` is a copy
   * @returns the end of the payload in the block
   */
  abstract moveTo(block: Buffer, at: number, isShared?: boolean): number;
  /** Moves the payload to memory that no other frame uses. */
  abstract own(): void;
}

/** Returns whether bytes use less than 3/4 of their buffer. Such bytes keep more than 4/3 of their size alive. */
export const isSparse = (bytes: number, buffer: ArrayBufferLike): boolean => bytes * 4 < buffer.byteLength * 3;

/** Returns the payload of a frame without a copy. Do not store it. */
export const payloadOf = (frame: AnyFrame): Uint8Array => (frame instanceof LazyFrame ? frame.view : frame.data);

/** Copies the payload of a frame to a buffer. */
export const copyPayload = (frame: AnyFrame, target: Buffer, at: number): void => {
  if (frame instanceof LazyFrame) frame.copyTo(target, at);
  else target.set(frame.data, at);
};

/** Copies the payload of a frame to a block that others use, too. A lazy frame then uses that memory: see {@link LazyFrame.moveTo}. */
export const movePayload = (frame: AnyFrame, block: Buffer, at: number): void => {
  if (frame instanceof LazyFrame) frame.moveTo(block, at, true);
  else block.set(frame.data, at);
};
