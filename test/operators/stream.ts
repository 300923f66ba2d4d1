import { expect } from '@jest/globals';
import type { Observable } from 'rxjs';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type {
  Disconnected,
  Gap,
  Opened,
  Reconnecting,
  Stopped,
  TicketIssued,
  TicketRequested,
  Watermark,
} from '../../src/protocol/event.js';
import type { FailureFacts } from '../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../src/protocol/frame.js';

/** Creates a text frame. */
export const frameOf = (text: string, receivedAt = 0, connection = 1): Frame =>
  new Frame('market', Buffer.from(text), false, receivedAt, connection);

/** Creates a binary frame. */
export const binaryFrame = (...bytes: number[]): Frame => new Frame('market', Buffer.from(bytes), true, 0, 1);

/** Creates a failure of the stage `stream`. */
export const lost = (endedAt: number, facts: Partial<FailureFacts> = {}) =>
  createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt, ...facts });

export const requested = (at: number): TicketRequested => ({ type: 'ticket-requested', at, feed: 'market' });
export const issued = (at: number): TicketIssued => ({
  type: 'ticket-issued',
  at,
  feed: 'market',
  expiresAt: '2026-11-20T12:00:00Z',
});
/** Creates the `opened` of a connection that has still to show from when it is complete. */
export const opening = (at: number, connection = 1): Opened => ({ type: 'opened', at, feed: 'market', connection });
/** Creates the `opened` of a connection that is complete at once, as with `deliveryDelayMs: 0`. */
export const opened = (at: number, connection = 1): Opened => ({ ...opening(at, connection), completeFrom: at });
/** Creates the `opened` for a new subscriber of a complete feed. It may lack frames of that ms. */
export const joined = (at: number, connection = 1): Opened => ({ ...opening(at, connection), completeFrom: at + 1 });
export const disconnected = (at: number, facts: Partial<FailureFacts> = {}): Disconnected => ({
  type: 'disconnected',
  at,
  failure: lost(at, facts),
});
export const reconnecting = (at: number, delayMs: number, attempt = 1): Reconnecting => ({
  type: 'reconnecting',
  at,
  delayMs,
  attempt,
  verdict: 'renew',
});
export const stopped = (at: number, facts: Partial<FailureFacts> = {}): Stopped => ({
  type: 'stopped',
  at,
  failure: lost(at, { closeCode: 4001, reason: 'connection replaced', ...facts }),
});
export const watermark = (at: number): Watermark => ({ type: 'watermark', at });
export const gapOf = (from: number, to: number, failure = lost(from)): Gap => ({
  type: 'gap',
  from,
  to,
  durationMs: to - from,
  failure,
});

/** Returns what an Observable emits at once. Its error comes last. */
export const emittedBy = <T>(source$: Observable<T>): T[] => {
  const seen: T[] = [];
  source$.subscribe({ next: (value) => seen.push(value), error: (error) => seen.push(error as T) });
  return seen;
};

/** Runs a test in virtual time. */
export const marbles = (test: (helpers: RunHelpers, scheduler: TestScheduler) => void): void => {
  const scheduler = new TestScheduler((actual, expected) => {
    expect(actual).toEqual(expected);
  });
  scheduler.run((helpers) => {
    test(helpers, scheduler);
  });
};
