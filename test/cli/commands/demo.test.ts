import { describe, expect, it, jest } from '@jest/globals';
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
    await stdout.until(/streaming from local service, with an outage every 30 s\n/);
    await stdout.until(/Ticket issued[^]*\(connection 1\)/);
    await stdout.until(/first frame, \d+ B: \{"hash":"0x/);
    await stdout.until(/● live: raw, connection 1 · .* frames\/s/);
    expect(await end('SIGTERM')).toBe(0);
    expect(stdout.text).toMatch(/Followed raw for .*\n {2}frames {6}[1-9][^]*gaps {8}none\n {2}reconnects {2}none\n$/);
    expect(stdout.text.match(/first frame/g)).toHaveLength(1);
    expect(stderr.text).toBe('');
    expect(stdout.text).not.toContain('\x1b');
  });

  it('makes the feed reconnect at intervals', async () => {
    const { stdout, end } = command('demo --outage-every 300ms');
    await stdout.until(/with an outage every 300 ms/);
    await stdout.until(/Frames may be missing/);
    expect(await end()).toBe(0);
    expect(stdout.text).toMatch(/Disconnected, access-expired: This connection's access expired[^]*gaps {8}[1-9]\d*,/);
  });

  it('has no outages with --outage-every 0', async () => {
    const { stdout, end } = command('demo --outage-every 0');
    await stdout.until(/streaming from local service\n[^]*\(connection 1\)/);
    expect(await end()).toBe(0);
  });

  it('makes each outage last 3 s, so that you can watch it', async () => {
    using _timers = fakeTimers();
    const { stdout, end } = command('demo');
    await stdout.until(/\(connection 1\)/);
    jest.advanceTimersByTime(30_000);
    for (const attempt of [2, 3, 4]) {
      await stdout.until(new RegExp(`Reconnect ${attempt} in 1000 ms`));
      jest.advanceTimersByTime(1_000);
    }
    await stdout.until(/\(connection 2\)/);
    jest.advanceTimersByTime(501);
    await stdout.until(/Frames may be missing: 3\d{3} ms/);
    expect(await end()).toBe(0);
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
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['demo', key, 'There is an API key, but no address (TRADE_FEED_BASE_URL or --base-url)'],
    ['demo', { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1' }, 'no API key (TRADE_FEED_API_KEY or --key-file)'],
    [
      'demo --rate 5',
      odd,
      '--rate applies only to the local service. Leave it out, or set neither an address nor a key.',
    ],
    [
      'demo --outage-every 5',
      odd,
      '--outage-every applies only to the local service. Leave it out, or set neither an address nor a key.',
    ],
    [
      'demo --ca ca.pem',
      {},
      "--ca doesn't apply to the local service. Leave it out, or set the address and the key of your service.",
    ],
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
