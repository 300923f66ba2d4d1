import { describe, expect, it, jest } from '@jest/globals';
import { noop } from 'rxjs';
import { Agent } from 'undici';
import { type FeedEvent, tradeFeedEvents$ } from '../../src/index.js';
import { certificateFor } from '../support/certificate.js';
import { fakeTimers } from '../support/fake-timers.js';
import { optionsFor, until } from '../support/feed.js';
import {
  dropped,
  expired,
  failuresOf,
  frames,
  opened,
  stable,
  startTwoOrigins,
  turns,
} from '../support/two-origins.js';
import { waitFor } from '../support/wait-for.js';
import { issue, refuse, startWire, type TicketStep } from '../support/wire.js';

const tls = await certificateFor();
const ca = { tls: { ca: tls.cert } };

/** Both transports of a feed: TCP and TLS. */
const transports = [
  ['TCP', {}],
  ['TLS', { tls }],
] as const;

const causesOf = (events: readonly FeedEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'disconnected' ? [event.failure.cause] : []));

describe('the connection of the ticket requests', () => {
  it.each(transports)('is reused while the service keeps it open: %s', async (_, script) => {
    await using service = await startTwoOrigins({ ...script, handshake: [expired, expired, frames] });
    await opened(service, 3, ca);
    expect(service.tickets.tickets).toHaveLength(3);
    expect(service.tickets.connections).toBe(1);
    expect(service.gate.connections).toBe(3);
  });

  const leaving: readonly (readonly [string, TicketStep])[] = [
    ['announces the close', issue({}, { connection: 'close' })],
    ['keeps no idle connection open', issue({}, { 'keep-alive': 'timeout=1' })],
    [
      'closes it',
      (response, wire, n) => {
        response.once('close', () => response.req.socket.end());
        issue()(response, wire, n);
      },
    ],
  ];
  it.each(leaving)('is opened again if the service %s', async (_, step) => {
    await using wire = await startWire({ ticket: [step, issue()], handshake: [expired, frames] });
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { backoff: stable }));
    const events = await until(events$, (event) => event.type === 'opened' && event.connection === 2);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(wire.tickets).toHaveLength(2);
    expect(wire.connections).toBe(4);
  });

  it('is opened again after a refusal: another server may answer at the same address', async () => {
    await using wire = await startWire({ ticket: [refuse(503), issue()], handshake: [frames] });
    await until(tradeFeedEvents$('market', optionsFor(wire)), ({ type }) => type === 'opened');
    expect(wire.connections).toBe(3);
  });

  it('is opened again after an incomplete answer', async () => {
    const endless: TicketStep = (response) => void response.writeHead(200).write('{');
    await using wire = await startWire({ ticket: [endless, issue()], handshake: [frames] });
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { ticketTimeoutMs: 1_500 }));
    const events = await until(events$, ({ type }) => type === 'opened');
    expect(failuresOf(events)).toEqual(['ticket-endpoint-unreachable']);
    expect(wire.connections).toBe(3);
  });

  it("is not stored if a user's dispatcher connects", async () => {
    await using service = await startTwoOrigins({ handshake: [expired, frames] });
    const dispatcher = new Agent({ pipelining: 0 });
    await opened(service, 2, { dispatcher });
    expect(service.tickets.connections).toBe(2);
    await dispatcher.close();
  });
});

describe('a request on a stored connection that is closed before the first byte of an answer', () => {
  it.each(transports)('is sent once more over a new connection, in the same attempt: %s', async (_, script) => {
    await using service = await startTwoOrigins({
      ...script,
      tickets: (granted) => [granted, dropped, granted],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2, ca);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(events.filter(({ type }) => type === 'ticket-requested')).toHaveLength(2);
    expect(service.tickets.tickets).toHaveLength(3);
    expect(service.tickets.connections).toBe(2);
  });

  const notAgain: readonly (readonly [string, readonly TicketStep[], number])[] = [
    ['if the new connection is closed, too', [dropped, dropped], 3],
    ['if an answer had started', [(response) => response.socket?.write('HTTP', () => response.socket?.destroy())], 2],
    [
      'if the head of an answer had arrived',
      [(response) => void response.writeHead(200).write('{', () => response.socket?.destroy())],
      2,
    ],
  ];
  it.each(notAgain)('is not sent again %s', async (_, steps, requests) => {
    await using service = await startTwoOrigins({
      tickets: (granted) => [granted, ...steps, granted],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2);
    expect(failuresOf(events)).toEqual(['access-expired', 'ticket-endpoint-unreachable']);
    expect(causesOf(events).at(-1)).toMatchObject({ message: expect.stringMatching(/other side closed|terminated/) });
    expect(service.tickets.tickets).toHaveLength(requests + 1);
  });

  it('keeps its deadline', async () => {
    using _timers = fakeTimers();
    const late: TicketStep = (response, wire, n) => {
      jest.advanceTimersByTime(1_500);
      dropped(response, wire, n);
    };
    await using service = await startTwoOrigins({ tickets: (granted) => [granted, late, noop], handshake: [expired] });
    const events: FeedEvent[] = [];
    const subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ticketTimeoutMs: 2_000 }),
    ).subscribe((event) => events.push(event));
    await waitFor(() => service.tickets.tickets.length === 3);
    jest.advanceTimersByTime(499);
    await turns();
    expect(failuresOf(events)).toEqual(['access-expired']);
    jest.advanceTimersByTime(1);
    await waitFor(() => failuresOf(events).length === 2);
    expect(failuresOf(events)).toEqual(['access-expired', 'ticket-endpoint-unreachable']);
    expect(service.tickets.tickets).toHaveLength(3);
    subscription.unsubscribe();
  });
});
