import { describe, expect, it } from '@jest/globals';
import { Attempt } from '../../src/browser/attempt.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import { opened } from '../operators/stream.js';
import { frame } from '../relay/support.js';

const attemptAt = (at: number) => {
  const clock = { now: at };
  return { clock, attempt: new Attempt(() => clock.now) };
};

describe('Attempt', () => {
  it.each(['relay-lost', 'relay-stalled', 'invalid-relay-data'] as const)(
    'that never opened could not reach the relay: %s',
    (ending) => {
      const { attempt } = attemptAt(1_000);
      const cause = new Error('ECONNREFUSED');
      expect(attempt.failure(ending, cause)).toMatchObject({
        ...{ code: 'relay-unreachable', stage: 'handshake', verdict: 'backoff', uptimeMs: 0, framesReceived: 0 },
        cause,
      });
    },
  );

  it.each([
    ['relay-lost', 'relay-lost', 9_000, 7_000],
    ['relay-stalled', 'relay-stalled', 5_000, 3_000],
    ['invalid-relay-data', 'invalid-relay-data', 9_000, 7_000],
  ] as const)(
    'that was open tells how long, until when, and how many frames it had: %s',
    (ending, code, endedAt, uptimeMs) => {
      const { clock, attempt } = attemptAt(1_000);
      clock.now = 2_000;
      attempt.heard();
      attempt.opened(1_500, 0);
      for (const event of [opened(2_000), frame('a'), frame('b')]) attempt.received(event);
      clock.now = 5_000;
      attempt.heard();
      clock.now = 9_000;
      expect(attempt.failure(ending)).toMatchObject({ code, stage: 'stream', uptimeMs, framesReceived: 2, endedAt });
    },
  );

  it('gives the failure that the relay has told of', () => {
    const { attempt } = attemptAt(1_000);
    const told = relayError({ status: 503, retryAfterMs: 5_000 });
    expect(attempt.failure('relay-lost', told)).toBe(told);
    attempt.opened(1_000, 0);
    expect(attempt.failure('invalid-relay-data', told)).toBe(told);
  });

  it('takes a failure that the relay sent with the stage, the uptime and the frames of this connection', () => {
    const { clock, attempt } = attemptAt(1_000);
    attempt.opened(1_000, 0);
    for (const event of [opened(1_000), frame('a')]) attempt.received(event);
    clock.now = 9_000;
    const previous = relayError({ code: 'relay-lost', endedAt: 3 });
    const facts = { stage: 'ticket', status: 403, uptimeMs: 5, framesReceived: 6, endedAt: 7 } as const;
    const feedStop = copyFailure(createTradeFeedError(facts), { previous });
    const sent = attempt.sent(feedStop);
    expect(sent).toBeInstanceOf(TradeFeedError);
    expect(sent.toJSON()).toEqual({ ...feedStop.toJSON(), stage: 'stream', uptimeMs: 8_000, framesReceived: 1 });
    expect(attempt.ended(sent)).toEqual({ failure: sent, isOfFeed: true, hasOpened: true });
  });

  it.each<[string, (attempt: Attempt) => unknown, object]>([
    ['that never opened', () => undefined, { isOfFeed: false, hasOpened: false }],
    ['that was greeted', (attempt) => attempt.opened(1, 0), { isOfFeed: false, hasOpened: false }],
    [
      'whose feed was opened',
      (attempt) => {
        attempt.opened(1, 0);
        for (const event of [frame('a'), opened(1), frame('b')]) attempt.received(event);
      },
      { isOfFeed: false, hasOpened: true },
    ],
  ])('%s says so at its end', (_what, happens, facts) => {
    const { attempt } = attemptAt(1_000);
    happens(attempt);
    const cause = new Error('below');
    const code = attempt.openedAt === undefined ? 'relay-unreachable' : 'invalid-relay-data';
    expect(attempt.ended(cause)).toMatchObject({ ...facts, failure: { code, cause } });
  });

  it('knows by how much the clocks differ from the first message on', () => {
    const { clock, attempt } = attemptAt(1_000_000);
    clock.now = 1_000_200;
    expect(attempt.opened(400_100, 0)).toBe(600_000);
    expect(attempt.opened(400_100, 600_900)).toBe(600_900);
  });

  it('was not up for less than no time, when the clock was set back', () => {
    const { clock, attempt } = attemptAt(1_000);
    attempt.opened(1_000, 0);
    clock.now = 500;
    expect(attempt.failure('relay-lost').uptimeMs).toBe(0);
  });
});
