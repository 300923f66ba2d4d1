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
      moveTo(frame, Buffer.alloc(0));
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
  const own = Buffer.allocUnsafeSlow(bytes);
  let end = 0;
  for (const frame of frames) {
    const start = end;
    end += frame.data.copy(own, start);
    moveTo(frame, own.subarray(start, end));
  }
};

// The same bytes at another place, and whatever else is known of a frame stays. One that somebody froze stays where it is.
const moveTo = (frame: Frame, data: Buffer): void => {
  Reflect.set(frame, 'data', data);
};
