import type { Frame } from '../../protocol/frame.js';
import { frameOf } from './item.js';

/** How many bytes are moved at once, at most: more than a read of a socket gives. */
const mostBytes = 64 * 1024;

/**
 * Makes values fit to be held for longer than their `next`. Make one per subscription, and pass it what is held, in order.
 *
 * Frames are views of the buffer that they were read into, and a single one keeps all of it alive. When a held frame comes out of
 * another buffer than the one before, the frames held out of the earlier buffer move to one of their own, if they are less than
 * half of it. So what is held costs at most twice its bytes, and one buffer more, as long as what came first is let go first.
 */
export const keeper = (): (<T>(value: T) => T) => {
  let buffer: ArrayBufferLike | undefined;
  let frames: Frame[] = [];
  let bytes = 0;

  return (value) => {
    const frame = frameOf(value);
    if (frame === undefined) return value;
    const { data } = frame;
    if (data.byteLength === 0) {
      moveTo(frame, bytesOfKind(data, new ArrayBuffer(0), 0, 0));
      return value;
    }
    if (data.buffer !== buffer || bytes >= mostBytes) {
      if (frames.length > 0) move(frames, bytes);
      ({ buffer } = data);
      frames = [];
      bytes = 0;
    }
    bytes += data.byteLength;
    // Once they are half of it they stay where they are, and need not be remembered.
    if (bytes * 2 < buffer.byteLength) frames.push(frame);
    else if (frames.length > 0) frames = [];
    return value;
  };
};

const move = (frames: readonly Frame[], bytes: number): void => {
  const own = new Uint8Array(bytes);
  let end = 0;
  for (const frame of frames) {
    const { data } = frame;
    own.set(data, end);
    moveTo(frame, bytesOfKind(data, own.buffer, end, data.byteLength));
    end += data.byteLength;
  }
};

// A Buffer stays one, and what is none need not know that there are Buffers: a browser has none.
const bytesOfKind = (data: Uint8Array, buffer: ArrayBuffer, offset: number, length: number): Uint8Array => {
  const { [Symbol.species]: Kind } = data.constructor as unknown as { [Symbol.species]: typeof Uint8Array };
  return new Kind(buffer, offset, length);
};

// The same bytes at another place, and whatever else is known of a frame stays. One that somebody froze stays where it is.
const moveTo = (frame: Frame, data: Uint8Array): void => {
  Reflect.set(frame, 'data', data);
};
