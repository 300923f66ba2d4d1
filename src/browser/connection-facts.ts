import type { Received } from '../protocol/event-line.js';
import { copyFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { relayError } from '../protocol/failures/relay-error.js';
import { clockShiftMs } from './clock-shift.js';

/** The failures of a connection that the client detects. */
export type DetectedCode = 'relay-lost' | 'relay-stalled' | 'invalid-relay-data';

/** The end of one connection to a relay, or of the attempt to open one. */
export interface ConnectionEnd {
  readonly failure: TradeFeedError;
  /** Whether the relay sent the failure: its verdict `stop` then means that the feed of the relay has stopped. */
  readonly isOfFeed: boolean;
  /** Whether the feed was opened during this connection. */
  readonly hasOpened: boolean;
}

/** Collects the facts about one connection, or about the attempt to open one, for the failure that ends it. */
export class ConnectionFacts {
  /** When `hello` arrived, in epoch ms. Written only in this class. */
  openedAt: number | undefined;
  readonly #now: () => number;
  readonly #requestedAt: number;
  #lastBytesAt: number;
  #framesReceived = 0;
  #hasOpened = false;
  #relayFailure: TradeFeedError | undefined;

  constructor(now: () => number) {
    this.#now = now;
    this.#requestedAt = now();
    this.#lastBytesAt = this.#requestedAt;
  }

  /** Records that bytes arrived. */
  bytesReceived(): void {
    this.#lastBytesAt = this.#now();
  }

  /**
   * Records the first message, with the time at which the relay sent it.
   *
   * @param shiftMs - how far the clock of this machine was ahead of the relay's on the connection before
   * @returns how far it is ahead now
   */
  opened(relayAt: number, shiftMs: number): number {
    this.openedAt = this.#now();
    return clockShiftMs(this.#requestedAt, this.openedAt, relayAt, shiftMs);
  }

  /** Records an event. */
  eventReceived({ type }: Received): void {
    if (type === 'frame') this.#framesReceived += 1;
    if (type === 'opened') this.#hasOpened = true;
  }

  /** Creates the failure of this connection. Returns a cause that is a `TradeFeedError` unchanged. */
  failure(code: DetectedCode, cause?: unknown): TradeFeedError {
    if (cause instanceof TradeFeedError) return cause;
    if (this.openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // A stalled connection may have ended when its last bytes arrived.
    const endedAt = code === 'relay-stalled' ? this.#lastBytesAt : this.#now();
    return relayError({ code, endedAt, cause, ...this.#figures(endedAt) });
  }

  /** Returns a failure that the relay sent, with the stage, the uptime and the frames of this connection. */
  relayFailure(sent: TradeFeedError): TradeFeedError {
    return (this.#relayFailure = copyFailure(sent, { stage: 'stream', ...this.#figures(this.#now()) }));
  }

  /** Creates the end of this connection. */
  end(cause: unknown): ConnectionEnd {
    const failure = this.failure('invalid-relay-data', cause);
    return { failure, isOfFeed: failure === this.#relayFailure, hasOpened: this.#hasOpened };
  }

  #figures(endedAt: number): { readonly uptimeMs: number; readonly framesReceived: number } {
    return { uptimeMs: Math.max(0, endedAt - (this.openedAt ?? endedAt)), framesReceived: this.#framesReceived };
  }
}
