import type { FeedStats } from '../../index.js';

/** The status of a source at a time. Times are epoch ms. A field is missing if the source does not know it. */
export interface Snapshot {
  /** `unknown`: there is no status. */
  readonly state: 'connecting' | 'live' | 'reconnecting' | 'stopped' | 'idle' | 'unknown';
  /** Why the feed is not live. */
  readonly problem?: string | undefined;
  readonly stats?: Partial<Figures> | undefined;
  readonly lastFrameAt?: number | undefined;
  readonly clients?: Clients | undefined;
  /** This replica, if the app has several. */
  readonly cluster?: Replica | undefined;
}

/** The figures of a feed, as `feedStats` counts them. */
export type Figures = Pick<FeedStats, 'framesPerSecond' | 'bytesPerSecond' | 'gaps' | 'lostMs' | 'dropped'> & {
  readonly reconnects: Readonly<Record<string, number>>;
};

/** The clients of a relay. */
export interface Clients {
  readonly count: number;
  /** The number of clients that wait for `authorize`. */
  readonly authorizing: number;
  readonly sent: number;
  readonly missed: number;
}

/** The status of one replica of a cluster. */
export interface Replica {
  readonly role: string;
  readonly replica: string;
  readonly owner?: string | undefined;
}
