/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { map, type Observable, tap, timer } from 'rxjs';
import { type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { type ServiceEvent, startTradeFeedService } from '../../src/testing/index.js';
import { type FaultProxyOptions, startFaultProxy } from '../support/fault-proxy.js';
import { type Cut, type Faults, type Flow, randomFaults, seededRandom } from '../support/faults.js';
import { optionsFor, until } from '../support/feed.js';

type FaultyService = Awaited<ReturnType<typeof startFaultyService>>;

/** Starts a service whose n-th payload starts with n, and a proxy that every client connects through. */
const startFaultyService = async (network: FaultProxyOptions, options: TradeFeedOptions = {}) => {
  const proxy = await startFaultProxy(network);
  const publicUrl = `http://127.0.0.1:${proxy.port}`;
  const service = await startTradeFeedService({
    publicUrl,
    sources: { market: counted$ },
    limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 0 },
  });
  proxy.target = Number(new URL(service.baseUrl).port);
  const serviceEvents: ServiceEvent[] = [];
  service.events$.subscribe((event) => serviceEvents.push(event));
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return {
    proxy,
    options: optionsFor({ baseUrl: publicUrl }, { apiKey, ...options }),
    serviceEvents,
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await service.shutdown();
    },
  };
};

// From a few bytes to more than a single read.
const fillingOf = (n: number): number => (n % 100 === 99 ? 70_000 : n % 100);
const counted$: Observable<string> = timer(0, 1).pipe(map((n) => `${n} ${'x'.repeat(fillingOf(n))}`));

/** Returns the errors in the frames of a feed: truncated frames, frames out of order, and losses without a gap. */
const frameErrors = (events: readonly FeedEvent[]): string[] => {
  const wrong: string[] = [];
  let last: number | undefined;
  let mayMiss = true;
  for (const event of events) {
    if (event.type === 'gap' || event.type === 'opened') mayMiss = event.type === 'gap' || last === undefined;
    if (event.type !== 'frame') continue;
    const [digits = '', filling = ''] = event.text().split(' ');
    const n = Number(digits);
    if (filling.length !== fillingOf(n)) wrong.push(`${n} is not whole`);
    if (last !== undefined && (mayMiss ? n <= last : n !== last + 1)) wrong.push(`${n} after ${last}`);
    mayMiss = false;
    last = n;
  }
  return wrong;
};

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
    // A large frame would take seconds.
    ['drip', 2, both({ segments: 'drip' })],
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
