import type { ShownEvent } from '../../../src/cli/follow.js';
import { type FailureFacts, Frame, createTradeFeedError } from '../../../src/index.js';

/** The time at which the examples begin, in epoch ms. */
export const start = Date.UTC(2026, 0, 1);

/** Creates a frame at a time in ms. */
export const frameAt = (ms: number, text: string, { isBinary = false, connection = 1 } = {}): Frame =>
  new Frame('market', Buffer.from(text), isBinary, start + ms, connection);

/** Creates the events of a connection that opens, at a time in ms. */
export const opening = (ms: number, connection: number): readonly ShownEvent[] => [
  { type: 'ticket-requested', at: start + ms, feed: 'market' },
  { type: 'ticket-issued', at: start + ms + 10, feed: 'market', expiresAt: '2026-01-01T00:01:00Z' },
  { type: 'opened', at: start + ms + 20, feed: 'market', connection },
];

/** Creates the events of an attempt that ends, and of the reconnect, at a time in ms. */
export const ending = (ms: number, facts: FailureFacts, delayMs: number, attempt = 1): readonly ShownEvent[] => {
  const failure = createTradeFeedError({ endedAt: start + ms, ...facts });
  return [
    { type: 'disconnected', at: start + ms, failure },
    { type: 'reconnecting', at: start + ms, delayMs, attempt, verdict: failure.verdict },
  ];
};

/** Creates the gap at the end of an outage. */
export const gap = (fromMs: number, toMs: number, facts: FailureFacts): ShownEvent => ({
  type: 'gap',
  from: start + fromMs,
  to: start + toMs,
  durationMs: toMs - fromMs,
  failure: createTradeFeedError(facts),
});

/** The failure that the demo causes to show a reconnect. */
export const expired: FailureFacts = { stage: 'stream', closeCode: 4003, reason: 'access expired', uptimeMs: 10_000 };
