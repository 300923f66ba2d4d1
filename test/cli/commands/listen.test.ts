import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { run } from '../../../src/cli/run.js';
import { startTradeFeedService, type TradeFeedAccount, type TradeFeedService } from '../../../src/testing/index.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';

let service: TradeFeedService;
beforeAll(async () => {
  // The backlog is the service's own answer to slowness, which must not be needed here.
  service = await startTradeFeedService({ limits: { backlogBytes: Infinity } });
});
afterAll(() => service.shutdown());

/** What was started and must not outlive its test. */
const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
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
  test('writes frames as lines until it has enough, and tells on stderr how it went', async () => {
    const { context, exit } = listen('--count 3');
    await context.stderr.until(opened);
    for (const payload of ['{"n":1}', Buffer.of(0, 255), 'three']) service.push('market', payload);
    service.push('market', 'four');
    expect(await exit).toBe(0);
    expect(context.stdout.text).toBe('{"n":1}\nAP8=\nthree\n');
    expect(context.stderr.text).toMatch(/^\S+Z 3 frames, 14 B in .*; gaps: none; reconnects: none\n$/m);
  });

  test('writes JSON with gaps in their place', async () => {
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
    expect(records[3]).toMatchObject({ feed: 'raw', connection: 1, encoding: 'utf8', data: 'one' });
    expect(records[10]).toMatchObject({ connection: 2, encoding: 'base64', data: 'dHdv' });
    expect(context.stderr.text).toMatch(/gap of \d+ ms/);
  });

  test('is quiet when asked to', async () => {
    const { context, exit } = listen('-q --json');
    await context.stdout.until(/"opened"/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).toBe('');
  });

  test('keeps a status line on a terminal, and shows payloads there that cannot steer it', async () => {
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

  test('writes plain lines on a terminal when asked to', async () => {
    const { context, exit } = listen('--no-status', { stderr: new FakeOutput({}) });
    await context.stderr.until(opened);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).not.toContain('\x1b');
  });

  test('ends when the time is up, and says by its exit code whether that was enough', async () => {
    expect(await listen('--duration 100ms').exit).toBe(0);
    expect(await listen('--duration 100ms --count 1').exit).toBe(124);
  });

  test('does not pass for done when it is interrupted before', async () => {
    const { context, exit } = listen('--count 1');
    await context.stderr.until(opened);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(143);
  });

  test('says why the feed stopped, as its exit code and on stdout too when that is JSON', async () => {
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

  test('ends cleanly when the reader of stdout is gone', async () => {
    const { context, exit } = listen('--count 5');
    await context.stderr.until(opened);
    context.stdout.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    expect(await exit).toBe(0);
    expect(context.stderr.text).not.toContain('rx-trade-feed:');
  });

  test('says that stdout cannot be written', async () => {
    const { context, exit } = listen('');
    await context.stderr.until(opened);
    context.stdout.destroy(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' }));
    expect(await exit).toBe(8);
    expect(context.stderr.text).toContain('rx-trade-feed: Cannot write to stdout: no space is left.\n');
  });

  test.each(['', '--json'])('reads on while nobody reads stdout, and tells what it dropped %s', async (json) => {
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

  test('reports options that the library refuses', async () => {
    const { context, exit } = listen('--base-url http://feed.example');
    expect(await exit).toBe(2);
    expect(context.stderr.text).toMatch(
      /^rx-trade-feed: The settings are not valid \(the base URL must be an https: address.*\nTry rx-trade-feed listen --help\.\n$/,
    );
  });
});
