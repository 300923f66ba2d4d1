/**
 * The operators alone, which need neither Node nor a socket: filter, decode, count in windows, bound slow work.
 *
 * @packageDocumentation
 */
// The operators of the main entry point that also run in a browser: they need neither Node nor a socket.

// Decode and filter
export { decodeWith, type DecodeOptions } from './decode-with.js';
export { decodeEither } from './decode-either.js';
export { type AcceptedValues, type FieldValue, whereField, type WhereFieldOptions } from './where-field.js';
export { whereBytes } from './where-bytes.js';
export { filterValues, mapValues } from './values.js';
export type { Codec } from './decode/codec.js';
export { DecodeError, type DecodeFailure, type DecodeIssue } from './decode/decode-failure.js';
export { Decoded, type FrameIn, type ItemOf, type NotInferred } from './items/item.js';
export { distinctRecent, type DistinctRecentOptions } from './distinct-recent.js';

// Windows and conflation
export { tumblingWindow, type TumblingWindowOptions } from './tumbling-window.js';
export { slidingWindow, type SlidingWindowOptions } from './sliding-window.js';
export { countWindow, type CountWindowOptions } from './count-window.js';
export type { FramesOptions, IncompleteReason, KeyOptions, TimeWindowOptions } from './window/window.js';
export type {
  AccumulatedWindow,
  Accumulator,
  FeedWindow,
  WindowFacts,
  WindowKey,
  WindowSource,
} from './window/window.js';
export { conflate, type ConflateOptions } from './conflate.js';
export { Conflated } from './items/item.js';

// Bounded consumption
export { mergeMapBounded, type MergeMapBoundedOptions } from './merge-map-bounded.js';
export { toAsyncIterable } from './to-async-iterable.js';
export { type BoundOptions, type DropReport, type Overflow, OverflowError } from './bounded/bounded-queue.js';

// Share, status and figures
export { shareFeed, type ShareFeedOptions } from './share-feed.js';
export { connectionStatus, type ConnectionStatus } from './connection-status.js';
export type { ConnectingStatus, LiveStatus, ReconnectingStatus, StoppedStatus } from './connection-status.js';
export { type Fresh, freshness, type Freshness, type FreshnessOptions, type Stale } from './freshness.js';
export { type FeedStats, feedStats, type FeedStatsOptions } from './feed-stats.js';
export { type EventLogger, logEvents, type LogEventsOptions, type LogMethod } from './log-events.js';
export type { EventLevel, EventRecord } from '../protocol/event-record.js';
export { frames } from './frames.js';
export { gaps } from './gaps.js';
