/**
 * Keeps a feed in a folder, and reads it again from any record, in any process.
 *
 * @packageDocumentation
 */
export type { AppendOptions, FeedLogOptions } from './options.js';
export { type FeedLog, feedLog, type ReadOptions } from './feed-log.js';
export { type Committed, type ConsumeOptions } from './consume.js';
export type { Place, StoredLine, StoredOptions, StoredRecords } from '../protocol/place.js';
export type { From, LogRecord } from './records.js';
export { LogError, type LogErrorCode, type LogErrorFields } from './log-error.js';
// For `rx-trade-feed log status`.
export {
  type ConsumerStatus,
  type DamagedLine,
  inspectLog,
  type LogCheck,
  type LogProgress,
  type LogStatus,
  type LogWriterStatus,
  type SegmentStatus,
  verifyLog,
} from './inspect.js';
