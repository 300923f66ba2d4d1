import type { Frame } from '../../protocol/frame.js';
import { frameOf } from './item.js';

/**
 * Makes values fit to be held for longer than their `next`. Make one per subscription, and pass it what is held, in order.
 *
 * Frames are views of the buffer that they were read into, and a single one keeps all of it alive. When a held frame comes out of
 * another buffer than the one before, the frames held out of the earlier buffer move to one of their own, if they are less than
 * half of it. So what is held costs at most twice its bytes, and one buffer more.
 */
export const keeper = (): (<T>(value: T) => T) => {
  let buffer: ArrayBufferLike | undefined;
  let frames: Frame[] = [];
  let bytes = 0;

  return (value) => {
    const frame = frameOf(value);
    if (frame === undefined) return value;
    if (frame.data.byteLength === 0) {
      moveTo(frame, Buffer.alloc(0));
      return value;
    }
    if (frame.data.buffer !== buffer) {
      if (frames.length > 0) move(frames, bytes);
      ({ buffer } = frame.data);
      frames = [];
      bytes = 0;
    }
    bytes += frame.data.byteLength;
    // Once they are half of it they stay where they are, and need not be remembered.
    if (bytes * 2 < buffer.byteLength) frames.push(frame);
    else if (frames.length > 0) frames = [];
    return value;
  };
};

const move = (frames: readonly Frame[], bytes: number): void => {
  const own = Buffer.allocUnsafeSlow(bytes);
  let end = 0;
  for (const frame of frames) {
    const start = end;
    end += frame.data.copy(own, start);
    moveTo(frame, own.subarray(start, end));
  }
};

// The same bytes at another place: nobody can tell, and whatever else is known of a frame stays.
const moveTo = (frame: Frame, data: Buffer): void => {
  (frame as { data: Buffer }).data = data;
};
