import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Authorize,
  createRelay,
  type RelayActivity,
  relayHandler,
  type RelayHandlerOptions,
  type RelayOptions,
} from '../../src/relay/index.js';
import { Raw, Source, Web } from './support.js';
import { waitFor } from '../support/wait-for.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const serve = async (options: RelayHandlerOptions, relayOptions: RelayOptions = {}) => {
  const source = new Source();
  const relay = createRelay(source.events$, { batchMs: 0, lingerMs: 0, ...relayOptions });
  const reports: RelayActivity[] = [];
  relay.events$.subscribe((event) => reports.push(event));
  const web = await Web.start(relayHandler(relay, options));
  closing.push(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  return { source, relay, reports, web, port: web.port };
};

/** Sends one request, and returns the status, `Retry-After` and the body of a refusal. */
const ask = async (port: number, headers: Readonly<Record<string, string>> = {}) => {
  const request = httpRequest({ host: '127.0.0.1', port, path: '/feed', headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  closing.push(() => response.destroy());
  const { statusCode: status, headers: answer } = response;
  let body = '';
  if (status !== 200) for await (const part of response) body += String(part);
  return { status, retryAfter: answer['retry-after'], body, response };
};

const byHeader: Authorize = ({ headers }) => ({ id: String(headers['x-user']) });

/** An `authorize` whose calls the test resolves one after the other. */
const decided = () => {
  const waiting: { resolve: (answer: unknown) => void; reject: (error: unknown) => void }[] = [];
  const authorize = () => new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  return { waiting, authorize: authorize as unknown as Authorize };
};

describe('authorize: results that allow a client', () => {
  it.each<[string, unknown, number]>([
    ['a user', { id: 'u1' }, 200],
    ['a user, later', Promise.resolve({ id: 'u1' }), 200],
    ['a user with more fields', { id: 'u1', name: 'x' }, 200],
    ['an empty id', { id: '' }, 403],
    ['an id that is a number', { id: 1 }, 403],
    ['an id that is a String object', { id: new String('u1') }, 403],
    ['an id that is true', { id: true }, 403],
    ['no id', {}, 403],
    ['an array', ['u1'], 403],
    ['a text', 'u1', 403],
    ['null', null, 403],
    ['an empty id, later', Promise.resolve({ id: '' }), 403],
  ])('%s', async (_what, answer, status) => {
    const { port, relay } = await serve({ authorize: () => answer as boolean });
    expect((await ask(port)).status).toBe(status);
    expect(relay.status().clients.map(({ user }) => user)).toEqual(status === 200 ? ['u1'] : []);
    expect(relay.status().authorizing).toBe(0);
  });

  it('answers 500 without a reason when `authorize` or the `id` of its result throws', async () => {
    const throwing = {
      get id(): string {
        throw new Error('private');
      },
    };
    const answers: Authorize[] = [() => throwing, () => Promise.reject(new Error('private'))];
    for (const authorize of answers) {
      const { port, relay } = await serve({ authorize });
      const { status, body } = await ask(port);
      expect({ status, body }).toEqual({
        status: 500,
        body: expect.stringContaining(
          'The authorization failed: the function `authorize` of the server threw an error.',
        ),
      });
      expect(body).not.toContain('private');
      expect(relay.status()).toMatchObject({ authorizing: 0, clients: [] });
    }
  });

  it('refuses an invalid `authorizeTimeoutMs`', () => {
    for (const authorizeTimeoutMs of [0, -1, NaN, '5' as unknown as number])
      expect(() =>
        relayHandler(createRelay(new Source().events$), { authorize: () => true, authorizeTimeoutMs }),
      ).toThrow('`authorizeTimeoutMs`');
  });
});

describe('authorize: users', () => {
  it('allows a user `maxClientsPerUser` streams, then answers 503 with Retry-After; other users are not affected', async () => {
    const { port, reports } = await serve({ authorize: byHeader }, { maxClientsPerUser: 2 });
    const ann = { 'x-user': 'ann-7' };
    const [first] = [await ask(port, ann), await ask(port, ann)];
    const third = await ask(port, ann);
    expect([third.status, third.retryAfter]).toEqual([503, '5']);
    expect(third.body).not.toContain('ann-7');
    expect(reports.at(-1)).toEqual({ type: 'client-refused', at: expect.any(Number), reason: 'user' });
    expect((await ask(port, { 'x-user': 'bob' })).status).toBe(200);
    first.response.destroy();
    await waitFor(() => reports.some(({ type }) => type === 'client-left'));
    expect((await ask(port, ann)).status).toBe(200);
  });

  it('ends the streams of a disconnected user: first the remaining events, then `connect-again`, then the end', async () => {
    const { port, relay, source } = await serve({ authorize: byHeader }, { batchMs: 1_000_000 });
    const [ann, bob] = [await Raw.get(port, { 'x-user': 'ann' }), await Raw.get(port, { 'x-user': 'bob' })];
    closing.push(() => bob.socket.destroy());
    for (const raw of [ann, bob]) await raw.until((text) => text.includes('event: hello'));
    source.frames('a');
    expect(relay.disconnect('ann')).toBe(1);
    const text = await ann.closed();
    expect(text).toMatch(/"data":"a"[^]*event: connect-again\nid: \S+\.1\.1\.\d+\ndata: \{[^]*\r\n0\r\n\r\n$/);
    expect(text).toContain('"code":"relay-session-ended","verdict":"renew"');
    expect(relay.status().clients.map(({ user }) => user)).toEqual(['bob']);
    expect(bob.text).not.toContain('connect-again');
  });

  it('refuses a user who is disconnected during the authorization', async () => {
    const { authorize, waiting } = decided();
    const { port, relay, reports } = await serve({ authorize });
    const answer = ask(port);
    await waitFor(() => waiting.length === 1);
    expect(relay.disconnect('ann')).toBe(0);
    waiting[0]!.resolve({ id: 'ann' });
    expect(await answer).toMatchObject({ status: 503, retryAfter: '5' });
    expect(reports).toMatchObject([{ type: 'client-refused', reason: 'session-ended' }]);
  });
});

describe('a slow authorization', () => {
  it('counts for `maxClients` from the request on, and is answered with 503 after `authorizeTimeoutMs`, which frees the slot', async () => {
    const { authorize, waiting } = decided();
    const { port, relay, reports } = await serve({ authorize, authorizeTimeoutMs: 50 }, { maxClients: 1 });
    const first = ask(port);
    await waitFor(() => waiting.length === 1);
    expect(relay.status()).toMatchObject({ clients: [], authorizing: 1 });
    expect((await ask(port)).status).toBe(503);
    expect(waiting).toHaveLength(1);
    expect(await first).toMatchObject({ status: 503, retryAfter: '5' });
    expect(reports).toMatchObject([{ reason: 'full' }, { reason: 'authorize-timeout' }]);
    expect(relay.status().authorizing).toBe(0);
    const again = ask(port);
    await waitFor(() => waiting.length === 2);
    waiting[1]!.resolve(true);
    expect((await again).status).toBe(200);
  });

  it.each([
    ['resolves', (one: ReturnType<typeof decided>['waiting'][0]) => one.resolve(true)],
    ['rejects', (one: ReturnType<typeof decided>['waiting'][0]) => one.reject(new Error('secret-9'))],
  ])('has no effect when it %s after that: no client, no unhandled rejection', async (_how, decide) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', note);
    closing.push(() => process.off('unhandledRejection', note));
    const { authorize, waiting } = decided();
    const { port, relay, source } = await serve({ authorize, authorizeTimeoutMs: 20 });
    expect((await ask(port)).status).toBe(503);
    decide(waiting[0]!);
    // Node reports unhandled rejections after the microtasks of a turn.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect([unhandled, relay.status().clients, source.subscriptions]).toEqual([[], [], 0]);
  });

  it('is answered with 503 at once when the relay closes, so that the server can close', async () => {
    const source = new Source();
    const relay = createRelay(source.events$);
    const { authorize, waiting } = decided();
    const server = createServer(relayHandler(relay, { authorize })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const answer = ask((server.address() as AddressInfo).port);
    await waitFor(() => waiting.length === 1);
    const closed = once(server, 'close');
    relay.close();
    server.close();
    expect(await answer).toMatchObject({ status: 503, retryAfter: '1' });
    await closed;
    waiting[0]!.resolve(true);
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.subscriptions).toBe(0);
  });

  it.each(['before the decision', 'in the turn of the decision', 'after the decision'])(
    'leaves no slot and no timer when the client disconnects %s',
    async (when) => {
      const { authorize, waiting } = decided();
      const { port, relay, web, source } = await serve({ authorize, authorizeTimeoutMs: 600_000 }, { maxClients: 1 });
      const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
      const before = timers();
      const raw = await Raw.get(port);
      await waitFor(() => waiting.length === 1);
      expect(timers()).toBeGreaterThan(before);
      const [response] = web.responses;
      if (when.startsWith('after')) {
        waiting[0]!.resolve(true);
        await raw.until((text) => text.includes('event: hello'));
      }
      raw.socket.destroy();
      if (when.startsWith('in the turn')) waiting[0]!.resolve(true);
      await waitFor(() => response!.destroyed && relay.status().authorizing + relay.status().clients.length === 0);
      if (when.startsWith('before')) waiting[0]!.resolve(true);
      await waitFor(() => timers() <= before && source.active === 0);
      const next = ask(port);
      await waitFor(() => waiting.length === 2);
      waiting[1]!.resolve(true);
      expect((await next).status).toBe(200);
    },
  );

  it('takes no slot for a request whose connection has ended before the handler is called', async () => {
    const source = new Source();
    const relay = createRelay(source.events$);
    const feed = relayHandler(relay, { authorize: () => true });
    let called = false;
    const web = await Web.start((request, response) => {
      response.once('close', () => {
        feed(request, response);
        called = true;
      });
    });
    closing.push(
      () => web[Symbol.asyncDispose](),
      () => relay.close(),
    );
    const raw = await Raw.get(web.port);
    await waitFor(() => web.responses.length === 1);
    raw.socket.destroy();
    await waitFor(() => called);
    expect(relay.status().authorizing).toBe(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect([relay.status().authorizing, relay.status().clients, source.subscriptions]).toEqual([0, [], 0]);
  });
});

describe('pipelined requests', () => {
  it('take one slot together: all but the first are answered with 400, without a call of `authorize`', async () => {
    let calls = 0;
    const { port, relay, web } = await serve({
      authorize: () => {
        calls += 1;
        return true;
      },
    });
    const count = 1_000;
    const raw = await Raw.open(port, 'GET /feed HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(count));
    closing.push(() => raw.socket.destroy());
    await raw.until((text) => text.includes('event: hello'));
    await waitFor(() => web.requests.length > 100);
    const { clients, authorizing } = relay.status();
    expect([calls, clients.length, authorizing]).toEqual([1, 1, 0]);
    expect(web.responses.slice(1).every(({ statusCode }) => statusCode === 400)).toBe(true);
  });
});
