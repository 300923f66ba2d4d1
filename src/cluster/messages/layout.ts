import type { KeyPhase } from '../election/cluster-key.js';

/**
 * The layout of a message, in big-endian: version, kind, phase and the length of the owner's id (1 byte each), the number of frames (Uint32),
 * then epoch, generation, revision, sequence, frames and time (Float64, because they can be greater than 2^32), the id of the owner, and the
 * body.
 *
 * The body of a batch has for each frame: flags (1 byte), when it was received, in ms after the time of the message (Int32), its length
 * (Uint32), and its bytes. A part has one frame, and after the length of the whole frame the offset of this part (Uint32).
 */
export const version = 1;

/** Size of the head in bytes, without the id of the owner. */
export const headBytes = 8 + 6 * 8;
/** Size of what precedes the bytes of a frame. */
export const frameHeadBytes = 9;
/** Size of what precedes the bytes of a part. */
export const partHeadBytes = 13;

/** The kinds of messages, with their numbers. */
export const kinds = Object.freeze({ batch: 1, event: 2, beat: 3, end: 4, part: 5 });

/** The phases, at their numbers. */
export const phases: readonly KeyPhase[] = ['opening', 'open', 'free', 'stopped'];

/** Flags of a frame. `ascii`: all bytes of a text frame are known to be ASCII, so it can be decoded faster. */
export const flag = Object.freeze({ binary: 1, ascii: 2 });
