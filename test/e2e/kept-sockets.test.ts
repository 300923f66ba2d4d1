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
  when,
} from '../support/two-origins.js';
import { issue, refuse, startWire, type TicketStep } from '../support/wire.js';

const tls = await certificateFor();
const untrusted = await certificateFor();
const otherName = await certificateFor('elsewhere.example');
const ca = { tls: { ca: tls.cert } };

/** The failure of the first attempt that has one, after as many good connections as are asked for. */
const failureAfter = async (
  service: TwoOrigins,
  good: number,
  options: TradeFeedOptions,
): Promise<Record<string, unknown>> => {
  const said = new Promise<Record<string, unknown>>((resolve) => {
    const tell = (failure: { stage: string; code: string; verdict: string; status?: number | undefined }) => {
      const { stage, code, verdict, status } = failure;
      if (stage !== 'stream') resolve({ stage, code, verdict, status });
      return stage !== 'stream';
    };
    const subscription: Subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ...options }),
    ).subscribe({
      next: (event) => {
        if (event.type === 'disconnected' && tell(event.failure)) queueMicrotask(() => subscription.unsubscribe());
      },
      error: tell,
    });
  });
  const failure = await said;
  expect(service.stream.handshakes.length).toBeGreaterThanOrEqual(good);
  return failure;
};

describe('what a failure is', () => {
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
    { what: 'a ticket that is none', ticket: issue({ expires_at: 'soon' }) },
    { what: 'no ticket', ticket: noop, options: { ticketTimeoutMs: 1_500 } },
    { what: 'no answer to a ticket request', ticket: dropped },
  ];

  it.each(faults)('does not depend on what is kept: $what', async ({ fate, ticket, tls: certificate, options }) => {
    await using impostor = await startWire({ tls: certificate ?? tls });
    const bad: Fate | undefined = certificate ? { port: portOf(impostor.wssUrl) } : fate;

    const failures = await Promise.all(
      [[0], [1], [2], [1, true]].map(async ([good, standby]) => {
        const times = good as number;
        await using service = await startTwoOrigins({
          tls,
          fates: (stream) => [...Array.from({ length: times }, () => stream), bad ?? stream],
          tickets: (granted) => [...Array.from({ length: times }, () => granted), ticket ?? granted],
          handshake: [expired],
        });
        return await failureAfter(service, times, { ...ca, ...options, ...(standby && { standby: true }) });
      }),
    );
    expect(failures).toEqual(failures.map(() => failures[0]));
  });
});

describe('unsubscribing', () => {
  /** Lets a feed come to where something holds, unsubscribes there, and sees that all is closed and nothing follows. */
  const releasedAfter = async (
    service: TwoOrigins,
    holds: () => boolean,
    options: TradeFeedOptions = {},
  ): Promise<void> => {
    const subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ...ca, ...options }),
    ).subscribe();
    await when(holds);
    subscription.unsubscribe();
    const made = () => [service.tickets.connections, service.gate.connections];
    await when(() => service.gate.open.size + service.tickets.open.size + service.stream.open.size === 0);
    const before = made();
    await turns();
    expect(made()).toEqual(before);
  };

  it('ends a spare that is there', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tls,
      tickets: (granted) => [granted, noop],
      handshake: [expired],
    });
    await releasedAfter(service, () => service.stream.connections === 2 && service.tickets.tickets.length === 2);
  });

  it('ends a spare that hangs in TLS', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tls,
      fates: (stream) => [stream, 'silence'],
      tickets: (granted) => [granted, noop],
      handshake: [expired],
    });
    await releasedAfter(service, () => service.gate.connections === 2 && service.tickets.tickets.length === 2);
  });

  it('ends a handshake over a spare', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tls,
      tickets: (granted) => [granted, after(() => service.stream.connections === 2, granted)],
      handshake: [expired, noop],
    });
    await releasedAfter(service, () => service.stream.handshakes.length === 2);
  });

  it('ends the kept connection of the ticket requests, while it is idle', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    await releasedAfter(service, () => service.stream.handshakes.length === 1);
  });

  it('ends a request that is sent once more', async () => {
    await using service = await startTwoOrigins({
      tls,
      tickets: (granted) => [granted, dropped, noop],
      handshake: [expired],
    });
    await releasedAfter(service, () => service.tickets.tickets.length === 3);
  });

  it('in the event of a ticket request makes no spare', async () => {
    await using service = await startTwoOrigins({ handshake: [expired] });
    let requests = 0;
    const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable }));
    await until(events$, ({ type }) => type === 'ticket-requested' && (requests += 1) === 2);
    await turns();
    expect(service.gate.connections).toBe(1);
    expect(service.tickets.tickets).toHaveLength(1);
  });

  it('ends what stands by', async () => {
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
