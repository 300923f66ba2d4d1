import { afterEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { lastValueFrom, type Observable, of, reduce } from 'rxjs';
import type { RelayFeedOptions, TradeFeedError } from '../../src/browser/index.js';
import { relayRequest$ } from '../../src/browser/relay-request.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { relayError } from '../../src/protocol/failures/relay-error.js';
import { Web } from '../relay/support.js';
import { ended, silence, startSteps, status, type Step, stream } from './support.js';
import { waitFor } from '../support/wait-for.js';

const open: Web[] = [];
afterEach(async () => {
  for (const web of open.splice(0)) await web[Symbol.asyncDispose]();
});

const serve = async (...steps: readonly Step[]): Promise<Web> => {
  const web = await startSteps(...steps);
  open.push(web);
  return web;
};

const request$ = (url: string, options?: RelayFeedOptions, lastEventId?: string): Observable<Uint8Array> =>
  relayRequest$(resolveRelayFeed(url, options), lastEventId);

const textOf = (bytes$: Observable<Uint8Array>): Promise<string> =>
  lastValueFrom(bytes$.pipe(reduce((text, bytes) => text + Buffer.from(bytes).toString(), '')));

const failureOf = (bytes$: Observable<unknown>): Promise<TradeFeedError> =>
  lastValueFrom(bytes$, { defaultValue: undefined }).then(
    () => Promise.reject(new Error('no failure')),
    (failure: unknown) => failure as TradeFeedError,
  );

describe('relayRequest$', () => {
  it('sends the headers of Server-Sent Events, and emits the bytes', async () => {
    const { url, requests } = await serve(ended('data: a\n\n'));
    expect(await textOf(request$(url))).toBe('data: a\n\n');
    expect(requests[0]).toMatchObject({ method: 'GET', url: '/feed' });
    expect(requests[0]!.headers).toMatchObject({ accept: 'text/event-stream', 'cache-control': 'no-cache' });
    expect(requests[0]!.headers).not.toHaveProperty('last-event-id');
  });

  it('sends the last id', async () => {
    const { url, requests } = await serve(ended(''));
    await textOf(request$(url, {}, 'e.5.4.3'));
    expect(requests[0]!.headers['last-event-id']).toBe('e.5.4.3');
  });

  it.each<[string, RelayFeedOptions['headers']]>([
    ['an object', { authorization: 'Bearer t' }],
    ['a function', () => ({ authorization: 'Bearer t' })],
    ['an async function', () => Promise.resolve({ authorization: 'Bearer t' })],
  ])('sends your headers: %s', async (_what, headers) => {
    const { url, requests } = await serve(ended(''));
    await textOf(request$(url, { headers }));
    expect(requests[0]!.headers).toMatchObject({ authorization: 'Bearer t', accept: 'text/event-stream' });
  });

  it('calls your headers function before each request', async () => {
    const { url, requests } = await serve(ended(''));
    let n = 0;
    const answers$ = request$(url, { headers: () => ({ authorization: `Bearer ${(n += 1)}` }) });
    await textOf(answers$);
    await textOf(answers$);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer 1', 'Bearer 2']);
  });

  it.each<[string, () => never | Promise<never>]>([
    [
      'throw',
      () => {
        throw new Error('no token');
      },
    ],
    ['reject', () => Promise.reject(new Error('no token'))],
  ])('errors with relay-headers-failed when your headers %s, without a request', async (_how, headers) => {
    const { url, requests } = await serve(ended(''));
    expect(await failureOf(request$(url, { headers }))).toMatchObject({
      ...{ code: 'relay-headers-failed', stage: 'handshake', verdict: 'backoff' },
      cause: new Error('no token'),
    });
    expect(requests).toEqual([]);
  });

  it('does not treat a failure that your headers throw as one of the relay', async () => {
    const { url } = await serve(ended(''));
    const mine = relayError({ status: 401 });
    const failure = await failureOf(request$(url, { headers: () => Promise.reject(mine) }));
    expect(failure).toMatchObject({ code: 'relay-headers-failed', verdict: 'backoff' });
    expect(failure.cause).toBe(mine);
  });

  it.each<[string, unknown]>([
    ['a name with a blank', { 'a b': 'secret-6' }],
    ['an empty name', { '': 'secret-6' }],
    ['a line break in a value', { authorization: 'secret\n-6' }],
    ['a zero byte in a value', { authorization: 'secret-6\0' }],
    ['a value beyond Latin-1', { authorization: 'secret-6 \u0100' }],
    ['no object', 'secret-6'],
    ['null', null],
  ])('errors with relay-headers-failed when your function returns %s, and does not show it', async (_what, result) => {
    const { url, requests } = await serve(ended(''));
    const failure = await failureOf(request$(url, { headers: () => result as Record<string, string> }));
    expect(failure).toMatchObject({ code: 'relay-headers-failed', cause: { name: 'TypeError' } });
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(/secret(\n|\\n)?-6/);
    expect(requests).toEqual([]);
  });

  describe('in a page', () => {
    const page = globalThis as { location?: { href: string; origin: string } | undefined };
    afterEach(() => {
      delete page.location;
    });

    it('makes an Angular service worker bypass requests of the same origin only', async () => {
      const [same, other] = [await serve(ended('')), await serve(ended(''))];
      await textOf(request$(same.url));
      const { origin } = new URL(same.url);
      page.location = { href: `${origin}/some/page`, origin };
      await textOf(request$(same.url, { headers: { 'ngsw-bypass': 'mine' } }));
      await textOf(request$('/feed'));
      await textOf(request$(other.url));
      expect(same.requests.map(({ headers }) => headers['ngsw-bypass'])).toEqual([undefined, 'true', 'true']);
      expect(other.requests.map(({ headers }) => headers['ngsw-bypass'])).toEqual([undefined]);
    });
  });

  it.each<[string, Step, object]>([
    ['401', status(401), { code: 'relay-refused', verdict: 'stop', status: 401 }],
    ['403', status(403), { code: 'relay-refused', verdict: 'stop', status: 403 }],
    ['503', status(503), { code: 'relay-full', verdict: 'backoff', status: 503 }],
    ['503 with a wait', status(503, { 'retry-after': '7' }), { code: 'relay-full', retryAfterMs: 7_000 }],
    ['503 with a date', status(503, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }), { code: 'relay-full' }],
    ['429', status(429, { 'retry-after': '2' }), { code: 'relay-failed', verdict: 'backoff', retryAfterMs: 2_000 }],
    ['408', status(408), { code: 'relay-failed', verdict: 'backoff', status: 408 }],
    ['500', status(500), { code: 'relay-failed', verdict: 'backoff', status: 500 }],
    ['502', status(502), { code: 'relay-failed', verdict: 'backoff' }],
    ['504', status(504), { code: 'relay-failed', verdict: 'backoff' }],
    ['404', status(404), { code: 'invalid-relay', verdict: 'stop', status: 404 }],
    ['400', status(400), { code: 'invalid-relay', verdict: 'stop' }],
    ['405', status(405), { code: 'invalid-relay', verdict: 'stop' }],
    ['410', status(410), { code: 'invalid-relay', verdict: 'stop' }],
    ['204', status(204, {}, ''), { code: 'invalid-relay', verdict: 'stop' }],
    ['205', status(205, {}, ''), { code: 'invalid-relay', verdict: 'stop' }],
    ['304', status(304, {}, ''), { code: 'invalid-relay', verdict: 'stop' }],
    [
      'a page',
      status(200, { 'content-type': 'text/html' }, '<!doctype html>'),
      { code: 'invalid-relay', verdict: 'stop' },
    ],
    ['JSON', status(200, { 'content-type': 'application/json' }, '{}'), { code: 'invalid-relay', verdict: 'stop' }],
    ['no content type', status(200, {}, 'data: x\n\n'), { code: 'invalid-relay', verdict: 'stop' }],
  ])('errors for an answer that is not a stream: %s', async (_what, step, failure) => {
    const { url } = await serve(step);
    const error = await failureOf(request$(url));
    expect(error).toMatchObject({ stage: 'handshake', uptimeMs: 0, ...failure });
    if (!('retryAfterMs' in failure)) expect(error.retryAfterMs).toBeUndefined();
  });

  it('follows a redirect, and errors when it leads to a page', async () => {
    const { url } = await serve(status(302, { location: '/there' }), ended('data: a\n\n'));
    expect(await textOf(request$(url))).toBe('data: a\n\n');
    const login = await serve(status(302, { location: '/login' }), status(200, { 'content-type': 'text/html' }));
    expect(await failureOf(request$(login.url))).toMatchObject({ code: 'invalid-relay' });
  });

  it.each<[string, number, string]>([
    ['a refusal', 401, 'text/plain'],
    ['a page', 200, 'text/html'],
  ])('cancels the body of %s that does not end', async (_what, code, type) => {
    const { url, responses } = await serve((response) => {
      response.writeHead(code, { 'content-type': type }).write('x'.repeat(100_000));
    });
    await failureOf(request$(url));
    await waitFor(() => responses[0]!.destroyed);
  });

  it('accepts a content type with parameters', async () => {
    const { url } = await serve(stream('data: a\n\n', { 'content-type': 'text/event-stream; charset=utf-8' }));
    const seen: Uint8Array[] = [];
    const subscription = request$(url).subscribe((bytes) => seen.push(bytes));
    await waitFor(() => seen.length > 0);
    subscription.unsubscribe();
  });

  it('errors when no server listens, and when the connection breaks', async () => {
    const web = await serve((response) => response.socket?.resetAndDestroy());
    expect(await failureOf(request$(web.url))).toMatchObject({ name: 'TypeError' });
    const broken = await serve((response) => {
      stream('data: a')(response, undefined as never);
      setImmediate(() => response.socket?.resetAndDestroy());
    });
    expect(await failureOf(request$(broken.url))).toMatchObject({ name: 'TypeError' });
    const { url } = web;
    await web[Symbol.asyncDispose]();
    expect(await failureOf(request$(url))).toMatchObject({ name: 'TypeError' });
  });

  it.each<[string, Step]>([
    ['it waits for the answer', silence],
    ['bytes arrive', stream('data: a\n\n')],
  ])('ends the request when it is unsubscribed while %s', async (_when, step) => {
    const web = await serve(step);
    let bytes = 0;
    const subscription = request$(web.url).subscribe((chunk) => (bytes += chunk.length));
    await waitFor(() => web.requests.length > 0 && (step === silence || bytes > 0));
    subscription.unsubscribe();
    await waitFor(() => web.responses[0]!.destroyed);
  });

  it('sends no request when it is unsubscribed while it waits for your headers', async () => {
    const web = await serve(ended(''));
    let answer: (headers: Record<string, string>) => void = () => undefined;
    const headers = () => new Promise<Record<string, string>>((resolve) => (answer = resolve));
    const subscription = request$(web.url, { headers }).subscribe();
    subscription.unsubscribe();
    answer({});
    await lastValueFrom(of(1));
    await new Promise((resolve) => setImmediate(resolve));
    expect(web.requests).toEqual([]);
  });
});
