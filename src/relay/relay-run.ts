import { writeEventLine } from '../protocol/event-line.js';
import { isRelayedValue } from '../protocol/event.js';
import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { formatPlace } from '../protocol/place.js';
import type { Checkpoint } from './entries.js';
import { type Batch, EventLog } from './event-log.js';
import { publicFailure, publicJson } from './public-json.js';
import { minRetryMs } from './refusals.js';
import { dataFields, idField, messageOfBytes, type RelayMessage } from './relay-message.js';
import type { RelayOptions, RelaySettings } from './relay-options.js';
import type { TopicEvent } from './topic.js';

type RunSettings = Pick<RelaySettings, 'capacity' | 'capacityBytes' | 'maxReplayBytes' | 'scheduler'> &
  Pick<RelayOptions, 'cluster'>;

/** One subscription to a source, shared by all clients: the log of its events, and how it ended. */
export class RelayRun {
  readonly log: EventLog;
  /** Whether the source may have a line, whose places are then the ids of messages. */
  readonly isShared: boolean;
  ended: { readonly failure?: TradeFeedError } | undefined;
  readonly #cluster: RunSettings['cluster'];
  /** Most clients receive the batch that the one before has received. */
  #last: { readonly batch: Batch; readonly message: RelayMessage } | undefined;

  constructor(settings: RunSettings) {
    this.log = new EventLog(settings, () => settings.scheduler.now());
    this.#cluster = settings.cluster;
    this.isShared = settings.cluster !== undefined;
  }

  /** Adds an event to the log. `stopped` becomes `disconnected`, because the clients reconnect. */
  append(event: TopicEvent): void {
    const shared = this.#cluster?.position;
    if (isRelayedValue(event)) this.log.append({ type: 'value', at: event.at, json: publicJson(event.value) }, shared);
    else this.log.append(event.type === 'stopped' ? { ...event, type: 'disconnected' } : event, shared);
  }

  complete(): void {
    this.log.end();
    this.ended = {};
  }

  stop(error: unknown): void {
    this.log.end();
    this.ended = { failure: publicFailure(error) };
  }

  /**
   * Returns a client's last message; `undefined` while the source is active.
   *
   * @param isLate - whether the client joined after a stop. It gets a delay, or a page would soon use up its retries
   */
  lastMessage(isLate: boolean): Pick<RelayMessage, 'type' | 'data'> | undefined {
    if (this.ended === undefined) return undefined;
    const { failure } = this.ended;
    if (failure === undefined) return { type: 'complete', data: '{}' };
    const retryAfterMs = Math.max(minRetryMs, failure.retryAfterMs ?? 0);
    return { type: 'connect-again', data: JSON.stringify(isLate ? copyFailure(failure, { retryAfterMs }) : failure) };
  }

  /** Returns the id of a position, for a client that has reached the time `at` (epoch ms). */
  idAt(checkpoint: Checkpoint, at: number): string {
    const { line, gen, offset, frames } = checkpoint.shared ?? checkpoint;
    // After damage in a log, its frames are unknown. Then no later place has so many that they could be subtracted.
    const counted = Number.isNaN(frames) ? Number.MAX_SAFE_INTEGER : frames;
    return formatPlace({ line, gen, offset, frames: counted, at, complete: checkpoint.complete });
  }

  /** Returns the message of a batch: the same object for every client. */
  messageOf(batch: Batch): RelayMessage {
    if (this.#last?.batch === batch) return this.#last.message;
    const { fields, end, watermark } = batch;
    const last = watermark === -Infinity ? '' : dataFields(withWatermark('', watermark));
    const id = this.idAt(end, reachedWith(batch));
    const message = messageOfBytes(id, Buffer.concat([...fields, Buffer.from(last + idField(id))]));
    this.#last = { batch, message };
    return message;
  }
}

/** Returns the time a client reaches with a batch, in epoch ms. */
export const reachedWith = ({ end, watermark }: Batch): number => Math.max(end.at, watermark);

/** Appends a watermark, if there is one. Clients use it to close windows. */
export const withWatermark = (lines: string, at: number): string => {
  if (at === -Infinity) return lines;
  const watermark = writeEventLine({ type: 'watermark', at });
  return lines === '' ? watermark : `${lines}\n${watermark}`;
};
