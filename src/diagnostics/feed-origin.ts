import type { Feed } from '../protocol/feed.js';

/** The subscription that a message describes. All messages of one subscription contain the same object. */
export interface FeedOrigin {
  readonly feed: Feed;
  /** The address of the service, from the options. */
  readonly baseUrl: string;
  /** The place in the program that created the feed: a function, a file, a line and a column. */
  readonly where: string;
}
