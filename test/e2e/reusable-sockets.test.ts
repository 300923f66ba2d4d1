import { describe, expect, it } from '@jest/globals';
import { noop, type Subscription, VirtualTimeScheduler } from 'rxjs';
import { tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor, until } from '../support/feed.js';
import { type Fate, portOf } from '../support/gate.js';
import {
  after,
  dropped,
  expired,
  frames,
  stable,
  startTwoOrigins,
  turns,
  type TwoOrigins,
} from '../support/two-origins.js';
import { waitFor } from '../support/wait-for.js';
import { issue, refuse, startWire, type TicketStep } from '../support/wire.js';

const tls = await certificateFor();
const untrusted = await certificateFor();
const otherName = await certificateFor('elsewhere.example');
const ca = { tls: { ca: tls.cert } };

/** Returns the first failure of a ticket request or handshake after a number of successful connections. */
const failureAfter = async (
  service: TwoOrigins,
  good: number,
  options: TradeFeedOptions,
): Promise<Record<string, unknown>> => {
  const failed = new Promise<Record<string, unknown>>((resolve) => {
    const report = (failure: { stage: string; code: string; verdict: string; status?: number | undefined }) => {
      const { stage, code, verdict, status } = failure;
      if (stage !== 'stream') resolve({ stage, code, verdict, status });
      return stage !== 'stream';
    };
    const subscription: Subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ...options }),
    ).subscribe({
      next: (event) => {
        if (event.type === 'disconnected' && report(event.failure)) queueMicrotask(() => subscription.unsubscribe());
      },
      error: report,
    });
  });
  const failure = await failed;
  // Fates belong to connections. On a busy machine, one that took too long was replaced before its handshake.
  expect(service.stream.handshakes.length).toBeGreaterThanOrEqual(Math.min(good, 1));
  return failure;
};

describe('a failure', () => {
  interface Fault {
    readonly what: string;
    readonly fate?: Fate;
    readonly tls?: typeof tls;
    readonly ticket?: TicketStep;
    readonly options?: TradeFeedOptions;
  }
  const faults: readonly Fault[] = [
    { what: 'a reset', fate: 'reset' },
    { what: 'an end', fate: 'end' },
    { what: 'no TLS', fate: 'garbage' },
    { what: 'no answer', fate: 'silence', options: { handshakeTimeoutMs: 1_500 } },
    { what: 'an unknown CA', tls: untrusted },
    { what: 'a certificate for another host', tls: otherName, options: { tls: { ca: [tls.cert, otherName.cert] } } },
    { what: '401', ticket: refuse(401) },
    { what: '403', ticket: refuse(403) },
    { what: '429', ticket: refuse(429, { 'retry-after': '1' }) },
    { what: '500', ticket: refuse(500) },
    { what: '307', ticket: refuse(307, { location: 'https://127.0.0.1:1' }) },
    { what: 'an invalid ticket', ticket: issue({ expires_at: 'soon' }) },
    { what: 'no ticket', ticket: noop, options: { ticketTimeoutMs: 1_500 } },
    { what: 'no answer to a ticket request', ticket: dropped },
  ];

  it.each(faults)(
    'is the same with and without reused sockets: $what',
    async ({ fate, ticket, tls: certificate, options }) => {
      await using impostor = await startWire({ tls: certificate ?? tls });
      const bad: Fate | undefined = certificate ? { port: portOf(impostor.wssUrl) } : fate;

      const failures = await Promise.all(
        [[0], [1], [2], [1, true]].map(async ([good, standby]) => {
          const times = good as number;
          await using service = await startTwoOrigins({
            tls,
            fates: (stream) => [...Array.from({ length: times }, () => stream), bad ?? stream],
            tickets: (issueTicket) => [...Array.from({ length: times }, () => issueTicket), ticket ?? issueTicket],
            handshake: [expired],
          });
          return await failureAfter(service, times, { ...ca, ...options, ...(standby && { standby: true }) });
        }),
      );
      expect(failures).toEqual(failures.map(() => failures[0]));
    },
  );
});

describe('unsubscribing', () => {
  /** Unsubscribes once a condition holds. Checks that all sockets close and no others open. */
  const releasedAfter = async (
    service: TwoOrigins,
    condition: () => boolean,
    options: TradeFeedOptions = {},
  ): Promise<void> => {
    const subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ...ca, ...options }),
    ).subscribe();
    await waitFor(condition);
    subscription.unsubscribe();
    const connections = () => [service.tickets.connections, service.gate.connections];
    await waitFor(() => service.gate.open.size + service.tickets.open.size + service.stream.open.size === 0);
    const before = connections();
    await turns();
    expect(connections()).toEqual(before);
  };

  type Script = Parameters<typeof startTwoOrigins>[0];
  const asked = ({ tickets }: TwoOrigins, count: number) => tickets.tickets.length === count;
  it.each<[string, (service: () => TwoOrigins) => Script, (service: TwoOrigins) => boolean]>([
    [
      'closes an idle spare connection',
      () => ({ tickets: (granted) => [granted, noop] }),
      (service) => service.stream.connections === 2 && asked(service, 2),
    ],
    [
      'closes a spare connection during the TLS handshake',
      () => ({ fates: (stream) => [stream, 'silence'], tickets: (granted) => [granted, noop] }),
      (service) => service.gate.connections === 2 && asked(service, 2),
    ],
    [
      'ends a handshake over a spare connection',
      (service) => ({
        tickets: (granted) => [granted, after(() => service().stream.connections === 2, granted)],
        handshake: [expired, noop],
      }),
      ({ stream }) => stream.handshakes.length === 2,
    ],
    [
      'closes the idle connection of the ticket requests',
      () => ({ handshake: [frames] }),
      ({ stream }) => stream.handshakes.length === 1,
    ],
    [
      'ends a repeated request',
      () => ({ tickets: (granted) => [granted, dropped, noop] }),
      (service) => asked(service, 3),
    ],
  ])('%s', async (_title, script, isReady) => {
    await using service: TwoOrigins = await startTwoOrigins({ tls, handshake: [expired], ...script(() => service) });
    await releasedAfter(service, () => isReady(service));
  });

  it('when a ticket is requested opens no spare connection', async () => {
    await using service = await startTwoOrigins({ handshake: [expired] });
    let requests = 0;
    const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable }));
    await until(events$, ({ type }) => type === 'ticket-requested' && (requests += 1) === 2);
    await turns();
    expect(service.gate.connections).toBe(1);
    expect(service.tickets.tickets).toHaveLength(1);
  });

  it('closes the standby connection', async () => {
    const time = new VirtualTimeScheduler(undefined, 100);
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    const isReady = () => {
      time.flush();
      return service.stream.connections === 2;
    };
    await releasedAfter(service, isReady, { standby: true, backoff: { ...stable, scheduler: time } });
    expect(time.actions).toEqual([]);
  });
});
