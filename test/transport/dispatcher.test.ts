import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { fileURLToPath } from 'node:url';
import { firstValueFrom, of } from 'rxjs';
import * as undici7 from 'undici';
import { type Feed, requestTicket, type TicketDispatcher } from '../../src/index.js';
import { closed, optionsFor, outcomeOf, plantedKey } from '../support/feed.js';
import { deadAddress, listen } from '../support/listen.js';
import { ca, tls } from '../support/two-origins.js';
import { ticketBody } from '../support/ticket-fields.js';
import { waitFor } from '../support/wait-for.js';
import { issue, refuse, startWire, type TicketStep } from '../support/wire.js';

type Undici = Pick<typeof undici7, 'Agent' | 'Client' | 'MockAgent' | 'interceptors'>;

const file = fileURLToPath(new URL('undici-8/node_modules/undici/index.js', import.meta.url));
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const runsUndici8 = major > 22 || (major === 22 && minor >= 19);
// Without it, the tests on a newer Node would only seem to pass.
const isMissing = runsUndici8 && !existsSync(file);
const undici8 = runsUndici8 && !isMissing ? ((await import(file)) as { default: Undici }).default : undefined;

it('finds undici 8 on a Node that runs it: `node scripts/install.mjs nodes` installs it', () => {
  expect(isMissing).toBe(false);
});

const ask = (wire: { readonly baseUrl: string }, dispatcher: TicketDispatcher, options = {}) =>
  firstValueFrom(of<Feed>('market').pipe(requestTicket(optionsFor(wire, { dispatcher, ...options }))));

const early: TicketStep = (response, wire, n) => {
  response.writeEarlyHints({ link: '</style.css>; rel=preload' }, () => issue()(response, wire, n));
};
const silent: TicketStep = () => undefined;

describe.each([
  ['7', undici7],
  ['8', undici8],
] as const)('a dispatcher of undici %s', (version, undici) => {
  if (undici === undefined) return it.skip(`needs Node 22.19 (undici ${version})`, () => undefined);

  const kinds: readonly (readonly [string, (origin: string) => InstanceType<typeof undici7.Dispatcher>])[] = [
    ['an Agent', () => new undici.Agent()],
    ['a Client', (origin) => new undici.Client(origin)],
    ['an Agent with interceptors', () => new undici.Agent().compose(undici.interceptors.retry())],
  ];
  it.each(kinds)('gets a ticket, with the key in X-API-Key: %s', async (_, create) => {
    await using wire = await startWire();
    const dispatcher = create(wire.baseUrl);
    const ticket = await ask(wire, dispatcher);
    expect(ticket.wss_url).toBe(wire.wssUrl);
    expect(wire.tickets[0]).toMatchObject({
      method: 'POST',
      body: '{"feed":"market"}',
      headers: { 'x-api-key': plantedKey },
    });
    await dispatcher.close();
  });

  it('may be a MockAgent', async () => {
    const dispatcher = new undici.MockAgent();
    dispatcher.disableNetConnect();
    const mocked = { path: '/v1/wss/tickets', method: 'POST' };
    dispatcher
      .get('https://feed.example')
      .intercept(mocked)
      .reply(200, { ...ticketBody, expires_at: '2099-01-01T00:00:00Z' });
    const ticket = await ask({ baseUrl: 'https://feed.example' }, dispatcher);
    expect(ticket.feed).toBe('market');
    await dispatcher.close();
  });

  it('may use HTTP/2', async () => {
    const server = createSecureServer(tls, (request, response) => {
      request.resume();
      response.setHeader('retry-after', '7');
      response.writeHead(request.httpVersion === '2.0' ? 429 : 400).end('{}');
    });
    await using service = await listen(server, 'secureConnection');
    const dispatcher = new undici.Agent({ allowH2: true, connect: { ca: tls.cert } });
    const baseUrl = `https://127.0.0.1:${service.port}`;
    const failure = { code: 'ticket-rate-limited', retryAfterMs: 7_000 };
    await expect(ask({ baseUrl }, dispatcher)).rejects.toMatchObject(failure);
    await dispatcher.destroy();
  });

  it('skips informational responses', async () => {
    await using wire = await startWire({ ticket: [early] });
    const dispatcher = new undici.Agent();
    expect((await ask(wire, dispatcher)).feed).toBe('market');
    await dispatcher.close();
  });

  it('follows no redirect, even with an interceptor that would', async () => {
    await using elsewhere = await startWire();
    await using wire = await startWire({ ticket: [refuse(307, { location: `${elsewhere.baseUrl}/v1/wss/tickets` })] });
    const dispatcher = new undici.Agent().compose(undici.interceptors.redirect({ maxRedirections: 5 }));
    await expect(ask(wire, dispatcher)).rejects.toMatchObject({ code: 'ticket-request-rejected', status: 307 });
    expect(elsewhere.connections).toBe(0);
    await dispatcher.close();
  });

  it('ends the request at the deadline, and when you unsubscribe', async () => {
    await using wire = await startWire({ ticket: [silent] });
    const dispatcher = new undici.Agent();
    const late = { code: 'ticket-endpoint-unreachable', detail: 'no answer in 60 ms' };
    await expect(ask(wire, dispatcher, { ticketTimeoutMs: 60 })).rejects.toMatchObject(late);
    await Promise.all([...wire.open].map(closed));
    const tickets$ = of<Feed>('market').pipe(requestTicket(optionsFor(wire, { dispatcher })));
    const subscription = tickets$.subscribe();
    await waitFor(() => wire.tickets.length === 2);
    const sockets = [...wire.open];
    subscription.unsubscribe();
    await Promise.all(sockets.map(closed));
    await dispatcher.close();
  });

  it('reports a broken body, a closed port, an untrusted certificate and a closed dispatcher', async () => {
    const broken: TicketStep = (response) =>
      void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.socket?.destroy());
    await using wire = await startWire({ ticket: [broken] });
    await using secure = await startWire({ tls });
    const dispatcher = new undici.Agent();
    const lost = { code: 'ticket-endpoint-unreachable' };
    await expect(ask(wire, dispatcher)).rejects.toMatchObject(lost);
    await expect(ask({ baseUrl: await deadAddress() }, dispatcher)).rejects.toMatchObject(lost);
    await expect(ask(secure, dispatcher, ca)).rejects.toMatchObject({ code: 'untrusted-certificate' });
    await dispatcher.close();
    await expect(ask(wire, dispatcher)).rejects.toMatchObject(lost);
  });
});

it('a dispatcher that refuses the request is an invalid option, because no later attempt could work', async () => {
  await using wire = await startWire();
  const refusal = Object.assign(new Error('invalid onWhatever method'), { code: 'UND_ERR_INVALID_ARG' });
  const dispatcher = new undici7.Agent().compose(() => () => {
    throw refusal;
  });
  const { failure, goesOn } = await outcomeOf(optionsFor(wire, { dispatcher }));
  expect(failure).toMatchObject({ code: 'invalid-options', stage: 'ticket', verdict: 'stop' });
  expect(failure.message).toContain('the dispatcher refuses the request: invalid onWhatever method');
  expect(goesOn).toBe(false);
});
