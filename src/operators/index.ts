// The operators of the main entry point that need neither Node nor a socket, for a browser.

// Decode and filter
export { decodeWith, type DecodeOptions } from './decode-with.js';
export { decodeEither } from './decode-either.js';
export type { Codec } from './decode/codec.js';
export { DecodeError, type DecodeFailure, type DecodeIssue } from './decode/decode-failure.js';
export { Decoded } from './items/decoded.js';
export type { FrameIn, ItemOf, NotInferred } from './items/item.js';
export { distinctRecent, type DistinctRecentOptions } from './distinct-recent.js';

// Windows and conflation
export { tumblingWindow, type TumblingWindowOptions } from './tumbling-window.js';
export { slidingWindow, type SlidingWindowOptions } from './sliding-window.js';
export { countWindow, type CountWindowOptions } from './count-window.js';
export type { FramesOptions, TimeWindowOptions } from './window/window-options.js';
export type { AccumulatedWindow, Accumulator, FeedWindow, WindowFacts, WindowSource } from './window/feed-window.js';
export { conflate, type ConflateOptions } from './conflate.js';
export { Conflated } from './items/conflated.js';

// Bounded consumption
export { mergeMapBounded, type MergeMapBoundedOptions } from './merge-map-bounded.js';
export { toAsyncIterable } from './to-async-iterable.js';
export type { BoundOptions, Overflow } from './bounded/bounds.js';
export type { DropReport } from './bounded/drop-report.js';
export { OverflowError } from './bounded/overflow-error.js';

// Share, status and figures
export { shareFeed, type ShareFeedOptions } from './share-feed.js';
export {
  type ConnectingStatus,
  connectionStatus,
  type ConnectionStatus,
  type LiveStatus,
  type ReconnectingStatus,
  type StoppedStatus,
} from './connection-status.js';
export { type Fresh, freshness, type Freshness, type FreshnessOptions, type Stale } from './freshness.js';
export { feedStats, type FeedStatsOptions } from './feed-stats.js';
export type { FeedStats } from './items/feed-tally.js';
export { type EventLogger, logEvents, type LogEventsOptions, type LogMethod } from './log-events.js';
export type { EventLevel, EventRecord } from '../protocol/event-record.js';
export { frames } from './frames.js';
export { gaps } from './gaps.js';
