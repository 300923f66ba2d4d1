import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { outagesEvery, outageWords } from '../../../src/cli/commands/demo.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { commandRunner, envOf, FakeOutput } from '../support/fakes.js';

const command = commandRunner();

describe('demo', () => {
  it('draws a panel on a terminal, and leaves a summary when it ends', async () => {
    const stdout = new FakeOutput({ columns: 60, rows: 24 });
    const { stderr, end } = command('demo --rate 200', { stdout });
    await stdout.until(/live: market, connection 1[^]*in all/);
    await stdout.until(/"batch":\d+[^]*"batch":\d+/);
    expect(await end()).toBe(0);
    expect(stdout.text).toMatch(
      /^\x1b\[\?1049h\x1b\[\?25l[^]*\x1b\[\?25h\x1b\[\?1049lFollowed market for .*\n {2}frames[^]*\n$/,
    );
    expect(stderr.text).toBe('');
  });

  it('writes events, the first frame and the status to a pipe as log lines', async () => {
    const { stdout, stderr, end } = command('demo raw --rate 500');
    await stdout.until(/streaming from local service, next outage in 8 s\n/);
    await stdout.until(/Ticket issued[^]*\(connection 1\)/);
    await stdout.until(/first frame, \d+ B: \{"hash":"0x/);
    await stdout.until(/● live: raw, connection 1 · .* frames\/s.* · next outage in \d s\n/);
    expect(await end('SIGTERM')).toBe(0);
    expect(stdout.text).toMatch(/Followed raw for .*\n {2}frames {6}[1-9][^]*gaps {8}none\n {2}reconnects {2}none\n$/);
    expect(stdout.text.match(/first frame/g)).toHaveLength(1);
    expect(stderr.text).toBe('');
    expect(stdout.text).not.toContain('\x1b');
  });

  it('restarts the service after 8 s and at intervals, refuses connections for 3 s, and waits as the library does', async () => {
    using _timers = fakeTimers();
    const { stdout, end } = command('demo --outage-every 20s');
    await stdout.until(/\(connection 1\)/);
    await jest.advanceTimersByTimeAsync(7_999);
    expect(stdout.text).not.toContain('Disconnected');
    await jest.advanceTimersByTimeAsync(1);
    await stdout.until(/Disconnected, server-shutdown: The service shut down/);
    const delays: number[] = [];
    for (let next = 1; !stdout.text.includes('(connection 2)'); next = delays.length + 1) {
      const [, delayMs] = await stdout.until(new RegExp(`Reconnect ${next} in (\\d+) ms|\\(connection 2\\)`));
      if (delayMs === undefined) break;
      delays.push(Number(delayMs));
      await jest.advanceTimersByTimeAsync(Number(delayMs));
    }
    // The library's own backoff: random delays, whose limit doubles. At least four of them take 3 s.
    for (const [n, delayMs] of delays.entries()) expect(delayMs).toBeLessThanOrEqual(500 * 2 ** n);
    expect(new Set(delays).size).toBeGreaterThan(1);
    expect(stdout.text).toMatch(/Disconnected, ticket-endpoint-unreachable: [^\n]*ECONNREFUSED/);
    await stdout.until(/\(connection 2\)/);
    await jest.advanceTimersByTimeAsync(501);
    const [, gapMs] = await stdout.until(/Frames may be missing: (\d+) ms/);
    expect(Number(gapMs)).toBeGreaterThanOrEqual(3_000);
    await jest.advanceTimersByTimeAsync(20_000);
    await stdout.until(/server-shutdown[^]*\(connection 2\)[^]*server-shutdown/);
    expect(await end()).toBe(0);
  });

  it('ends with the reason if the service cannot come back', async () => {
    using _timers = fakeTimers();
    const { stdout, stderr, exit } = command('demo');
    await stdout.until(/\(connection 1\)/);
    await jest.advanceTimersByTimeAsync(8_000);
    await stdout.until(/Reconnect 1 in/);
    await jest.advanceTimersByTimeAsync(500);
    const [, port] = await stdout.until(/ECONNREFUSED 127\.0\.0\.1:(\d+)/);
    const other = createServer((socket) => socket.destroy()).listen(Number(port), '127.0.0.1');
    await once(other, 'listening');
    await jest.advanceTimersByTimeAsync(2_500);
    expect(await exit).toBe(1);
    expect(stderr.text).toBe(
      `rx-trade-feed: Can't restart the local service at http://127.0.0.1:${port}: the port is in use.\n`,
    );
    other.close();
  });

  it.each([
    [0, 30_000, 'next outage in 8 s'],
    [8_000, 30_000, 'outage, back in 3 s'],
    [10_999, 30_000, 'outage, back in 1 s'],
    [0, 5_000, 'next outage in 5 s'],
    [5_000, 5_000, 'outage, back in 2 s'],
    [6_250, 5_000, 'next outage in 4 s'],
    [11_000, 3_600_000, 'next outage in 3597 s'],
  ])('counts down: after %d ms with an outage every %d ms it says %s', (ms, everyMs, words) => {
    expect(outageWords(outagesEvery(everyMs), ms)).toBe(words);
  });

  it('streams from the service that the environment names', async () => {
    const service = await startTradeFeedService();
    const { stdout, end } = command('demo', { env: envOf(service) });
    await stdout.until(/\(connection 1\)/);
    service.push('market', Buffer.of(1, 2, 254));
    await stdout.until(/first frame, 3 B: 0102fe\n/);
    await service.shutdown();
    await stdout.until(/Disconnected, server-shutdown: The service shut down/);
    expect(await end()).toBe(0);
    expect(stdout.text).toContain(`streaming from ${service.baseUrl}\n`);
  });

  const key = { TRADE_FEED_API_KEY: 'planted-key' };
  const odd = { ...key, TRADE_FEED_BASE_URL: 'nonsense' };
  const onlyLocal = 'applies only to the local service. Leave it out, or set neither an address nor a key.';
  const noCa = "--ca doesn't apply to the local service. Leave it out, or set the address and the key of your service.";
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['demo', key, 'a key needs an address. Set both'],
    ['demo', { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1' }, 'An address (TRADE_FEED_BASE_URL or --base-url) needs an'],
    ['demo --rate 5', odd, `--rate ${onlyLocal}`],
    ['demo --outage-every 5', odd, `--outage-every ${onlyLocal}`],
    ['demo --ca ca.pem', {}, noCa],
    ['demo', odd, 'the base URL has no scheme'],
  ])('refuses bad settings before drawing anything: `%s` with %j', async (line, env, words) => {
    const { stdout, stderr, exit } = command(line, { env, stdout: new FakeOutput({ columns: 80, rows: 24 }) });
    expect(await exit).toBe(2);
    expect(stdout.text).toBe('');
    expect(stderr.text).toContain(words);
  });

  it('restores the terminal before printing the failure', async () => {
    await using service = await startTradeFeedService();
    const { stdout, stderr, exit } = command('demo', {
      env: { ...envOf(service), TRADE_FEED_API_KEY: 'planted-key' },
      stdout: new FakeOutput({}),
    });
    expect(await exit).toBe(3);
    expect(stdout.text).toMatch(/\x1b\[\?1049lFollowed market/);
    expect(stderr.text).toMatch(/^rx-trade-feed: The service doesn't accept the API key/);
  });
});
