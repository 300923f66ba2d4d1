import { isUtf8 } from 'node:buffer';
import { type Frame, type LifecycleEvent, TradeFeedError } from '../../index.js';

/** One line of `--json`, without its newline. */
export type RecordLine = string;

/**
 * Makes the JSON of a frame: its metadata and its payload, in base64 when it was sent as binary or is no UTF-8.
 *
 * Times are epoch ms, as in the library.
 */
export const frameRecord = ({ feed, connection, receivedAt, isBinary, data }: Frame): RecordLine => {
  const encoding = isBinary || !isUtf8(data) ? 'base64' : 'utf8';
  return JSON.stringify({
    type: 'frame',
    feed,
    connection,
    receivedAt,
    isBinary,
    encoding,
    data: data.toString(encoding),
  });
};

/** Makes the JSON of an event, in the library's own fields; a failure is given as plain data. */
export const eventRecord = (event: LifecycleEvent): RecordLine => JSON.stringify(event);

/** Makes the JSON that stands where lines were dropped because the reader was too slow. */
export const droppedRecord = (lines: number): RecordLine => JSON.stringify({ type: 'dropped', at: Date.now(), lines });

/** Makes the JSON of the failure that stopped the feed: the last line. */
export const stoppedRecord = (error: unknown): RecordLine =>
  JSON.stringify({
    type: 'stopped',
    at: Date.now(),
    failure: error instanceof TradeFeedError ? error : { message: String(error) },
  });
