import type { ReadBuffer } from '../../src/transport/frame-socket.js';

/** Delivers bytes to a buffer like Node: in reads no larger than the space in the buffer. */
export const readInto = ({ onread }: ReadBuffer, bytes: Buffer): void => {
  for (let at = 0; at < bytes.length;) {
    const space = (onread.buffer as () => Buffer)();
    const length = bytes.copy(space, 0, at);
    at += length;
    onread.callback(length, space);
  }
};
