import { randomBytes } from 'node:crypto';
import { writeEventLine } from '../protocol/event-line.js';
import { copyFailure } from '../protocol/failures/trade-feed-error.js';
import type { LoggedValue } from '../protocol/snapshot.js';
import { isRelayedValue, type RelayedValue } from '../protocol/relayed-value.js';
import type { PositionedFeed } from '../protocol/feed-position.js';
import { formatEventId } from '../protocol/event-id.js';
import { type Batch, EventLog, type LogBounds } from './event-log.js';
import type { Position } from './log-entries.js';
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

  /** The cluster whose positions are the ids of the messages. */
  readonly #cluster: PositionedFeed | undefined;

  /**
   * @param clock - returns the time in epoch ms
   * @param cluster - the cluster that emits the events of the source
   */
  constructor(bounds: LogBounds, clock: () => number, cluster?: PositionedFeed) {
    this.log = new EventLog(bounds, clock);
    this.#cluster = cluster;
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
    const shared = this.#cluster?.position;
    if (isRelayedValue(event)) this.log.append(loggedValue(event), shared);
    else this.log.append(event.type === 'stopped' ? { ...event, type: 'disconnected' } : event, shared);
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

  /** Whether the ids of the messages are positions of a cluster. */
  get isInCluster(): boolean {
    return this.#cluster !== undefined;
  }

  /** Returns the id of a position. */
  idAt({ seq, frames, at, shared }: Position): string {
    if (shared === undefined) return formatEventId(this.epoch, { seq, frames, at });
    return formatEventId(shared.run, { seq: shared.sequence, frames: shared.frames, at });
  }

  /** Returns the message of a batch: the same object for every client. */
  messageOf(batch: Batch): RelayMessage {
    const cached = this.#messages.get(batch);
    if (cached !== undefined) return cached;
    const message = { id: this.idAt(batch.end), data: withWatermark(batch.lines, batch.watermark) };
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
