import { randomBytes } from 'node:crypto';
import type { RelayedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failure.js';
import { errorBy } from '../protocol/meaning.js';
import { relayTold } from '../protocol/relay-told.js';
import type { RelayMessageType } from '../protocol/relay-wire.js';
import { eventId } from './event-id.js';
import { type Batch, EventLog, type LogBounds } from './event-log.js';
import type { RelayMessage } from './relay-message.js';

/** One subscription of the source, for all clients: the log of its events, and how it ended. */
export class RelayRun {
  /** A word of its own: places in the log of another run mean nothing here. */
  readonly epoch = randomBytes(6).toString('base64url');
  readonly log: EventLog;
  #end: { readonly type: RelayMessageType; readonly data: string } | undefined;
  readonly #messages = new WeakMap<Batch, RelayMessage>();

  constructor(bounds: LogBounds, now: number) {
    this.log = new EventLog(bounds, now);
  }

  /** The last message, once the source has ended. */
  get end(): { readonly type: RelayMessageType; readonly data: string } | undefined {
    return this.#end;
  }

  /** Takes an event in. */
  append(event: RelayedEvent): void {
    this.log.append(event);
  }

  /** Takes note that the source is complete. */
  complete(): void {
    this.#end = { type: 'complete', data: '{}' };
  }

  /** Takes note of the error of the source. One that is none of the feed is not shown to clients: it may say anything. */
  stop(error: unknown): void {
    const failure = error instanceof TradeFeedError ? error : errorBy(relayTold.sourceFailed, { stage: 'stream' });
    this.#end = { type: 'stop', data: JSON.stringify(failure) };
  }

  /** Gives the message of a batch: the same one to every client. */
  messageOf(batch: Batch): RelayMessage {
    const known = this.#messages.get(batch);
    if (known !== undefined) return known;
    const message = { id: eventId(this.epoch, batch.end), data: batch.lines };
    this.#messages.set(batch, message);
    return message;
  }
}
