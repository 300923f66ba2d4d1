import type { Gap } from '../../protocol/event.js';
import type { Feed } from '../../protocol/feed.js';
import { Frame } from '../../protocol/frame.js';

/** A frame from a recording. */
export class ReplayedFrame extends Frame {
  /** The byte offset after this line of the recording. Pass it as the option `offset` to continue from there. */
  readonly offset: number;

  constructor(feed: Feed, data: Buffer, isBinary: boolean, receivedAt: number, connection: number, offset: number) {
    super(feed, data, isBinary, receivedAt, connection);
    this.offset = offset;
  }
}

/** A gap from a recording. */
export interface ReplayedGap extends Gap {
  /** The byte offset after this line of the recording. Pass it as the option `offset` to continue from there. */
  readonly offset: number;
}

/** An item of a recording. */
export type Replayed = ReplayedFrame | ReplayedGap;
