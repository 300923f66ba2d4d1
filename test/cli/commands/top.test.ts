/** @lane clock */
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { firstValueFrom, lastValueFrom, NEVER, of, Subject } from 'rxjs';
import { MockAgent } from 'undici';
import { feedSnapshots$, readStatus, type Row, rowLogLine, type Snapshot } from '../../../src/cli/top.js';
import { statusSnapshots$, table, totalLogLine } from '../../../src/cli/top.js';
import { printed, widthOf } from '../../../src/cli/view/text.js';
import { type ClusterLifecycleEvent, connectionStatus, createTradeFeedError } from '../../../src/index.js';
import { type FeedEvent, feedStats } from '../../../src/index.js';
import { relayError } from '../../../src/protocol/failures/trade-feed-error.js';
import { createRelay } from '../../../src/relay/index.js';
import { marketBatches$, startTradeFeedService } from '../../../src/testing/index.js';
import { type Certificate, certificateFor } from '../../support/certificate.js';
import { startConnectProxy } from '../../support/connect-proxy.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { ending, expired, gap, opening, start } from '../support/events.js';
import { commandRunner, FakeOutput } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();
let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor('app.example');
});

/** Starts an app that serves a status. */
const startApp = async (listener: RequestListener, tls?: Certificate) => {
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};

const json =
  (body: unknown): RequestListener =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

const nowhere = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };

describe('top', () => {
  it('draws a feed and the status of an app, follows the size of the terminal, and leaves the last table behind', async () => {
    await using service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 50 }) } });
    const key = service.createAccount({ plan: 'developer' }).createApiKey();
    const keyFile = await folder.file('one.key', `${key}\n`);
    let requests = 0;
    await using app = await startApp((request, response) => {
      requests += 1;
      json({ clients: [{ client: 1, sent: requests, missed: 0 }] })(request, response);
    });
    const stdout = new FakeOutput({ columns: 100, rows: 24 });
    const env = { TRADE_FEED_BASE_URL: service.baseUrl };
    const { stderr, end } = command(`top market:${keyFile} ${app.url}/status`, { stdout, env });
    await stdout.until(/●\S* live .*[1-9]\d*\.\d .* ms/);
    await stdout.until(/1 client, 2 frames sent, 0 missed/);
    stdout.columns = 60;
    const before = stdout.text.length;
    stdout.emit('resize');
    expect(stdout.text.slice(before)).not.toContain('bytes/s');
    expect(await end()).toBe(0);
    expect(stdout.text).toMatch(
      /^\x1b\[\?1049h[^]*\x1b\[\?1049l[^]* source[^]*●\S* live[^]*1 client, [^]*missed[^]* total[^\n]*1 of 2 live[^\n]*\n$/,
    );
    expect(stdout.text).not.toContain(key);
    expect(stderr.text).toBe('');
  });

  it('says why a status is missing, and sends the headers of --header-file', async () => {
    const headers = await folder.file('headers', 'Authorization: Bearer planted\n\n');
    await using app = await startApp((request, response) => {
      const { url, headers } = request;
      if (headers.authorization !== 'Bearer planted') response.writeHead(403).end();
      else if (url === '/stream') response.writeHead(200, { 'content-type': 'text/event-stream' }).write('\n');
      else if (url === '/bad') response.writeHead(200, { 'content-type': 'application/json' }).end('{');
      else json(url === '/other' ? { ok: true } : { connection: { state: 'live' } })(request, response);
    });
    const urls = ['/status', '/stream', '/other', '/bad'].map((path) => app.url + path).join(' ');
    const { stdout, end } = command(`top ${urls} http://127.0.0.1:1/ --header-file ${headers}`);
    for (const line of [
      /\/status live\n/,
      /\/stream unknown · The address answers with text\/event-stream instead of a status as JSON\.\n/,
      /\/other unknown · The JSON at this address isn't a status\.\n/,
      /\/bad unknown · No status: .*JSON/,
      /127\.0\.0\.1:1\/ unknown · No status: connect ECONNREFUSED/,
    ])
      await stdout.until(line);
    expect(await end('SIGHUP')).toBe(0);
    expect(stdout.text).not.toMatch(/planted|\x1b/);
    const refused = command(`top ${app.url}`);
    await refused.stdout.until(/unknown · The address answers with HTTP 403 instead of a status as JSON\./);
    expect(await refused.end()).toBe(0);
  });

  it('keeps running while one feed has stopped and another reconnects', async () => {
    const service = await startTradeFeedService();
    const keyFile = await folder.file('good.key', service.createAccount().createApiKey());
    const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: 'planted-wrong-key' };
    const { stdout, end } = command(`top market raw:${keyFile}`, { env });
    await stdout.until(/market stopped .*The service doesn't accept the API key \(HTTP 401\)\./);
    await stdout.until(/raw:.* live/);
    await service.shutdown();
    await stdout.until(
      /raw:.* reconnecting .* 1 gap .* Reconnecting (now|in .*)\. · reconnects after .*server-shutdown \(1\)/,
    );
    expect(await end('SIGTERM')).toBe(0);
  });

  it('writes the totals of several sources to a log at intervals', async () => {
    await using app = await startApp(json({ connection: { state: 'live' } }));
    let passed = now;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => (passed += 2_000));
    const { stdout, end } = command(`top ${app.url}/one ${app.url}/two`);
    await stdout.until(/ total 2 of 2 live\n/);
    expect(await end()).toBe(0);
    clock.mockRestore();
  });

  it('ends after its duration, or when it cannot write its output', async () => {
    expect(await command('top market --duration 10ms', { env: nowhere }).exit).toBe(0);
    const { stdout, exit } = command('top market', { env: nowhere });
    stdout.break('ENOSPC');
    expect(await exit).toBe(8);
  });

  it('requests the status of an https: address through the proxy of the environment, with --ca', async () => {
    await using app = await startApp(json({ connection: { state: 'live' } }), certificate);
    await using proxy = await startConnectProxy({ targets: { 'app.example:443': app.port } });
    const ca = await folder.file('app-ca.pem', certificate.cert);
    const env = { HTTPS_PROXY: proxy.url };
    const { stdout, end } = command(`top https://app.example/status --ca ${ca}`, { env });
    await stdout.until(/app\.example\/status live\n/);
    expect(await end()).toBe(0);
    expect(proxy.requests[0]).toMatchObject({ authority: 'app.example:443' });
  });

  it.each([
    ['market raw', 2, /An account has one connection, so each feed needs the key of another account/],
    ['market:a raw:a', 2, /An account has one connection/],
    ['http://127.0.0.1:1/ --header-file BAD', 2, /The file of --header-file must contain lines such as Authorization/],
    ['http://127.0.0.1:1/ --header-file missing', 8, /Can't read the file of --header-file: there is no such file/],
  ])('refuses `%s`', async (args, code, message) => {
    const bad = await folder.file('bad-headers', 'planted\n');
    const { stderr, exit } = command(`top ${args.replace('BAD', bad)}`, { env: nowhere });
    expect(await exit).toBe(code);
    expect(stderr.text).toMatch(message);
    expect(stderr.text).not.toContain('planted');
  });
});

const now = Date.UTC(2026, 0, 1);
const reconnects = { 'access-expired': 1, 'server-shutdown': 2 };
const stats = { framesPerSecond: 20.13, bytesPerSecond: 8_431, gaps: 2, lostMs: 1_240, dropped: 0, reconnects };
const live: Row = { name: 'market', state: 'live', stats, lastFrameAt: now - 48 };
const relay: Row = {
  name: 'a.example/status',
  state: 'unknown',
  clients: { count: 3, authorizing: 1, sent: 18_200, missed: 12 },
  cluster: { role: 'following', replica: 'eu-2', owner: 'eu-1' },
};
const rows: readonly Row[] = [
  live,
  relay,
  { name: 'raw', state: 'stopped', problem: 'Another connection took over.' },
  { name: 'b.example/status', state: 'connecting' },
];

const shown = (sources: readonly Row[], columns: number, height: number): readonly string[] =>
  table(sources, { startedAt: now - 42_000, now, columns, rows: height }).map((line) => printed(line, columns - 1));

describe('the table of top', () => {
  it('has a row for each source, with details below it, and totals of the known numbers', () => {
    expect(shown(rows, 90, 24).join('\n').replaceAll(/ +/g, ' ')).toMatch(
      /market ● live 20\.1 48 ms 2 3 - 8\.4 kB\n reconnects after [^]*status ▲ unknown - - - - 3 -\n 3 clients, [^]* total 1 of 4 live 20\.1 2 3 3 8\.4 kB\n/,
    );
    expect(shown(rows.slice(2), 90, 24).at(-3)?.replaceAll(/ +/g, ' ')).toBe(' total 0 of 2 live - - - - -');
  });

  it('shows the figures that a status has', () => {
    const text = shown([{ name: 'a', state: 'live', stats: { gaps: 2, lostMs: 1_000, dropped: 3 } }], 90, 24).join(
      '\n',
    );
    expect(text).toContain('1.0 s without frames; 3 frames dropped');
    expect(text).toMatch(/live +- +- +2 +- +- +-\n/);
  });

  it('drops columns, details and rows that do not fit, and says how many', () => {
    expect(shown(rows, 46, 9).join('\n')).toMatch(/state +frames\/s\n[^]* … and 2 more\n total +1 of 4 live +20\.1\n/);
    for (const columns of [1, 5, 20, 46, 90, 300])
      for (const height of [1, 2, 6, 9, 50]) {
        const lines = shown(rows, columns, height);
        expect(lines.length).toBeLessThanOrEqual(height);
        expect(Math.max(...lines.map(widthOf))).toBeLessThan(columns);
      }
  });

  it('marks a live feed that is silent, and shows no control characters from a name', () => {
    const row = { ...live, name: '\x1b[2Jx', lastFrameAt: now - 12_000 };
    const lines = table([row], { startedAt: now, now, columns: 90, rows: 24 });
    const colored = lines.map((line) => printed(line, 89, true)).join('\n');
    expect(colored).toContain('\x1b[33m12 s\x1b[39m');
    expect(colored).not.toContain('\x1b[2J');
  });

  it('becomes one line for each source and one for the totals in a log', () => {
    expect(rowLogLine(live, now)).toBe(
      'market live · 20.1 frames/s · last frame 48 ms ago · 2 gaps · reconnects after server-shutdown (2), access-expired (1); 1.2 s without frames',
    );
    const owner: Row = { name: 'a', state: 'live', cluster: { role: 'owning', replica: 'a', owner: 'a' } };
    expect(rowLogLine(owner, now)).toBe('a live · replica a: owning');
    expect([rows, rows.slice(2)].map(totalLogLine)).toEqual([
      'total 1 of 4 live · 20.1 frames/s · 2 gaps',
      'total 0 of 2 live',
    ]);
  });
});

it('the status of a feed is `connecting` until it opens, and says when it reconnects', () => {
  using _timers = fakeTimers();
  const source = new Subject<FeedEvent>();
  const seen: Snapshot[] = [];
  const subscription = feedSnapshots$('market', source).subscribe((snapshot) => seen.push(snapshot));
  const after = (events: readonly unknown[]): Snapshot | undefined => {
    for (const event of events) source.next(event as FeedEvent);
    jest.advanceTimersByTime(200);
    return seen.at(-1);
  };
  const [requested, ...opened] = opening(0, 1);
  expect(after([requested])).toMatchObject({ state: 'connecting' });
  expect(after(opened)).toMatchObject({ state: 'live' });
  expect(after(ending(1_000, expired, 0))).toMatchObject({ state: 'reconnecting' });
  const attempt = after(opening(1_000, 2).slice(0, 1));
  expect(attempt).toMatchObject({ state: 'reconnecting', problem: expect.stringMatching(/Reconnecting now\.$/) });
  subscription.unsubscribe();
});

const evicted = createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt: start + 1_000 });
const relayLost = relayError({ code: 'relay-lost' });
it.each<[string, readonly ClusterLifecycleEvent[]]>([
  ['an outage', [...opening(0, 1), ...ending(1_000, expired, 500)]],
  ['an outage whose gap has not come yet', [...opening(0, 1), ...ending(1_000, expired, 0), ...opening(1_000, 2)]],
  ['an outage that a known gap covers', [...opening(0, 1), gap(0, 2_000, expired), ...ending(1_000, expired, 500)]],
  ['an outage of the relay alone', [...opening(0, 1), { type: 'disconnected', at: start + 1_000, failure: relayLost }]],
  ['the end of the feed', [...opening(0, 1), { type: 'stopped', at: start + 1_000, failure: evicted }]],
])('top counts the gaps and the lost time as feedStats does: %s', (_what, events) => {
  using _timers = fakeTimers();
  jest.setSystemTime(start + 2_500);
  const source = new Subject<FeedEvent>();
  const [shown, counted]: [unknown[], unknown[]] = [[], []];
  const kept = ({ gaps, lostMs, reconnects }: NonNullable<Snapshot['stats']>) => ({ gaps, lostMs, reconnects });
  source.pipe(feedStats()).subscribe({ next: (stats) => counted.push(kept(stats)), error: () => undefined });
  const snapshots$ = feedSnapshots$('market', source);
  const subscription = snapshots$.subscribe(({ stats = {} }) => shown.push(kept(stats)));
  for (const event of events) source.next(event as FeedEvent);
  jest.advanceTimersByTime(1_000);
  if (events.at(-1)?.type === 'stopped') source.error(evicted);
  jest.advanceTimersByTime(200);
  expect(shown.at(-1)).toEqual(counted.at(-1));
  subscription.unsubscribe();
});

describe('the status of an app', () => {
  it('names the code of an error that has no message', async () => {
    const dispatcher = new MockAgent();
    const refused = Object.assign(new Error(''), { code: 'ECONNREFUSED' });
    dispatcher.get('http://a.example').intercept({ path: '/' }).replyWithError(refused);
    const snapshots$ = statusSnapshots$(new URL('http://a.example/'), { headers: {}, dispatcher });
    expect(await firstValueFrom(snapshots$)).toEqual({ state: 'unknown', problem: 'No status: ECONNREFUSED' });
    await dispatcher.close();
  });

  it('comes from a relay, connectionStatus and feedStats', async () => {
    const events$ = of(...opening(0, 1), ...ending(1_000, expired, 500));
    const connection = await lastValueFrom(events$.pipe(connectionStatus()));
    const stats = await firstValueFrom(events$.pipe(feedStats()));
    const relay = createRelay(NEVER);
    const client = relay.messages$().subscribe();
    const body = { ...relay.status(), connection, stats, lastFrameAt: 5 };
    const status = readStatus(JSON.parse(JSON.stringify(body)));
    client.unsubscribe();
    relay.close();
    expect(status).toEqual({
      state: 'reconnecting',
      problem: 'access-expired',
      stats: expect.objectContaining({ framesPerSecond: 0, gaps: 1, reconnects: { 'access-expired': 1 } }),
      lastFrameAt: 5,
      clients: { count: 1, authorizing: 0, sent: 0, missed: 0 },
      cluster: undefined,
    });
  });

  it('adds up the clients, and names the replica', () => {
    const clients = [
      { client: 1, sent: 10, missed: 1 },
      { client: 2, sent: 20, missed: 2 },
    ];
    const cluster = { role: 'owning', replica: 'a', owner: 'a' };
    const totals = { count: 2, authorizing: 4, sent: 30, missed: 3 };
    expect(readStatus({ clients, authorizing: 4, cluster })).toMatchObject({
      state: 'unknown',
      clients: totals,
      cluster,
    });
  });

  it('leaves out invalid parts, and is missing if no part is left', () => {
    const odd = { stats: { gaps: 'many' }, clients: [{}], cluster: 5 };
    expect(readStatus({ connection: { state: 'live' }, ...odd })).toEqual({ state: 'live' });
    for (const body of [null, 'text', [], {}, { status: 'ok' }, { connection: { state: 'odd' } }])
      expect(readStatus(body)).toBeUndefined();
  });
});
