import { randomBytes } from 'node:crypto';
import { writeEventLine } from '../protocol/event-line.js';
import { isRelayedValue } from '../protocol/relayed-value.js';
import { eventId } from './event-id.js';
import { type Batch, EventLog, type LogBounds } from './event-log.js';
import { copyFailure } from '../protocol/failures/trade-feed-error.js';
import { publicFailure } from './public-event.js';
import type { RelayMessage, RelayMessageType } from './relay-message.js';
import type { TopicEvent } from './topic.js';
import { relayedOn } from './topic-value.js';

/** One subscription of the source, for all clients: the log of its events, and how it ended. */
export class RelayRun {
  /** A word of its own: places in the log of another run mean nothing here. */
  readonly epoch = randomBytes(6).toString('base64url');
  readonly log: EventLog;
  #end: RunEnd | undefined;
  #lateEnd: RunEnd | undefined;
  readonly #messages = new WeakMap<Batch, RelayMessage>();

  /** @param clock - gives the time in epoch ms */
  constructor(bounds: LogBounds, clock: () => number) {
    this.log = new EventLog(bounds, clock);
  }

  /** The last message, once the source has ended. */
  get end(): RunEnd | undefined {
    return this.#end;
  }

  /** The same for a client that comes after a stop: it asks it to wait, or a page would have asked as often as it may within seconds. */
  get lateEnd(): RunEnd | undefined {
    return this.#lateEnd;
  }

  /**
   * Takes an event in. The stop of a feed is no stop of a client, which stays and waits: for it the feed is disconnected. A source that is
   * received over another relay emits values, too.
   */
  append(event: TopicEvent): void {
    if (isRelayedValue(event)) this.log.append(relayedOn(event));
    else this.log.append(event.type === 'stopped' ? { ...event, type: 'disconnected' } : event);
  }

  /** Takes note that the source is complete. */
  complete(): void {
    this.#end = this.#lateEnd = { type: 'complete', data: '{}' };
  }

  /** Takes note of the error of the source. */
  stop(error: unknown): void {
    const failure = publicFailure(error);
    const retryAfterMs = Math.max(lateRetryAfterMs, failure.retryAfterMs ?? 0);
    const late = copyFailure(failure, { retryAfterMs });
    this.#end = { type: 'connect-again', data: JSON.stringify(failure) };
    this.#lateEnd = { type: 'connect-again', data: JSON.stringify(late) };
  }

  /** Gives the message of a batch: the same one to every client. */
  messageOf(batch: Batch): RelayMessage {
    const known = this.#messages.get(batch);
    if (known !== undefined) return known;
    const message = { id: eventId(this.epoch, batch.end), data: withWatermark(batch.lines, batch.watermark) };
    this.#messages.set(batch, message);
    return message;
  }
}

/** When a client that comes after a stop may come again, in ms: until then somebody may have taken this replica out of the load balancer. */
export const lateRetryAfterMs = 5_000;

interface RunEnd {
  readonly type: RelayMessageType;
  readonly data: string;
}

/** Puts a watermark after lines, if there is one: a client's windows close by it. */
export const withWatermark = (lines: string, at: number): string => {
  if (at === -Infinity) return lines;
  const watermark = writeEventLine({ type: 'watermark', at });
  return lines === '' ? watermark : `${lines}\n${watermark}`;
};
