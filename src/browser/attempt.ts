import { copyFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { relayError } from '../protocol/failures/relay-error.js';
import { clockShiftMs } from './clock-shift.js';
import type { Received } from '../protocol/event-line.js';

/** How a connection may end, as this side sees it. */
export type Ending = 'relay-lost' | 'relay-stalled' | 'invalid-relay-data';

/** The end of one connection to a relay, or of the attempt to open one. */
export interface Ended {
  readonly failure: TradeFeedError;
  /** Whether the relay sent the failure: a `stop` is then one of the feed behind the relay. */
  readonly isOfFeed: boolean;
  /** Whether the feed was opened during this connection. */
  readonly hasOpened: boolean;
}

/** Collects the facts about one connection, or about the attempt to open one, for its failure. */
export class Attempt {
  /** When the relay said hello, in epoch ms. Written here alone. */
  openedAt: number | undefined;
  readonly #now: () => number;
  readonly #askedAt: number;
  #heardAt: number;
  #framesReceived = 0;
  #hasOpened = false;
  #sent: TradeFeedError | undefined;

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
    if (type === 'opened') this.#hasOpened = true;
  }

  /** Makes the failure that ended it; returns one that is made already. */
  failure(code: Ending, cause?: unknown): TradeFeedError {
    if (cause instanceof TradeFeedError) return cause;
    if (this.openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // The connection may have been dead since it was last heard.
    const endedAt = code === 'relay-stalled' ? this.#heardAt : this.#now();
    return relayError({ code, endedAt, cause, ...this.#facts(endedAt) });
  }

  /** Takes a failure that the relay sent: with its words and times, but the stage, the uptime and the frames of this connection. */
  sent(failure: TradeFeedError): TradeFeedError {
    return (this.#sent = copyFailure(failure, { stage: 'stream', ...this.#facts(this.#now()) }));
  }

  /** Makes the end of it, by what went wrong. */
  ended(cause: unknown): Ended {
    const failure = this.failure('invalid-relay-data', cause);
    return { failure, isOfFeed: failure === this.#sent, hasOpened: this.#hasOpened };
  }

  #facts(endedAt: number): { readonly uptimeMs: number; readonly framesReceived: number } {
    return { uptimeMs: Math.max(0, endedAt - (this.openedAt ?? endedAt)), framesReceived: this.#framesReceived };
  }
}
