import { describe, expect, it } from '@jest/globals';
import { nextReconnect, type Reconnect, resolveBackoff } from '../../src/reconnect/policy.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { type Goal, reliabilityModule } from './library.js';

interface Wait {
  readonly at: number;
  readonly delayMs: number;
  readonly attempt: number;
  readonly verdict: string;
  readonly floorMs: number;
}
interface Client {
  readonly waits: readonly Wait[];
}
type Policy = ReturnType<typeof resolveBackoff>;
const { attemptsOf, spreadRules, floorRule } = await reliabilityModule<{
  attemptsOf: (storm: { clients: readonly Client[] }, policy: Policy, seed: number) => object;
  spreadRules: (attempts: object, waveMs: number) => Goal[];
  floorRule: (clients: readonly Client[], policy: Policy) => Goal;
}>('storm/spread.mjs');
const { seeded } = await reliabilityModule<{ seeded: (seed: number) => () => number }>('lib/random.mjs');

const shipped = resolveBackoff();
const failure = createTradeFeedError({ stage: 'ticket', code: 'ticket-endpoint-unreachable', endedAt: 0 });

/** Returns clients that lost their connections within 20 ms and failed three times each. */
const stormOf = (jitter: Policy['jitter'], count = 300): { clients: readonly Client[] } => ({
  clients: Array.from({ length: count }, (_, n) => {
    const policy = { ...shipped, jitter, random: seeded(n + 1) };
    const waits: Wait[] = [];
    let last: Reconnect | undefined;
    let at = n % 20;
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const next = nextReconnect(policy, last, failure);
      if ('stop' in next) throw new Error('It stops.');
      waits.push({ at, delayMs: next.delayMs, attempt: next.attempt, verdict: 'backoff', floorMs: 0 });
      at += next.delayMs;
      last = next;
    }
    return { waits };
  }),
});
const brokenOf = (jitter: Policy['jitter']) =>
  spreadRules(attemptsOf(stormOf(jitter), shipped, 1), 50).map(({ met }) => (met ? 'met' : 'broken'));

describe('the rules of the spread', () => {
  it('hold for the default policy', () => {
    expect(brokenOf('full')).toEqual(['met', 'met', 'met']);
  });

  it('are all broken without jitter', () => {
    expect(brokenOf('none')).toEqual(['broken', 'broken', 'broken']);
  });

  it('are broken with equal jitter', () => {
    expect(brokenOf('equal').slice(0, 2)).toEqual(['broken', 'broken']);
  });

  it('throw if no client waited', () => {
    expect(() => attemptsOf({ clients: [] }, shipped, 1)).toThrow('No client waited');
  });
});

describe('the rule for clients with a Retry-After', () => {
  const limited = createTradeFeedError({ stage: 'ticket', status: 429, retryAfterMs: 5_000, endedAt: 0 });
  const holdsFor = (jitter: Policy['jitter'], count = 300): boolean => {
    const clients = Array.from({ length: count }, (_, n) => {
      const next = nextReconnect({ ...shipped, jitter, random: seeded(n + 1) }, undefined, limited);
      if ('stop' in next) throw new Error('It stops.');
      return { waits: [{ at: 0, delayMs: next.delayMs, attempt: 1, verdict: 'wait', floorMs: 5_000 }] };
    });
    return floorRule(clients, shipped).met;
  };

  it('holds for the default policy, and is broken if all clients return at once', () => {
    expect([holdsFor('full'), holdsFor('none'), holdsFor('full', 0)]).toEqual([true, false, false]);
  });
});
