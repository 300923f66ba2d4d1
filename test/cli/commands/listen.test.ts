import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { clientRunner, FakeOutput } from '../support/fakes.js';

let service: TradeFeedService;
beforeAll(async () => {
  // Keeps the service from closing a slow client.
  service = await startTradeFeedService({ limits: { backlogBytes: Infinity } });
});
afterAll(() => service.shutdown());

const listen = clientRunner('listen', () => service);

const opened = /\(connection 1\)/;

describe('listen', () => {
  it('writes frames as lines until --count is reached, and a summary to stderr', async () => {
    const { stdout, stderr, exit } = listen('--count 3');
    await stderr.until(opened);
    for (const payload of ['{"n":1}', Buffer.of(0, 255), 'three', 'four']) service.push('market', payload);
    expect(await exit).toBe(0);
    expect(stdout.text).toBe('{"n":1}\nAP8=\nthree\n');
    expect(stderr.text).toMatch(/^\S+Z 3 frames, 14 B in .*; gaps: none; reconnects: none\n$/m);
  });

  it('writes JSON, with gaps where they happened', async () => {
    const { stdout, stderr, account, exit } = listen('raw --json --count 2');
    await stdout.until(/"opened"/);
    service.push('raw', 'one');
    await stdout.until(/"one"/);
    account.expireAccess();
    await stdout.until(/"gap"/);
    service.push('raw', Buffer.from('two'));
    expect(await exit).toBe(0);
    const records = stdout.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    const attempt = ['ticket-requested', 'ticket-issued', 'opened'];
    const types = [...attempt, 'frame', 'disconnected', 'reconnecting', ...attempt, 'gap', 'frame'];
    expect(records.map(({ type }) => type)).toStrictEqual(types);
    expect(records[3]).toMatchObject({ feed: 'raw', connection: 1, isBinary: false, encoding: 'utf8', data: 'one' });
    expect(records[10]).toMatchObject({ connection: 2, encoding: 'base64', data: 'dHdv' });
    expect(stderr.text).toMatch(
      /Frames may be missing: \d+ ms[^]*; gaps: 1, .*; reconnects: 1, after access-expired\n$/,
    );
  });

  it('shows a status line on a terminal, and payloads that cannot control it', async () => {
    const [stdout, stderr] = [new FakeOutput({ columns: 100, rows: 10 }), new FakeOutput({ columns: 100, rows: 10 })];
    const { end } = listen('', { stdout, stderr, env: { NO_COLOR: '1' } });
    await stderr.until(/● live: market, connection 1/);
    service.push('market', '\x1b[2J');
    await stdout.until(/\n/);
    await stderr.until(/ · 1 frame/);
    expect(await end()).toBe(0);
    expect(stdout.text).toBe('␛[2J\n');
    expect(stderr.text).toMatch(/\x1b\[r.*Followed market for .*\n {2}frames {6}1, /s);
    expect(stderr.text).not.toMatch(/\d{4}-\d\d-\d\dT/);
  });

  it('writes plain log lines on a terminal with --no-status, and none with -q', async () => {
    const plain = listen('--no-status', { stderr: new FakeOutput({}) });
    await plain.stderr.until(opened);
    expect(await plain.end()).toBe(0);
    expect(plain.stderr.text).not.toContain('\x1b');
    const quiet = listen('-q --json');
    await quiet.stdout.until(/"opened"/);
    expect(await quiet.end()).toBe(0);
    expect(quiet.stderr.text).toBe('');
  });

  it('has another exit code for running out of time than for a signal before --count is reached', async () => {
    using _timers = fakeTimers();
    for (const [args, code] of [['--duration 100ms', 0] as const, ['--duration 100ms --count 1', 6] as const]) {
      const { stderr, exit } = listen(args);
      await stderr.until(opened);
      jest.advanceTimersByTime(100);
      expect(await exit).toBe(code);
    }
    const { stderr, end } = listen('--count 1');
    await stderr.until(opened);
    expect(await end('SIGTERM')).toBe(130);
  });

  it('says why the feed stopped: on stderr, by its exit code, and in the JSON on stdout', async () => {
    const { stdout, stderr, exit } = listen('--json -q', { env: { TRADE_FEED_API_KEY: 'planted-key' } });
    expect(await exit).toBe(3);
    expect(JSON.parse(stdout.text.trim().split('\n').at(-1) ?? '')).toMatchObject({
      type: 'stopped',
      failure: { code: 'invalid-api-key' },
    });
    expect(stderr.text).toBe(
      "rx-trade-feed: The service doesn't accept the API key (HTTP 401). Set TRADE_FEED_API_KEY to a valid key, or use --key-file.\n",
    );
  });

  it.each<[string, string, Readonly<Record<string, string>>, number, RegExp]>([
    [
      'a service that cannot be reached',
      '--retries 1',
      { TRADE_FEED_BASE_URL: 'http://127.0.0.1:9' },
      6,
      /gave up after 1 reconnect \(--retries\) .* The last failure was ticket-endpoint-unreachable: .*ECONNREFUSED.*raise --retries\.$/m,
    ],
    ['a proxy of another kind', '', { HTTPS_PROXY: 'socks5://a.example:1080' }, 2, /HTTPS_PROXY must be the http: or/],
    ['a wrong option', '--base-url http://a.example', {}, 2, /^.*the base URL is http:.*\nTry .*\n$/],
  ])('stops at %s', async (_what, args, env, code, words) => {
    const { stderr, exit } = listen(`-q ${args}`, { env });
    expect(await exit).toBe(code);
    expect(stderr.text).toMatch(words);
  });

  it('stops when another client takes over the connection', async () => {
    const { stderr, account, exit } = listen('raw');
    await stderr.until(opened);
    const second = listen('market', { env: { TRADE_FEED_API_KEY: account.createApiKey() } });
    expect(await exit).toBe(4);
    expect(stderr.text).toMatch(/rx-trade-feed: Another client connected with this account.*\(close code 4001/);
    await second.stderr.until(opened);
    expect(await second.end()).toBe(0);
  });

  it('keeps reading while more than 64 MiB wait for stdout, and reports dropped lines, also in their place', async () => {
    const { stdout, stderr, exit } = listen('--count 6 --json');
    await stderr.until(opened);
    stdout.block();
    const payload = Buffer.alloc(15 * 1024 * 1024, 'x').toString();
    for (let n = 0; n < 6; n += 1) service.push('market', payload);
    await stderr.until(/too slow: the oldest lines are dropped/);
    stdout.unblock();
    expect(await exit).toBe(0);
    expect(stderr.text).toMatch(/Z 1 line dropped.*\n.*Z 6 frames.*; dropped: 1 line\n/);
    expect(stdout.text.includes('{"type":"dropped"')).toBe(true);
  }, 60_000);
});
