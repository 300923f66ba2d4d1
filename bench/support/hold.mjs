/** How many bytes are held: a second of a feed of 64 MB a second. The flood of the sender fills it in less time. */
const HELD_BYTES = 64e6;

/** Returns a function that holds frames of `size` bytes, as a window or a queue does, and reads the oldest one when the memory is used up. */
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
