import { TradeFeedError } from '../protocol/failure.js';
import { relayError } from '../protocol/relay-failure.js';
import { clockShiftMs } from './clock-shift.js';
import type { Received } from './read-event.js';

/** How a connection may end, as this side sees it. */
export type Ending = 'relay-lost' | 'relay-stalled' | 'invalid-relay-data';

/** What is known of one connection, or of the attempt to open one: what its failure will tell. */
export class Attempt {
  /** When the relay said hello, in epoch ms. Written here alone. */
  openedAt: number | undefined;
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

  /**
   * Takes note of the first message, with the time at which the relay sent it.
   *
   * @param shiftMs - by how much the clock of this machine was ahead of the relay's on the connection before
   * @returns by how much it is
   */
  opened(relayAt: number, shiftMs: number): number {
    this.openedAt = this.#now();
    return clockShiftMs(this.#askedAt, this.openedAt, relayAt, shiftMs);
  }

  /** Takes note of an event. */
  received({ type }: Received): void {
    if (type === 'frame') this.#framesReceived += 1;
  }

  /** Makes the failure that ended it, or gives the one that the relay has told of. */
  failure(code: Ending, cause?: unknown): TradeFeedError {
    if (cause instanceof TradeFeedError) return cause;
    if (this.openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // The connection may have been dead since it was last heard.
    const endedAt = code === 'relay-stalled' ? this.#heardAt : this.#now();
    const uptimeMs = Math.max(0, endedAt - this.openedAt);
    const framesReceived = this.#framesReceived;
    return relayError({ code, uptimeMs, framesReceived, endedAt, cause });
  }
}
