import { afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { filter, firstValueFrom } from 'rxjs';
import { run } from '../../../src/cli/run.js';
import { tradeFeed$ } from '../../../src/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { type Certificate, certificateFor } from '../../support/certificate.js';
import { startConnectProxy } from '../../support/connect-proxy.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();

let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor();
});

const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { env, stdout, stderr } of contexts.splice(0)) {
    for (const { text } of [stdout, stderr]) {
      expect(text).not.toContain(env['TRADE_FEED_API_KEY'] ?? 'no key');
      expect(text).not.toMatch(/ticket_/);
    }
  }
});

type Env = Readonly<Record<string, string>>;

const doctor = (
  args: string,
  env: Env,
  stdout = new FakeOutput(),
): { readonly context: FakeContext; readonly exit: Promise<number> } => {
  const context = fakeContext({ env, stdout });
  contexts.push(context);
  return { context, exit: run(['doctor', ...args.split(' ').filter(Boolean)], context) };
};

const envOf = ({ baseUrl, createAccount }: TradeFeedService, account = createAccount({ plan: 'developer' })): Env => ({
  TRADE_FEED_BASE_URL: baseUrl,
  TRADE_FEED_API_KEY: account.createApiKey(),
});

/** The end of a run: the exit code, and the status, the text and the advice of each check. */
const findingsOf = async (args: string, env: Env) => {
  const { context, exit } = doctor(`${args} --json`, env);
  const exitCode = await exit;
  const report = JSON.parse(context.stdout.text) as {
    readonly exitCode: number;
    readonly checks: readonly { readonly name: string; readonly status: string; readonly text: string }[];
  };
  expect(report.exitCode).toBe(exitCode);
  return { exitCode, ...Object.fromEntries(report.checks.map(({ name, ...finding }) => [name, finding])) };
};

const says = (status: string, text: RegExp, advice?: RegExp): object => ({
  status,
  text: expect.stringMatching(text),
  ...(advice && { advice: expect.stringMatching(advice) }),
});

describe('doctor', () => {
  it('finds no problem in a healthy service, and opens no connection', async () => {
    await using service = await startTradeFeedService();
    const seen: string[] = [];
    service.events$.subscribe(({ type }) => seen.push(type));
    const { context, exit } = doctor('', envOf(service));
    expect(await exit).toBe(0);
    expect(context.stdout.text.replaceAll(/ +/g, ' ').split('\n')).toEqual([
      expect.stringMatching(/^ ok node Node \d+\.\d+\.\d+$/),
      ` ok settings ${service.baseUrl}/, with an API key`,
      ' ok proxy none',
      ' skipped dns 127.0.0.1 is an IP address',
      expect.stringMatching(/^ ok tcp port \d+: 127\.0\.0\.1 in .*s$/),
      ' skipped tls none: the service is on this machine',
      expect.stringMatching(/^ ok ticket the API key is valid; a ticket for market in .*, good for .*s$/),
      expect.stringMatching(/^ ok clock the difference to the service is at most 5\.0 s$/),
      ' skipped handshake use --connect to open a connection; it closes the connection of another client of the account',
      ' skipped other client no connection',
      ' skipped first frame no connection',
      'No problem was found.',
      '',
    ]);
    expect(context.stderr.text).toBe('');
    expect(seen).not.toContain('handshake-accepted');
  });

  it('with --connect waits for another client and for the first frame', async () => {
    using _timers = fakeTimers();
    await using service = await startTradeFeedService();
    const { context, exit } = doctor('--connect', envOf(service));
    await context.stdout.until(/ok +handshake +open in .*\n/);
    service.push('market', 'a frame');
    await context.stdout.until(/handshake/);
    jest.advanceTimersByTime(10_000);
    await context.stdout.until(/ok +other client +no other client of the account took over within 10 s\n/);
    jest.advanceTimersByTime(1);
    expect(await exit).toBe(0);
    expect(context.stdout.text).toMatch(/ok +first frame +.*s after the opening\nNo problem was found\.\n$/);
  });

  it('reports a feed without frames', async () => {
    using _timers = fakeTimers();
    await using service = await startTradeFeedService();
    const { context, exit } = doctor('raw --connect --frame-within 30', envOf(service));
    await context.stdout.until(/handshake +open/);
    jest.advanceTimersByTime(10_000);
    await context.stdout.until(/ok +other client/);
    jest.advanceTimersByTime(20_000);
    expect(await exit).toBe(124);
    expect(context.stdout.text).toMatch(
      /failed +first frame +No frame of raw arrived within 30 s\.\n +-> .*--frame-within/,
    );
    expect(context.stdout.text).toMatch(/\nThe feed cannot work\. The later checks were skipped\.\n$/);
  });

  it('reports another client of the account', async () => {
    await using service = await startTradeFeedService();
    const account = service.createAccount({ plan: 'developer' });
    const { context, exit } = doctor('--connect', envOf(service, account));
    await context.stdout.until(/handshake +open/);
    const options = { baseUrl: service.baseUrl, apiKey: account.createApiKey() };
    const other = tradeFeed$('market', options).subscribe();
    expect(await exit).toBe(4);
    other.unsubscribe();
    expect(context.stdout.text).toMatch(/failed +other client +.*\(close code 4001, .*\n +-> Find the other client/);
  });

  it('closes its connection at the end', async () => {
    using _timers = fakeTimers();
    await using service = await startTradeFeedService();
    const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
    const { context, exit } = doctor('--connect', envOf(service));
    await context.stdout.until(/handshake +open/);
    jest.advanceTimersByTime(10_000);
    await context.stdout.until(/ok +other client/);
    jest.advanceTimersByTime(1);
    expect(await exit).toBe(124);
    expect(await closed).toMatchObject({ by: 'client', code: 1000 });
  });

  it('tells a wrong key, an account without access and a rate limit apart', async () => {
    await using service = await startTradeFeedService({ limits: { ticketsPerWindow: 1 } });
    const env = envOf(service);
    expect(await findingsOf('', { ...env, TRADE_FEED_API_KEY: 'planted-wrong-key' })).toMatchObject({
      exitCode: 3,
      ticket: says('failed', /does not accept the API key \(HTTP 401\)/, /TRADE_FEED_API_KEY/),
      handshake: says('skipped', /^after the failure of ticket$/),
    });
    const inactive = service.createAccount({ active: false });
    expect(await findingsOf('', envOf(service, inactive))).toMatchObject({
      exitCode: 3,
      ticket: says('failed', /inactive or is not entitled to the stream \(HTTP 403\)/, /Restore access/),
    });
    expect(await findingsOf('', env)).toMatchObject({ exitCode: 0 });
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 7,
      ticket: says('failed', /Too many tickets.*\(HTTP 429\)/, /^Wait \d+ .*, then run doctor again\.$/),
    });
  });

  it('reports missing and wrong settings', async () => {
    expect(await findingsOf('', {})).toMatchObject({
      exitCode: 2,
      settings: says('failed', /^The address of the service is missing\./),
      proxy: says('skipped', /^after the failure of settings$/),
    });
    const TRADE_FEED_API_KEY = 'planted-key';
    for (const TRADE_FEED_BASE_URL of ['nonsense', 'http://feed.example'])
      expect(await findingsOf('', { TRADE_FEED_BASE_URL, TRADE_FEED_API_KEY })).toMatchObject({
        exitCode: 2,
        settings: says('failed', /the base URL must be an https: address/),
      });
    expect(await findingsOf('--key-file missing', { TRADE_FEED_BASE_URL: 'https://feed.example' })).toMatchObject({
      exitCode: 8,
      settings: says('failed', /there is no such file/),
    });
  });

  it('reports a host that DNS does not know, or a DNS that does not answer', async () => {
    const env = { TRADE_FEED_BASE_URL: 'https://feed.invalid', TRADE_FEED_API_KEY: 'planted-key' };
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 7,
      dns: says('failed', /^DNS (knows no host|did not answer for) feed\.invalid/, /HTTPS_PROXY/),
    });
  });

  it('reports a port on which no program listens', async () => {
    const env = { TRADE_FEED_BASE_URL: 'https://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 7,
      tcp: says('failed', /^port 1: 127\.0\.0\.1 failed: ECONNREFUSED$/, /^No program listens there\./),
    });
  });

  it('reports an https: address of a server without TLS', async () => {
    await using service = await startTradeFeedService();
    const env = { ...envOf(service), TRADE_FEED_BASE_URL: service.baseUrl.replace('http:', 'https:') };
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 5,
      tls: says('failed', /^The server answered without TLS/, /^Check the host and the port/),
    });
  });

  it('examines the certificate, with and without its CA', async () => {
    await using service = await startTradeFeedService({ tls: certificate });
    expect(await findingsOf('', envOf(service))).toMatchObject({
      exitCode: 6,
      tls: says('failed', /^The certificate is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\): localhost\.$/, /--ca FILE/),
    });
    const ca = await folder.file('ca.pem', certificate.cert);
    expect(await findingsOf(`--ca ${ca}`, envOf(service))).toMatchObject({
      exitCode: 0,
      tls: says('ok', /^TLSv1\.3; localhost; \d+ days left$/),
      clock: says('ok', /at most 5\.0 s/),
    });
    const other = await certificateFor('elsewhere.example');
    await using misnamed = await startTradeFeedService({ tls: other });
    const otherCa = await folder.file('other-ca.pem', other.cert);
    expect(await findingsOf(`--ca ${otherCa}`, envOf(misnamed))).toMatchObject({
      exitCode: 6,
      tls: says('failed', /^The certificate is for elsewhere\.example\.$/, /host of the base URL/),
    });
  });

  it('uses the proxy of the environment for every check', async () => {
    const named = await certificateFor('feed.example');
    await using service = await startTradeFeedService({ tls: named, publicUrl: 'https://feed.example' });
    await using proxy = await startConnectProxy({
      targets: { 'feed.example:443': Number(new URL(service.baseUrl).port) },
    });
    const env = { ...envOf(service), TRADE_FEED_BASE_URL: 'https://feed.example', HTTPS_PROXY: proxy.url };
    const ca = await folder.file('named-ca.pem', named.cert);
    expect(await findingsOf(`--ca ${ca}`, env)).toMatchObject({
      exitCode: 0,
      proxy: says('ok', /^through 127\.0\.0\.1:\d+, from HTTPS_PROXY$/),
      dns: says('skipped', /^127\.0\.0\.1 is an IP address$/),
      tls: says('ok', /^TLSv1\.3; feed\.example; /),
      ticket: says('ok', /the API key is valid/),
    });
    await using refusing = await startConnectProxy({ targets: { 'feed.example:443': 1 }, status: 407 });
    expect(await findingsOf('', { ...env, HTTPS_PROXY: refusing.url })).toMatchObject({
      exitCode: 7,
      tls: says('failed', /the proxy .* refused the connection to feed\.example:443 \(HTTP 407\)/, /proxy/),
    });
  });

  it('uses colours on a terminal only', async () => {
    const stdout = new FakeOutput({ columns: 80, rows: 24 });
    expect(await doctor('', {}, stdout).exit).toBe(2);
    expect(stdout.text).toMatch(/\x1b\[31m failed +\x1b\[0m\x1b\[1msettings/);
  });
});
