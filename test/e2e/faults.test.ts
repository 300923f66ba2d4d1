import { describe, expect, it } from '@jest/globals';
import { tap } from 'rxjs';
import { type FeedEvent, tradeFeedEvents$ } from '../../src/index.js';
import { type FaultyService, startFaultyService, frameErrors } from '../support/faulty-service.js';
import { type Cut, type Faults, type Flow, randomFaults, seededRandom } from '../support/faults.js';
import { until } from '../support/feed.js';

/** Runs a feed until one connection has delivered this number of frames. */
const run = (
  net: FaultyService,
  frames = 100,
  onEvent?: (event: FeedEvent, n: number) => void,
): Promise<FeedEvent[]> => {
  let inRow = 0;
  const events$ = tradeFeedEvents$('market', net.options).pipe(
    tap((event) => {
      inRow = event.type === 'opened' ? 0 : inRow + Number(event.type === 'frame');
      onEvent?.(event, inRow);
    }),
  );
  return until(events$, () => inRow === frames);
};

/** Returns the code and the verdict of each failed attempt. */
const failuresOf = (events: readonly FeedEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [`${event.failure.code}, ${event.failure.verdict}`] : []));

const gapsOf = (events: readonly FeedEvent[]): number => events.filter(({ type }) => type === 'gap').length;

/** Expects these failures, this number of gaps, and complete frames in order. */
const expectLoss = (events: readonly FeedEvent[], failures: readonly string[], gaps: number): void =>
  expect([failuresOf(events), gapsOf(events), frameErrors(events)]).toEqual([failures, gaps, []]);

/** Applies faults to one connection. A feed's first connection carries the ticket request, its second the stream. */
const only =
  (connection: number, faults: Faults) =>
  (n: number): Faults =>
    n === connection ? faults : {};

describe('a fault that only slows a connection down', () => {
  const both = (flow: Flow): Faults => ({ toClient: flow, toServer: flow });
  it.each<[string, number, Faults]>([
    ['delay', 100, both({ delayMs: 30 })],
    ['jitter', 100, both({ jitterMs: 40 })],
    ['a bandwidth limit', 100, { toClient: { bytesPerSecond: 2_000_000 }, toServer: { bytesPerSecond: 2_000 } }],
    ['split segments', 100, both({ segments: 'split' })],
    ['drip', 10, both({ segments: 'drip' })],
  ])('loses no frame: %s', async (_what, frames, faults) => {
    await using net = await startFaultyService({ faults: () => faults });
    expectLoss(await run(net, frames), [], 0);
  });
});

describe('a fault that breaks the stream', () => {
  it.each<[Cut['how'], string]>([
    ['reset', 'connection-lost, renew'],
    ['end', 'connection-lost, renew'],
    ['half-open', 'connection-stalled, renew'],
  ])('within a frame by %s is %s, with one gap', async (how, failure) => {
    const cutAfter = async (afterBytes: number) => {
      const faults = only(2, { toClient: { cut: { afterBytes, how } } });
      await using net = await startFaultyService({ faults }, { idleTimeoutMs: 500 });
      expectLoss(await run(net), [failure], 1);
    };
    await Promise.all([1_000, 2_468].map(cutAfter));
  });

  it('and stops the service leads to attempts until it is back, then to one gap', async () => {
    await using net = await startFaultyService({});
    const { target } = net.proxy;
    const events = await run(net, 100, (event, n) => {
      if (n === 50 && net.proxy.target !== undefined && event.type === 'frame' && event.connection === 1) {
        net.proxy.target = undefined;
        net.proxy.reset();
      }
      if (event.type === 'reconnecting' && event.attempt === 4) net.proxy.target = target;
    });
    const refused = 'ticket-endpoint-unreachable, backoff';
    expectLoss(events, ['connection-lost, renew', refused, refused, refused], 1);
  });
});

describe('random faults', () => {
  const seeds = Array.from({ length: Number(process.env['FAULT_SEEDS'] ?? 2) }, (_, i) => i + 1);
  it.each(seeds)(
    'with seed %i: frames arrive once and in order, every loss has a gap, every ticket is used once',
    async (seed) => {
      const random = seededRandom(seed);
      const faults = (n: number) => (n <= 12 ? randomFaults(random) : {});
      const short = { ticketTimeoutMs: 1_000, handshakeTimeoutMs: 1_000, idleTimeoutMs: 250 };
      await using net = await startFaultyService({ random, faults }, short);
      const events = await run(net, 300);
      expect(frameErrors(events)).toEqual([]);
      // A deadline can cut a slow request short, which gets 400. A used ticket gets 401.
      const wrong = net.serviceEvents.filter(
        (event) => event.type === 'violation' || (event.type === 'handshake-refused' && event.status !== 400),
      );
      expect(wrong).toEqual([]);
    },
  );
});
