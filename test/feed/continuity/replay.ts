import { from, type Observable } from 'rxjs';
import { headerLine, Lines, recordLine, type Stored, stamped } from '../../../src/log/lines.js';
import { startOf } from '../../../src/protocol/place.js';
import { type From, type LogRecord, Records } from '../../../src/log/records.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';

/** Returns the lines that a log has of a feed. */
export const linesOf = (events: readonly RelayedEvent[]): readonly string[] => {
  let at = -Infinity;
  return events
    .filter(({ type }) => type !== 'watermark')
    .map((event, offset) => {
      const time = stamped(event);
      at = Math.max(at, time);
      return recordLine(offset, event as Stored, time, at).trimEnd();
    });
};

/** Reads lines of a log to their end, as `read$({ follow: false })` does. */
export const replay$ = (lines: readonly string[], begin: From): Observable<LogRecord & RelayedEvent> => {
  const records = new Records({ from: begin, follow: false, onDamage: 'error' }, Date.now);
  const where = { path: 'log', position: 0 };
  records.header(headerLine({ ...startOf('log'), after: 0, began: 0, state: [] }).trimEnd(), 0, where);
  const read: LogRecord[] = [];
  for (const each = new Lines(Buffer.from(lines.map((line) => `${line}\n`).join(''))); each.next();) {
    records.line(each, where);
    read.push(...records.take());
  }
  records.atEnd(() => undefined);
  return from([...read, ...records.take()] as (LogRecord & RelayedEvent)[]);
};
