import type { RelayedEvent } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failure.js';
import { relayError } from '../protocol/relay-failure.js';
import { clockShiftMs } from './clock-shift.js';

/** How a connection may end, as this side sees it. */
export type Ending = 'lost' | 'silent' | 'unreadable';

const codes = { lost: 'relay-lost', silent: 'relay-stalled', unreadable: 'invalid-relay-data' } as const;

/** What is known of one connection, or of the attempt to open one: what its failure will tell. */
export class Attempt {
  /** When the relay said hello, in epoch ms. Written here alone. */
  openedAt: number | undefined;
  /** By how much the clock of this machine is ahead of the relay's, in ms. Written here alone. */
  shiftMs = 0;
  readonly #now: () => number;
  readonly #askedAt: number;
  #heardAt: number;
  #framesReceived = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#askedAt = now();
    this.#heardAt = this.#askedAt;
  }

  /** Takes note of bytes. */
  heard(): void {
    this.#heardAt = this.#now();
  }

  /** Takes note of the first message, with the time at which the relay sent it. */
  opened(relayAt: number): void {
    this.openedAt = this.#now();
    this.shiftMs = clockShiftMs(this.#askedAt, this.openedAt, relayAt);
  }

  /** Takes note of an event. */
  received({ type }: RelayedEvent): void {
    if (type === 'frame') this.#framesReceived += 1;
  }

  /** Makes the failure that ended it, or gives the one that the relay has told of. */
  failure(ending: Ending, cause?: unknown): TradeFeedError {
    if (cause instanceof TradeFeedError) return cause;
    if (this.openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // The connection may have been dead since it was last heard.
    const endedAt = ending === 'silent' ? this.#heardAt : this.#now();
    const uptimeMs = Math.max(0, endedAt - this.openedAt);
    const framesReceived = this.#framesReceived;
    return relayError({ code: codes[ending], uptimeMs, framesReceived, endedAt, cause });
  }
}
