import { randomBytes } from 'node:crypto';
import { writeEventLine } from '../protocol/event-line.js';
import { copyFailure } from '../protocol/failures/trade-feed-error.js';
import type { LoggedValue } from '../protocol/snapshot.js';
import { isRelayedValue, type RelayedValue } from '../protocol/relayed-value.js';
import { formatEventId } from '../protocol/event-id.js';
import { type Batch, EventLog, type LogBounds } from './event-log.js';
import { publicFailure, publicJson } from './public-json.js';
import type { RelayMessage, RelayMessageType } from './relay-message.js';
import { minRetryMs } from './retry-after.js';
import type { TopicEvent } from './topic-output.js';

/** One subscription of a source, shared by all clients: the log of the events, and how the source ended. */
export class RelayRun {
  /** A random id of the log. A position in the log of another run is not valid here. */
  readonly epoch = randomBytes(6).toString('base64url');
  readonly log: EventLog;
  #end: RunEnd | undefined;
  #lateEnd: RunEnd | undefined;
  readonly #messages = new WeakMap<Batch, RelayMessage>();

  /** @param clock - returns the time in epoch ms */
  constructor(bounds: LogBounds, clock: () => number) {
    this.log = new EventLog(bounds, clock);
  }

  /** The last message, once the source has ended. */
  get end(): RunEnd | undefined {
    return this.#end;
  }

  /** The last message for a client that joins after a stop. It contains a delay: otherwise a page would use up its retries within seconds. */
  get lateEnd(): RunEnd | undefined {
    return this.#lateEnd;
  }

  /**
   * Adds an event to the log. `stopped` is stored as `disconnected`, because the clients connect again. A source that is received over another
   * relay also emits values.
   */
  append(event: TopicEvent): void {
    if (isRelayedValue(event)) this.log.append(loggedValue(event));
    else this.log.append(event.type === 'stopped' ? { ...event, type: 'disconnected' } : event);
  }

  /** Ends the run: the source is complete. */
  complete(): void {
    this.#end = this.#lateEnd = { type: 'complete', data: '{}' };
  }

  /** Ends the run with the error of the source. */
  stop(error: unknown): void {
    const failure = publicFailure(error);
    const retryAfterMs = Math.max(minRetryMs, failure.retryAfterMs ?? 0);
    const late = copyFailure(failure, { retryAfterMs });
    this.#end = { type: 'connect-again', data: JSON.stringify(failure) };
    this.#lateEnd = { type: 'connect-again', data: JSON.stringify(late) };
  }

  /** Returns the message of a batch: the same object for every client. */
  messageOf(batch: Batch): RelayMessage {
    const cached = this.#messages.get(batch);
    if (cached !== undefined) return cached;
    const message = { id: formatEventId(this.epoch, batch.end), data: withWatermark(batch.lines, batch.watermark) };
    this.#messages.set(batch, message);
    return message;
  }
}

/** Adds a watermark after lines, if there is one. Clients use it to close windows. */
export const withWatermark = (lines: string, at: number): string => {
  if (at === -Infinity) return lines;
  const watermark = writeEventLine({ type: 'watermark', at });
  return lines === '' ? watermark : `${lines}\n${watermark}`;
};

const loggedValue = ({ at, value }: RelayedValue<unknown>): LoggedValue => ({
  type: 'value',
  at,
  json: publicJson(value),
});

interface RunEnd {
  readonly type: RelayMessageType;
  readonly data: string;
}
