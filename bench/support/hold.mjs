// Frames that a receiver holds before it reads them, as a window or a queue does.

/** How many bytes are held: a second of a feed of 64 MB a second. The flood of the sender fills it in less time. */
export const HELD_BYTES = 64e6;

/**
 * Returns a function that holds a frame and reads the oldest one when the memory is used up.
 *
 * @param size - the size of a payload in bytes
 * @param read - is called with each frame after it was held
 */
export const hold = (size, read) => {
  const held = new Array(Math.ceil(HELD_BYTES / size)).fill(undefined);
  let at = 0;
  return (frame) => {
    const oldest = held[at];
    held[at] = frame;
    at = (at + 1) % held.length;
    if (oldest !== undefined) read(oldest);
  };
};
