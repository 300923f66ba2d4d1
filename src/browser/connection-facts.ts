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

/** The facts about one connection, or about the attempt to open one, for the failure that ends it. */
export interface ConnectionFacts {
  /** Returns whether `hello` has arrived. */
  isOpen(): boolean;
  /** Records that bytes arrived. */
  bytesReceived(): void;
  /**
   * Records the first message, with the time at which the relay sent it.
   *
   * @param shiftMs - how far the clock of this machine was ahead of the relay's on the connection before
   * @returns how far it is ahead now
   */
  opened(relayAt: number, shiftMs: number): number;
  /** Records an event. */
  eventReceived(event: Received): void;
  /** Creates the failure of this connection. Returns a cause that is a `TradeFeedError` unchanged. */
  failure(code: DetectedCode, cause?: unknown): TradeFeedError;
  /** Returns a failure that the relay sent, with the stage, the uptime and the frames of this connection. */
  relayFailure(sent: TradeFeedError): TradeFeedError;
  /** Creates the end of this connection. */
  end(cause: unknown): ConnectionEnd;
}

/**
 * Creates the facts about one connection that begins now.
 *
 * @param now - returns the time in epoch ms
 */
export const createConnectionFacts = (now: () => number): ConnectionFacts => {
  const requestedAt = now();
  let lastBytesAt = requestedAt;
  let openedAt: number | undefined;
  let framesReceived = 0;
  let hasOpened = false;
  let ofRelay: TradeFeedError | undefined;

  const figures = (endedAt: number) => ({ uptimeMs: Math.max(0, endedAt - (openedAt ?? endedAt)), framesReceived });

  const failure = (code: DetectedCode, cause?: unknown): TradeFeedError => {
    if (cause instanceof TradeFeedError) return cause;
    if (openedAt === undefined) return relayError({ code: 'relay-unreachable', cause });
    // A stalled connection may have ended when its last bytes arrived.
    const endedAt = code === 'relay-stalled' ? lastBytesAt : now();
    return relayError({ code, endedAt, cause, ...figures(endedAt) });
  };

  return {
    isOpen: () => openedAt !== undefined,
    bytesReceived: () => {
      lastBytesAt = now();
    },
    opened: (relayAt, shiftMs) => {
      openedAt = now();
      return clockShiftMs(requestedAt, openedAt, relayAt, shiftMs);
    },
    eventReceived: ({ type }) => {
      if (type === 'frame') framesReceived += 1;
      if (type === 'opened') hasOpened = true;
    },
    failure,
    relayFailure: (sent) => (ofRelay = copyFailure(sent, { stage: 'stream', ...figures(now()) })),
    end: (cause) => {
      const ended = failure('invalid-relay-data', cause);
      return { failure: ended, isOfFeed: ended === ofRelay, hasOpened };
    },
  };
};
