import { describe, expect, it } from '@jest/globals';
import { tap } from 'rxjs';
import { type FeedEvent, tradeFeedEvents$ } from '../../src/index.js';
import { type BehindFaults, behindFaults, faultsIn } from '../support/behind-faults.js';
import { type Certificate, certificateFor } from '../support/certificate.js';
import type { Cut, Faults, FaultProxy } from '../support/fault-proxy.js';
import { randomFaults, seededRandom } from '../support/fault-random.js';
import { until } from '../support/feed.js';

/** Runs a feed until one connection has brought so many frames. */
const run = (net: BehindFaults, frames = 100, told?: (event: FeedEvent, n: number) => void): Promise<FeedEvent[]> => {
  let inRow = 0;
  const events$ = tradeFeedEvents$('market', net.options).pipe(
    tap((event) => {
      inRow = event.type === 'opened' ? 0 : inRow + Number(event.type === 'frame');
      told?.(event, inRow);
    }),
  );
  return until(events$, () => inRow === frames);
};

/** How each attempt that failed is told: its code and the verdict. */
const failuresOf = (events: readonly FeedEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [`${event.failure.code}, ${event.failure.verdict}`] : []));

const gapsOf = (events: readonly FeedEvent[]): number => events.filter(({ type }) => type === 'gap').length;

/** Of a new feed the first connection is for the ticket, the second for the stream. */
const only =
  (connection: number, faults: Faults) =>
  (n: number): Faults =>
    n === connection ? faults : {};

describe('what only slows a connection down', () => {
  it.each<[string, number, Faults]>([
    ['delay', 100, { toClient: { delayMs: 30 }, toServer: { delayMs: 30 } }],
    ['jitter', 100, { toClient: { jitterMs: 40 }, toServer: { jitterMs: 40 } }],
    ['a bandwidth limit', 100, { toClient: { bytesPerSecond: 2_000_000 }, toServer: { bytesPerSecond: 2_000 } }],
    ['split segments', 100, { toClient: { segments: 'split' }, toServer: { segments: 'split' } }],
    ['coalesced segments', 100, { toClient: { segments: 'coalesced' }, toServer: { segments: 'coalesced' } }],
    ['drip', 10, { toClient: { segments: 'drip' }, toServer: { segments: 'drip' } }],
    ['a connection that is made late', 100, { connectAfter: 'next' }],
  ])('costs no frame: %s', async (_what, frames, faults) => {
    await using net = await behindFaults({ faults: () => faults, holdMs: 50 });
    const events = await run(net, frames);
    expect([failuresOf(events), gapsOf(events), faultsIn(events)]).toEqual([[], 0, []]);
  });
});

describe('what breaks the stream', () => {
  it.each<[Cut['how'], string]>([
    ['reset', 'connection-lost, renew'],
    ['end', 'connection-lost, renew'],
    ['half-open', 'connection-stalled, renew'],
  ])('anywhere in a frame, by %s, is %s, and told by one gap', async (how, failure) => {
    const cutAfter = async (afterBytes: number) => {
      const faults = only(2, { toClient: { cut: { afterBytes, how } } });
      await using net = await behindFaults({ faults }, { idleTimeoutMs: 100 });
      const events = await run(net);
      expect([failuresOf(events), gapsOf(events), faultsIn(events)]).toEqual([[failure], 1, []]);
    };
    await Promise.all([1_000, 1_357, 2_468].map(cutAfter));
  });

  it.each<['reset' | 'end' | 'halfOpen', string]>([
    ['reset', 'connection-lost, renew'],
    ['end', 'connection-lost, renew'],
    ['halfOpen', 'connection-stalled, renew'],
  ])('at any moment, by %s, is %s, and told by one gap', async (method, failure) => {
    await using net = await behindFaults({}, { idleTimeoutMs: 100 });
    const hit = (proxy: FaultProxy) => proxy[method]();
    let hits = 0;
    const events = await run(net, 100, (_event, n) => {
      if (n === 50 && hits++ === 0) hit(net.proxy);
    });
    expect([failuresOf(events), gapsOf(events), faultsIn(events)]).toEqual([[failure], 1, []]);
  });

  it('and the service with it: attempts go on until it is back, in one gap', async () => {
    await using net = await behindFaults({});
    const { target } = net.proxy;
    const events = await run(net, 100, (event, n) => {
      if (n === 50 && net.proxy.target !== undefined && event.type === 'frame' && event.connection === 1) {
        net.proxy.target = undefined;
        net.proxy.reset();
      }
      if (event.type === 'reconnecting' && event.attempt === 4) net.proxy.target = target;
    });
    expect(failuresOf(events)).toEqual([
      'connection-lost, renew',
      ...Array<string>(3).fill('ticket-endpoint-unreachable, backoff'),
    ]);
    expect([gapsOf(events), faultsIn(events)]).toEqual([1, []]);
  });
});

describe('what breaks an attempt', () => {
  const unreachable = { ticket: 'ticket-endpoint-unreachable, backoff', handshake: 'handshake-unreachable, backoff' };
  const cuts: readonly [string, Faults][] = [
    ['a refused connection', { refuse: true }],
    ...(['reset', 'end'] as const).flatMap((how): [string, Faults][] => [
      [`an answer cut in its head (${how})`, { toClient: { cut: { afterBytes: 10, how } } }],
      [`a connection cut before a byte (${how})`, { toClient: { cut: { afterBytes: 0, how } } }],
    ]),
    ['a request cut (reset)', { toServer: { cut: { afterBytes: 100, how: 'reset' } } }],
  ];
  /** The first attempt meets the fault at its ticket request, or at its handshake; the second one does not. */
  const bothFail = async (faults: Faults, tls?: Certificate): Promise<void> => {
    const fails = async (connection: number, failure: string) => {
      await using net = await behindFaults({ faults: only(connection, faults), ...(tls && { tls }) });
      const events = await run(net, 10);
      expect([failuresOf(events), gapsOf(events), faultsIn(events)]).toEqual([[failure], 0, []]);
    };
    await Promise.all([fails(1, unreachable.ticket), fails(2, unreachable.handshake)]);
  };

  it.each(cuts)('is tried again, without a gap: %s', (_what, faults) => bothFail(faults));

  it.each(['reset', 'end'] as const)('in the middle of a TLS handshake: %s', async (how) => {
    await bothFail({ toClient: { cut: { afterBytes: 100, how } } }, await certificateFor());
  });

  it('is given up at its deadline and tried again: a connection that is half-open, wherever it became so', async () => {
    const halfOpen = (afterBytes: number) => ({ cut: { afterBytes, how: 'half-open' as const } });
    const plain = [{ toClient: halfOpen(0) }, { toClient: halfOpen(10) }, { toServer: halfOpen(100) }];
    const tls = await certificateFor();
    await Promise.all([...plain.map((faults) => bothFail(faults)), bothFail({ toClient: halfOpen(100) }, tls)]);
  });

  it('in the body of a ticket', async () => {
    await using net = await behindFaults({ faults: only(1, { toClient: { cut: { afterBytes: 350, how: 'end' } } }) });
    const events = await run(net, 10);
    expect([failuresOf(events), gapsOf(events)]).toEqual([[unreachable.ticket], 0]);
  });
});

describe('what chance brings', () => {
  const seeds = Array.from({ length: Number(process.env['FAULT_SEEDS'] ?? 2) }, (_, i) => i + 1);
  it.each(seeds)('seed %i: frames once and in order, each loss told, each ticket used once', async (seed) => {
    const random = seededRandom(seed);
    await using net = await behindFaults({ random, faults: (n) => (n <= 12 ? randomFaults(random) : {}) });
    const events = await run(net, 300);
    expect(faultsIn(events)).toEqual([]);
    const wrong = net.seen.filter((told) => told.type === 'violation' || told.type === 'handshake-refused');
    expect(wrong).toEqual([]);
  });
});
