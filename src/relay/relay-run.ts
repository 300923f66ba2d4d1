import { isRelayedValue } from '../protocol/event.js';
import { copyFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { StoredLine } from '../protocol/place.js';
import { Block, type Reached } from './block.js';
import type { Checkpoint } from './chunk.js';
import { type Batch, EventLog } from './event-log.js';
import { publicFailure, publicJson } from './public-json.js';
import { minRetryMs } from './refusals.js';
import type { RelayMessage } from './relay-message.js';
import type { RelayOptions, RelaySettings } from './relay-options.js';
import { idAt } from './resume.js';
import type { TopicEvent } from './topic.js';

type RunSettings = Pick<RelaySettings, 'capacity' | 'capacityBytes' | 'maxReplayBytes' | 'scheduler'> &
  Pick<RelayOptions, 'cluster' | 'log'>;

/** One subscription to a source, shared by all clients: the log of its events, and how it ended. */
export class RelayRun {
  readonly log: EventLog;
  /** Whether the source may have a line, whose places are then the ids of messages. */
  readonly isShared: boolean;
  /** Where what the memory lacks may be. */
  readonly store: StoredLine | undefined;
  ended: { readonly failure?: TradeFeedError } | undefined;
  readonly #cluster: RunSettings['cluster'];
  /** Pages that have left together return together, and receive the same blocks. */
  #last: { readonly newest: Checkpoint; readonly block: Block } | undefined;

  constructor(settings: RunSettings) {
    this.log = new EventLog(settings, () => settings.scheduler.now());
    this.#cluster = settings.cluster;
    this.isShared = settings.cluster !== undefined;
    this.store = [settings.log, settings.cluster].find(isStored);
  }

  /** Adds an event to the log. */
  append(event: TopicEvent): void {
    const isOwn = event.type === 'frame' || !isRelayedValue(event);
    const logged = isOwn ? event : ({ type: 'value', at: event.at, json: publicJson(event.value) } as const);
    this.log.append(logged, this.#cluster?.position);
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

  /** Returns the next events after a stored position, for all clients that are there; `undefined` at the newest one. */
  blockAfter(position: Checkpoint): Block | undefined {
    const { newest } = this.log;
    if (this.#last?.newest === newest && this.#last.block.from === position.offset) return this.#last.block;
    const block = this.seal(position);
    this.#last = block && { newest, block };
    return block;
  }

  /**
   * Encodes the next events after a stored position.
   *
   * @param least - what the clients that are there have received: the watermarks of a client don't decrease
   */
  seal(position: Checkpoint, least: Omit<Reached, 'end'> = nothing): Block | undefined {
    const batch = this.log.read(position);
    return batch && this.blockOf(position, batch, least);
  }

  /** Encodes a batch after a position. Without lines it's only a watermark. */
  blockOf({ offset }: Checkpoint, batch: Batch, least: Omit<Reached, 'end'>): Block {
    const { end, fields } = batch;
    const watermark = Math.max(batch.watermark, least.watermark);
    const reached = Math.max(end.at, watermark, least.reached);
    return new Block({ from: offset, end, watermark, reached }, fields, idAt(end, reached), this.log.memory);
  }
}

const isStored = (line: Partial<StoredLine> | undefined): line is StoredLine => line?.stored !== undefined;

/** Before the first block. */
export const nothing = { watermark: -Infinity, reached: -Infinity };
