import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { run } from '../../../src/cli/run.js';
import {
  marketBatches$,
  startTradeFeedService,
  type TradeFeedAccount,
  type TradeFeedService,
} from '../../../src/testing/index.js';
import { certificateFor } from '../../support/certificate.js';
import { startConnectProxy } from '../../support/connect-proxy.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();

let service: TradeFeedService;
beforeAll(async () => {
  // The service must not close a slow client in this test.
  service = await startTradeFeedService({ limits: { backlogBytes: Infinity } });
});
afterAll(() => service.shutdown());

/** The contexts to end after each test. */
const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$, env, stdout, stderr } of contexts.splice(0)) {
    interrupt$.next('SIGTERM');
    for (const { text } of [stdout, stderr]) {
      expect(text).not.toContain(env['TRADE_FEED_API_KEY']);
      expect(text).not.toMatch(/ticket_/);
    }
  }
});

interface Listener {
  readonly context: FakeContext;
  readonly account: TradeFeedAccount;
  readonly exit: Promise<number>;
}

const listen = (
  args: string,
  given: Parameters<typeof fakeContext>[0] = {},
  plan: 'free' | 'developer' = 'developer',
): Listener => {
  const account = service.createAccount({ plan });
  const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey(), ...given.env };
  const context = fakeContext({ ...given, env });
  contexts.push(context);
  return { context, account, exit: run(['listen', ...args.split(' ').filter(Boolean)], context) };
};

const opened = /connection 1 is open/;

describe('listen', () => {
  it('writes frames as lines up to --count, and prints a summary on stderr', async () => {
    const { context, exit } = listen('--count 3');
    await context.stderr.until(opened);
    for (const payload of ['{"n":1}', Buffer.of(0, 255), 'three']) service.push('market', payload);
    service.push('market', 'four');
    expect(await exit).toBe(0);
    expect(context.stdout.text).toBe('{"n":1}\nAP8=\nthree\n');
    expect(context.stderr.text).toMatch(/^\S+Z 3 frames, 14 B in .*; gaps: none; reconnects: none\n$/m);
  });

  it('writes JSON with gaps in their place', async () => {
    const { context, account, exit } = listen('raw --json --count 2');
    await context.stdout.until(/"opened"/);
    service.push('raw', 'one');
    await context.stdout.until(/"one"/);
    account.expireAccess();
    await context.stdout.until(/"gap"/);
    service.push('raw', Buffer.from('two'));
    expect(await exit).toBe(0);
    const records = context.stdout.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string });
    expect(records.map(({ type }) => type)).toStrictEqual([
      'ticket-requested',
      'ticket-issued',
      'opened',
      'frame',
      'disconnected',
      'reconnecting',
      'ticket-requested',
      'ticket-issued',
      'opened',
      'gap',
      'frame',
    ]);
    expect(records[3]).toMatchObject({ feed: 'raw', connection: 1, isBinary: false, encoding: 'utf8', data: 'one' });
    expect(records[10]).toMatchObject({ connection: 2, encoding: 'base64', data: 'dHdv' });
    expect(context.stderr.text).toMatch(/gap of \d+ ms/);
  });

  it('prints nothing on stderr with -q', async () => {
    const { context, exit } = listen('-q --json');
    await context.stdout.until(/"opened"/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).toBe('');
  });

  it('shows a status line on a terminal, and payloads that cannot control it', async () => {
    const [stdout, stderr] = [new FakeOutput({ columns: 100, rows: 10 }), new FakeOutput({ columns: 100, rows: 10 })];
    const { context, exit } = listen('', { stdout, stderr, env: { NO_COLOR: '1' } });
    await stderr.until(/● live: market, connection 1/);
    service.push('market', '\x1b[2J');
    await stdout.until(/\n/);
    await stderr.until(/ · 1 frame/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(stdout.text).toBe('␛[2J\n');
    expect(stderr.text).toMatch(/\x1b\[r.*Followed market for .*\n {2}frames {6}1, /s);
    expect(stderr.text).not.toMatch(/\d{4}-\d\d-\d\dT/);
  });

  it('writes plain lines on a terminal with --no-status', async () => {
    const { context, exit } = listen('--no-status', { stderr: new FakeOutput({}) });
    await context.stderr.until(opened);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).not.toContain('\x1b');
  });

  it('ends after --duration, with an exit code that depends on --count', async () => {
    using _timers = fakeTimers();
    const exitCodeOf = async (args: string): Promise<number> => {
      const { context, exit } = listen(args);
      await context.stderr.until(opened);
      jest.advanceTimersByTime(100);
      return exit;
    };
    expect(await exitCodeOf('--duration 100ms')).toBe(0);
    expect(await exitCodeOf('--duration 100ms --count 1')).toBe(124);
  });

  it('has the exit code of the signal when it is interrupted before --count', async () => {
    const { context, exit } = listen('--count 1');
    await context.stderr.until(opened);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(143);
  });

  it('explains why the feed stopped, with an exit code, and in the JSON on stdout', async () => {
    const { context, exit } = listen('--json -q', { env: { TRADE_FEED_API_KEY: 'planted-key' } });
    expect(await exit).toBe(3);
    expect(JSON.parse(context.stdout.text.trim().split('\n').at(-1) ?? '')).toMatchObject({
      type: 'stopped',
      failure: { code: 'invalid-api-key' },
    });
    expect(context.stderr.text).toBe(
      'rx-trade-feed: The service does not accept the API key (HTTP 401). Set TRADE_FEED_API_KEY to a valid key, or use --key-file.\n',
    );
    expect(context.stdout.text).not.toContain('planted-key');
  });

  it('stops at a server without TLS, and explains what is wrong with the address', async () => {
    const TRADE_FEED_BASE_URL = service.baseUrl.replace('http:', 'https:');
    const { context, exit } = listen('-q', { env: { TRADE_FEED_BASE_URL } });
    expect(await exit).toBe(5);
    expect(context.stderr.text).toBe(
      'rx-trade-feed: The server answered without TLS, although the base URL begins with https:. ' +
        'Check the host and the port of the base URL: this port speaks plain HTTP or another protocol.\n',
    );
  });

  it('uses the proxy of the environment', async () => {
    const certificate = await certificateFor('feed.example');
    const source = marketBatches$({ rate: 100 });
    await using behind = await startTradeFeedService({
      tls: certificate,
      publicUrl: 'https://feed.example',
      sources: { market: source },
    });
    await using proxy = await startConnectProxy({
      targets: { 'feed.example:443': Number(new URL(behind.baseUrl).port) },
    });
    const env = {
      TRADE_FEED_BASE_URL: 'https://feed.example',
      TRADE_FEED_API_KEY: behind.createAccount({ plan: 'developer' }).createApiKey(),
      HTTPS_PROXY: proxy.url,
    };
    const ca = await folder.file('proxied-ca.pem', certificate.cert);
    const { context, exit } = listen(`-q -n 1 --ca ${ca}`, { env });
    expect(await exit).toBe(0);
    expect(context.stdout.text).toMatch(/^\{"batch"/);
    expect(proxy.tunnels()).toBe(2);
  });

  it('refuses a proxy that it cannot use', async () => {
    const { context, exit } = listen('-q', { env: { HTTPS_PROXY: 'socks5://proxy.example:1080' } });
    expect(await exit).toBe(2);
    expect(context.stderr.text).toMatch(/HTTPS_PROXY must be the http: or https: address of a proxy/);
  });

  it('stops when another client takes the connection over', async () => {
    const { context, account, exit } = listen('raw');
    await context.stderr.until(opened);
    const second = listen('market', { env: { TRADE_FEED_API_KEY: account.createApiKey() } });
    expect(await exit).toBe(4);
    expect(context.stderr.text).toMatch(
      /rx-trade-feed: Another connection of the same account took over.*\(close code 4001/,
    );
    await second.context.stderr.until(opened);
    second.context.interrupt$.next('SIGINT');
    expect(await second.exit).toBe(0);
  });

  it('stops after the reconnects of --retries when the service cannot be reached', async () => {
    expect(await listen('--retries 0', { env: { TRADE_FEED_BASE_URL: 'http://127.0.0.1:9' } }).exit).toBe(7);
  });

  it('reads the key from a file', async () => {
    const keyFile = await folder.file('key', `${service.createAccount({ plan: 'developer' }).createApiKey()}\n`);
    const context = fakeContext();
    const exit = run(['listen', '--count', '1', '--base-url', service.baseUrl, '--key-file', keyFile], context);
    await context.stderr.until(opened);
    service.push('market', 'one');
    expect(await exit).toBe(0);
  });

  it('ends with exit code 0 when the reader of stdout has exited', async () => {
    const { context, exit } = listen('--count 5');
    await context.stderr.until(opened);
    context.stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    expect(await exit).toBe(0);
    expect(context.stderr.text).not.toContain('rx-trade-feed:');
  });

  it('reports that stdout cannot be written', async () => {
    const { context, exit } = listen('');
    await context.stderr.until(opened);
    context.stdout.destroy(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' }));
    expect(await exit).toBe(8);
    expect(context.stderr.text).toContain('rx-trade-feed: Cannot write to stdout: no space is left.\n');
  });

  it.each(['', '--json'])('continues to read while stdout is blocked, and reports dropped lines %s', async (json) => {
    const { context, exit } = listen(`--count 6 ${json}`);
    await context.stderr.until(opened);
    context.stdout.block();
    const payload = Buffer.alloc(15 * 1024 * 1024, 'x').toString();
    for (let n = 0; n < 6; n += 1) service.push('market', payload);
    await context.stderr.until(/too slow: the oldest lines are dropped/);
    context.stdout.unblock();
    expect(await exit).toBe(0);
    expect(context.stderr.text).toMatch(/Z 1 line dropped.*\n.*Z 6 frames.*; dropped: 1 line\n/);
    expect(context.stdout.text.includes('{"type":"dropped"')).toBe(json !== '');
  });

  it('reports options that the library refuses', async () => {
    const { context, exit } = listen('--base-url http://feed.example');
    expect(await exit).toBe(2);
    expect(context.stderr.text).toMatch(
      /^rx-trade-feed: The settings are not valid \(the base URL must be an https: address.*\nTry rx-trade-feed listen --help\.\n$/,
    );
  });
});
