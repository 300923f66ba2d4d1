/** What an open connection wants to hear of its bytes, and what has to be known for that. */
export interface Tap {
  /** Bytes were read: what is told up to the next call came in them. */
  readonly read: () => void;
  /** A data frame is whole; a text that is ASCII alone is told as such. */
  readonly frame: (data: Buffer, isBinary: boolean, isAscii: boolean) => void;
  /** `ws` was given a close frame with this payload. */
  readonly close: (payload: Buffer) => void;
  /** How many frames were told so far, by this tap and by `ws`. */
  readonly told: () => number;
  /** Whether nobody listens any more. */
  readonly isClosed: () => boolean;
  readonly maxFrameBytes: number;
}
