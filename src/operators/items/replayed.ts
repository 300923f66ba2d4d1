import type { Gap } from '../../protocol/event.js';
import type { Feed } from '../../protocol/feed.js';
import { Frame } from '../../protocol/frame.js';

/** A frame out of a recording. */
export class ReplayedFrame extends Frame {
  /** The byte of the recording right behind its line: as the option `offset` it goes on from here. */
  readonly offset: number;

  constructor(feed: Feed, data: Buffer, isBinary: boolean, receivedAt: number, connection: number, offset: number) {
    super(feed, data, isBinary, receivedAt, connection);
    this.offset = offset;
  }
}

/** A gap out of a recording. */
export interface ReplayedGap extends Gap {
  /** The byte of the recording right behind its line: as the option `offset` it goes on from here. */
  readonly offset: number;
}

/** What a recording gives back. */
export type Replayed = ReplayedFrame | ReplayedGap;
