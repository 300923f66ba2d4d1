import { debuglog } from 'node:util';
import { EventRecord, type LoggableEvent } from '../protocol/event-record.js';
import { printable } from '../protocol/printable.js';
import type { FeedOrigin } from './feed-origin.js';

/** The name that turns the log on: `NODE_DEBUG=rx-trade-feed`. */
export const debugName = 'rx-trade-feed';

const debug = debuglog(debugName);

/** Writes each lifecycle event to stderr on one line, if `NODE_DEBUG` contains the name of this package. */
export const debugLog = ({ where, baseUrl }: FeedOrigin): ((event: LoggableEvent) => void) => {
  const source = printable(`${where}, ${baseUrl}`);
  return (event) => {
    if (debug.enabled) debug('%s: %s', source, new EventRecord(event).msg);
  };
};
