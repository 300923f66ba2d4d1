import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { run } from '../../../src/cli/run.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';

const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

const demo = (
  args: string,
  given: Parameters<typeof fakeContext>[0] = {},
): { context: FakeContext; exit: Promise<number> } => {
  const context = fakeContext(given);
  contexts.push(context);
  return { context, exit: run(`demo ${args}`.trim().split(' '), context) };
};

describe('demo', () => {
  it('draws a panel on a terminal, and leaves a summary', async () => {
    const stdout = new FakeOutput({ columns: 60, rows: 24 });
    const { context, exit } = demo('--rate 200', { stdout });
    await stdout.until(/live: market, connection 1[^]*in all/);
    await stdout.until(/"batch":\d+[^]*"batch":\d+/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(
      /^\x1b\[\?1049h\x1b\[\?25l[^]*\x1b\[\?25h\x1b\[\?1049lFollowed market for .*\n {2}frames[^]*\n$/,
    );
    expect(context.stderr.text).toBe('');
  });

  it('writes log lines to a pipe: events, the first frame, the status', async () => {
    const { context, exit } = demo('raw --rate 500');
    await context.stdout.until(/streaming from local service, with an outage every 30 s\n/);
    await context.stdout.until(/ticket issued.*\n.*connection 1 is open/);
    await context.stdout.until(/first frame, \d+ B: \{"hash":"0x/);
    await context.stdout.until(/● live: raw, connection 1 · .* frames\/s/);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
    expect(context.stdout.text).toMatch(
      /Followed raw for .*\n {2}frames {6}[1-9][^]*gaps {8}none\n {2}reconnects {2}none\n$/,
    );
    expect(context.stderr.text).toBe('');
    expect(context.stdout.text).not.toContain('\x1b');
  });

  it('shows a reconnect at intervals', async () => {
    const { context, exit } = demo('--outage-every 300ms');
    await context.stdout.until(/with an outage every 300 ms/);
    await context.stdout.until(/gap of /);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stdout.text).toMatch(/disconnected: The access of this connection expired[^]*gaps {8}[1-9]\d*,/);
  });

  it('ends after its duration', async () => {
    using _timers = fakeTimers();
    const { context, exit } = demo('--duration 150ms --outage-every 0');
    await context.stdout.until(/connection 1 is open/);
    jest.advanceTimersByTime(150);
    expect(await exit).toBe(0);
    expect(context.stdout.text).toContain('streaming from local service\n');
  });

  it('streams from the service of the environment', async () => {
    const service = await startTradeFeedService();
    const TRADE_FEED_API_KEY = service.createAccount({ plan: 'developer' }).createApiKey();
    const { context, exit } = demo('', { env: { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY } });
    await context.stdout.until(/connection 1 is open/);
    service.push('market', Buffer.of(1, 2, 254));
    await context.stdout.until(/first frame, 3 B: 0102fe\n/);
    await service.shutdown();
    await context.stdout.until(/disconnected: The service shut down/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stdout.text).toContain(`streaming from ${service.baseUrl}\n`);
    expect(context.stdout.text).not.toContain(TRADE_FEED_API_KEY);
  });

  it('explains whether the address or the key is missing', async () => {
    const noUrl = demo('', { env: { TRADE_FEED_API_KEY: 'planted-key' } });
    expect(await noUrl.exit).toBe(2);
    expect(noUrl.context.stderr.text).toMatch(
      /There is an API key, but no address \(TRADE_FEED_BASE_URL or --base-url\)/,
    );
    const noKey = demo('', { env: { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1' } });
    expect(await noKey.exit).toBe(2);
    expect(noKey.context.stderr.text).toMatch(
      /There is an address, but no API key \(TRADE_FEED_API_KEY or --key-file\)/,
    );
  });

  it('refuses options of the local service for another service, and an invalid address before it draws', async () => {
    const env = { TRADE_FEED_BASE_URL: 'nonsense', TRADE_FEED_API_KEY: 'planted-key' };
    const local = demo('--rate 5', { env });
    expect(await local.exit).toBe(2);
    expect(local.context.stderr.text).toContain('--rate applies only to the local service.');
    const ca = demo('--ca ca.pem');
    expect(await ca.exit).toBe(2);
    expect(ca.context.stderr.text).toContain('--ca does not apply to the local service.');
    const bad = demo('', { env, stdout: new FakeOutput({ columns: 80, rows: 24 }) });
    expect(await bad.exit).toBe(2);
    expect(bad.context.stdout.text).toBe('');
    expect(bad.context.stderr.text).toContain('the base URL must be an https: address');
  });

  it('restores the terminal before it prints the failure', async () => {
    const service = await startTradeFeedService();
    const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: 'planted-key' };
    const { context, exit } = demo('', { env, stdout: new FakeOutput({}) });
    expect(await exit).toBe(3);
    expect(context.stdout.text).toMatch(/\x1b\[\?1049lFollowed market/);
    expect(context.stderr.text).toMatch(/^rx-trade-feed: The service does not accept the API key/);
    await service.shutdown();
  });
});
