import { describe, expect, it } from '@jest/globals';
import { type ConnectionFacts, createConnectionFacts } from '../../src/browser/connection-facts.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import { opened } from '../operators/stream.js';
import { frame } from '../relay/support.js';

const factsAt = (at: number) => {
  const clock = { now: at };
  return { clock, facts: createConnectionFacts(() => clock.now) };
};

describe('createConnectionFacts', () => {
  it.each(['relay-lost', 'relay-stalled', 'invalid-relay-data'] as const)(
    'without hello has the failure relay-unreachable: %s',
    (ending) => {
      const { facts } = factsAt(1_000);
      const cause = new Error('ECONNREFUSED');
      expect(facts.failure(ending, cause)).toMatchObject({
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
    'with hello has the failure with its uptime, its end and its frames: %s',
    (ending, code, endedAt, uptimeMs) => {
      const { clock, facts } = factsAt(1_000);
      clock.now = 2_000;
      facts.bytesReceived();
      facts.opened(1_500, 0);
      for (const event of [opened(2_000), frame('a'), frame('b')]) facts.eventReceived(event);
      clock.now = 5_000;
      facts.bytesReceived();
      clock.now = 9_000;
      expect(facts.failure(ending)).toMatchObject({ code, stage: 'stream', uptimeMs, framesReceived: 2, endedAt });
    },
  );

  it('returns a failure that is a TradeFeedError unchanged', () => {
    const { facts } = factsAt(1_000);
    const sent = relayError({ status: 503, retryAfterMs: 5_000 });
    expect(facts.failure('relay-lost', sent)).toBe(sent);
    facts.opened(1_000, 0);
    expect(facts.failure('invalid-relay-data', sent)).toBe(sent);
  });

  it('uses a failure of the relay with the stage, the uptime and the frames of this connection', () => {
    const { clock, facts } = factsAt(1_000);
    facts.opened(1_000, 0);
    for (const event of [opened(1_000), frame('a')]) facts.eventReceived(event);
    clock.now = 9_000;
    const previous = relayError({ code: 'relay-lost', endedAt: 3 });
    const other = { stage: 'ticket', status: 403, uptimeMs: 5, framesReceived: 6, endedAt: 7 } as const;
    const feedStop = copyFailure(createTradeFeedError(other), { previous });
    const sent = facts.relayFailure(feedStop);
    expect(sent).toBeInstanceOf(TradeFeedError);
    expect(sent.toJSON()).toEqual({ ...feedStop.toJSON(), stage: 'stream', uptimeMs: 8_000, framesReceived: 1 });
    expect(facts.end(sent)).toEqual({ failure: sent, isOfFeed: true, hasOpened: true });
  });

  it.each<[string, (facts: ConnectionFacts) => unknown, object]>([
    ['without hello', () => undefined, { isOfFeed: false, hasOpened: false }],
    ['with hello', (facts) => facts.opened(1, 0), { isOfFeed: false, hasOpened: false }],
    [
      'with an opened feed',
      (facts) => {
        facts.opened(1, 0);
        for (const event of [frame('a'), opened(1), frame('b')]) facts.eventReceived(event);
      },
      { isOfFeed: false, hasOpened: true },
    ],
  ])('%s reports that at its end', (_what, happens, expected) => {
    const { facts } = factsAt(1_000);
    happens(facts);
    const cause = new Error('below');
    const code = facts.isOpen() ? 'invalid-relay-data' : 'relay-unreachable';
    expect(facts.end(cause)).toMatchObject({ ...expected, failure: { code, cause } });
  });

  it('returns the difference of the clocks with the first message', () => {
    const { clock, facts } = factsAt(1_000_000);
    clock.now = 1_000_200;
    expect(facts.opened(400_100, 0)).toBe(600_000);
    expect(facts.opened(400_100, 600_900)).toBe(600_900);
  });

  it('has no negative uptime when the clock was set back', () => {
    const { clock, facts } = factsAt(1_000);
    facts.opened(1_000, 0);
    clock.now = 500;
    expect(facts.failure('relay-lost').uptimeMs).toBe(0);
  });
});
