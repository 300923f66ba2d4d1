import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { DetailedPeerCertificate } from 'node:tls';
import { filter, firstValueFrom } from 'rxjs';
import { conclusion } from '../../../src/cli/commands/doctor.js';
import { addressesOf, clockFinding, networkTimeoutMs, type Finding, nodeFinding } from '../../../src/cli/doctor.js';
import { proxyFinding, tcpFinding, tlsFinding, unknownHostFinding } from '../../../src/cli/doctor.js';
import { tradeFeed$ } from '../../../src/index.js';
import { startTradeFeedService } from '../../../src/testing/index.js';
import { type Certificate, certificateFor } from '../../support/certificate.js';
import { startConnectProxy } from '../../support/connect-proxy.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { issue, startWire, type TicketStep } from '../../support/wire.js';
import { commandRunner, envOf, FakeOutput } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();
let certificate: Certificate;
beforeAll(async () => {
  certificate = await certificateFor();
});

type Env = Readonly<Record<string, string>>;

/** The result of a run: the exit code, and the status, text and advice of each check. */
const findingsOf = async (args: string, env: Env) => {
  const { stdout, exit } = command(`doctor ${args} --json`, { env });
  const exitCode = await exit;
  const report = JSON.parse(stdout.text) as {
    readonly baseUrl?: string;
    readonly exitCode: number;
    readonly checks: readonly { readonly name: string; readonly status: string; readonly text: string }[];
  };
  expect(report.exitCode).toBe(exitCode);
  expect(report.checks).toHaveLength(11);
  const { baseUrl, checks } = report;
  return { exitCode, baseUrl, ...Object.fromEntries(checks.map(({ name, ...finding }) => [name, finding])) };
};

const says = (status: string, text: RegExp, advice?: RegExp): object => ({
  status,
  text: expect.stringMatching(text),
  ...(advice && { advice: expect.stringMatching(advice) }),
});

const on = (day: string): number => Date.parse(day);
/** What it says about the Node that runs the tests, whose line may have no security fixes. */
const node = nodeFinding(process.versions.node, Date.now());

describe('doctor', () => {
  it('finds nothing wrong with a healthy service, without opening a connection', async () => {
    await using service = await startTradeFeedService();
    const types: string[] = [];
    service.events$.subscribe(({ type }) => types.push(type));
    const { stdout, stderr, exit } = command('doctor', { env: envOf(service) });
    expect(await exit).toBe(0);
    expect([...stdout.text.matchAll(/^ \S (\w+) +(\w+)/gm)].map(([, status, name]) => `${name} ${status}`)).toEqual([
      ...[`node ${node.status}`, 'settings ok', 'proxy ok', 'dns skipped', 'tcp ok', 'tls skipped'],
      ...['ticket ok', 'clock ok', 'handshake skipped', 'other skipped', 'first skipped'],
    ]);
    expect(stdout.text.endsWith(`\n${conclusion([node])}\n`)).toBe(true);
    const TRADE_FEED_BASE_URL = service.baseUrl.replace('127.0.0.1', 'localhost');
    const dns = says('ok', /^localhost: IPv4 127\.0\.0\.1; IPv6 /);
    expect(await findingsOf('', { ...envOf(service), TRADE_FEED_BASE_URL })).toMatchObject({ exitCode: 0, dns });
    expect(stderr.text).toBe('');
    expect(types).not.toContain('handshake-accepted');
  });

  it('watches for another client and for the first frame with --connect', async () => {
    using _timers = fakeTimers();
    await using service = await startTradeFeedService();
    const { stdout, exit } = command('doctor --connect', { env: envOf(service) });
    await stdout.until(/ok +handshake +open in .*\n/);
    service.push('market', 'a frame');
    jest.advanceTimersByTime(10_000);
    await stdout.until(/ok +other client +no other client of the account took over within 10 s\n/);
    jest.advanceTimersByTime(1);
    expect(await exit).toBe(0);
    expect(stdout.text).toMatch(/ok +first frame +.*s after the opening\n.*\n$/);
  });

  it('reports a feed that sends no frames, and closes its connection', async () => {
    using _timers = fakeTimers();
    await using service = await startTradeFeedService();
    const closed = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'connection-closed')));
    const { stdout, exit } = command('doctor raw --connect --frame-within 30', { env: envOf(service) });
    await stdout.until(/handshake +open/);
    jest.advanceTimersByTime(10_000);
    await stdout.until(/ok +other client/);
    jest.advanceTimersByTime(20_000);
    expect(await exit).toBe(6);
    expect(stdout.text).toMatch(
      /failed +first frame +No frame of raw arrived within 30 s\.\n +→ [^]*--frame-within[^]*\nThe feed can't work\. The remaining checks were skipped\.\n$/,
    );
    expect(await closed).toMatchObject({ by: 'client', code: 1000 });
  });

  it('reports another client of the account, and a refused connection', async () => {
    await using service = await startTradeFeedService();
    const account = service.createAccount({ plan: 'developer' });
    const { stdout, exit } = command('doctor --connect', { env: envOf(service, account) });
    await stdout.until(/handshake +open/);
    const other = tradeFeed$('market', { baseUrl: service.baseUrl, apiKey: account.createApiKey() }).subscribe();
    expect(await exit).toBe(4);
    other.unsubscribe();
    expect(stdout.text).toMatch(/failed +other client +[^]*\(close\s+code 4001,[^]*\n +→ Find the other client/);
    await using full = await startTradeFeedService({ limits: { capacity: 0 } });
    expect(await findingsOf('--connect', envOf(full))).toMatchObject({
      exitCode: 6,
      handshake: says('failed', /HTTP 503/),
      'first frame': says('skipped', /^after the failure of handshake$/),
    });
  });

  it('distinguishes a wrong key, an account without access and a rate limit', async () => {
    await using service = await startTradeFeedService({ limits: { ticketsPerWindow: 1 } });
    const env = envOf(service);
    expect(await findingsOf('', { ...env, TRADE_FEED_API_KEY: 'planted-wrong-key' })).toMatchObject({
      exitCode: 3,
      baseUrl: `${service.baseUrl}/`,
      ticket: says('failed', /doesn't accept the API key \(HTTP 401\)/, /TRADE_FEED_API_KEY/),
      handshake: says('skipped', /^after the failure of ticket$/),
    });
    expect(await findingsOf('', envOf(service, service.createAccount({ active: false })))).toMatchObject({
      exitCode: 3,
      ticket: says('failed', /inactive or isn't entitled to the stream \(HTTP 403\)/, /Restore access/),
    });
    expect(await findingsOf('', env)).toMatchObject({ exitCode: 0 });
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 6,
      ticket: says('failed', /Too many tickets.*\(HTTP 429\)/, /^Wait \d+ .*, then run doctor again\.$/),
    });
  });

  const TRADE_FEED_API_KEY = 'planted-key';
  it.each<[address: string, string, number, string, RegExp, RegExp?]>([
    ['', '', 2, 'settings', /^Missing base URL\./],
    ['http://a.example', '', 2, 'settings', /http:\/\/a\.example: without TLS/],
    ['https://a.b', '--key-file missing', 1, 'settings', /there is no such file/],
    ['https://a.invalid', '', 6, 'dns', /^a\.invalid doesn't resolve/, /HTTPS_PROXY/],
    ['https://127.0.0.1:1', '', 6, 'tcp', /^port 1: 127\.0\.0\.1 failed: ECONNREFUSED$/, /^Nothing is listening/],
  ])('reports what is wrong with %j and `%s`', async (baseUrl, args, exitCode, check, text, ...[advice]) => {
    const found = await findingsOf(args, { TRADE_FEED_API_KEY, TRADE_FEED_BASE_URL: baseUrl });
    const skipped = says('skipped', new RegExp(`^after the failure of ${check}$`));
    expect(found).toMatchObject({ exitCode, [check]: says('failed', text, advice), 'first frame': skipped });
    if (check === 'settings') expect(found.baseUrl).toBeUndefined();
  });

  it('examines the certificate with and without its CA, and reports a server without TLS', async () => {
    await using service = await startTradeFeedService({ tls: certificate });
    expect(await findingsOf('', envOf(service))).toMatchObject({
      exitCode: 5,
      tls: says('failed', /^This machine doesn't trust .* \(DEPTH_ZERO_SELF_SIGNED_CERT: localhost\)\.$/, /--ca FILE/),
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
      exitCode: 5,
      tls: says('failed', /for another host \(\w+: for elsewhere\.example\)\.$/, /the base URL/),
    });
    await using plain = await startTradeFeedService();
    const env = { ...envOf(plain), TRADE_FEED_BASE_URL: plain.baseUrl.replace('http:', 'https:') };
    expect(await findingsOf('', env)).toMatchObject({
      exitCode: 5,
      tls: says('failed', /^The server answered without TLS/, /^Check the host and the port/),
    });
  });

  it('sends every check through the proxy of the environment', async () => {
    const named = await certificateFor('feed.example');
    await using service = await startTradeFeedService({ tls: named, publicUrl: 'https://feed.example' });
    const targets = { 'feed.example:443': Number(new URL(service.baseUrl).port) };
    await using proxy = await startConnectProxy({ targets });
    const env = { ...envOf(service), TRADE_FEED_BASE_URL: 'https://feed.example', HTTPS_PROXY: proxy.url };
    const ca = await folder.file('named-ca.pem', named.cert);
    expect(await findingsOf(`--ca ${ca}`, env)).toMatchObject({
      exitCode: 0,
      proxy: says('ok', /^doctor used 127\.0\.0\.1:\d+, from HTTPS_PROXY$/, /^Pass `await proxyFromEnvironment\(\)`/),
      dns: says('skipped', /^127\.0\.0\.1 is an IP address$/),
      tls: says('ok', /^TLSv1\.3; feed\.example; /),
      ticket: says('ok', /the API key is valid/),
    });
    await using refusing = await startConnectProxy({ targets: { 'feed.example:443': 1 }, status: 407 });
    expect(await findingsOf('', { ...env, HTTPS_PROXY: refusing.url })).toMatchObject({
      exitCode: 6,
      tls: says('failed', /the proxy .* refused the connection to feed\.example:443 \(HTTP 407\)/, /proxy/),
    });
  });

  it('does not compare the clocks if the response has no Date', async () => {
    const withoutDate: TicketStep = (response, ...rest) => {
      response.sendDate = false;
      return issue()(response, ...rest);
    };
    await using wire = await startWire({ ticket: [withoutDate] });
    const found = await findingsOf('', { TRADE_FEED_API_KEY, TRADE_FEED_BASE_URL: wire.baseUrl });
    expect(found).toMatchObject({
      exitCode: 0,
      ticket: says('ok', /the API key is valid; a ticket for market in [^,]*$/),
      clock: says('skipped', /no Date/),
    });
  });

  it('uses colors only on a terminal', async () => {
    const stdout = new FakeOutput({ columns: 80, rows: 24 });
    expect(await command('doctor', { stdout }).exit).toBe(2);
    expect(stdout.text).toMatch(/\x1b\[31m ■ failed +\x1b\[39m\x1b\[1msettings/);
  });

  it('gives up on a DNS server that does not answer', async () => {
    using _timers = fakeTimers();
    const addresses = addressesOf('a.example', () => new Promise(() => undefined));
    jest.advanceTimersByTime(networkTimeoutMs);
    await expect(addresses).rejects.toThrow('Timeout');
  });
});

const now = Date.UTC(2026, 0, 1);
const dayMs = 24 * 3_600_000;
const https = new URL('https://feed.example');
const HTTPS_PROXY = 'http://user:planted-password@proxy.example:3128';
const proxyUrl = new URL('http://proxy.example:3128');
const four = { address: '10.0.0.1', ms: 12 };
const six = { address: '2001:db8::1', ms: 1, error: 'ENETUNREACH' };
const blocked = { ...four, error: 'ETIMEDOUT' };

/** The finding for a certificate of feed.example whose issuer has no name and is issued by a root. */
const tlsOf = (
  validMs: number,
  authorizationError?: unknown,
  certificate: object = {},
  protocol = 'TLSv1.3',
): Finding => {
  const root: { subject: object; issuerCertificate?: object } = { subject: { O: 'Root' } };
  root.issuerCertificate = root;
  const issuerCertificate = { subject: {}, issuerCertificate: root };
  const valid_to = new Date(now + validMs).toUTCString();
  const served = { subject: { CN: 'feed.example' }, issuerCertificate, valid_to, ...certificate };
  const socket = {
    authorized: authorizationError === undefined,
    authorizationError,
    getProtocol: () => protocol || null,
    getPeerCertificate: () => served as unknown as DetailedPeerCertificate,
    destroy: () => socket as never,
  };
  return tlsFinding(socket, now);
};
const subjectaltname = 'DNS:a.example, IP Address:10.0.0.1';

it.each<[Finding, Finding['status'], RegExp, RegExp?]>([
  [nodeFinding('20.18.3', on('2026-11-29')), 'failed', /Node 20\.18\.3/],
  [nodeFinding('20.19.0', on('2026-04-29')), 'ok', /^Node 20\.19\.0$/],
  [
    nodeFinding('20.20.2', on('2026-11-29')),
    'warning',
    /^Node 20\.20\.2 has had no security fixes since 2026-04-30\.$/,
    /^Install Node 22, 24, or 26\.$/,
  ],
  [nodeFinding('22.23.3', on('2027-05-01')), 'warning', /since 2027-04-30\.$/, /^Install Node 24 or 26\.$/],
  [nodeFinding('25.1.0', on('2026-11-29')), 'warning', /since 2026-06-01\.$/],
  [nodeFinding('24.21.0', on('2040-01-01')), 'warning', /since 2028-04-30\.$/, /^Install Node in a line that/],
  [nodeFinding('99.0.0', on('2040-01-01')), 'ok', /^Node 99\.0\.0$/],
  [proxyFinding(https, { https_proxy: HTTPS_PROXY }), 'ok', /^doctor used proxy\.example:3128, from HTTPS_PROXY$/],
  [proxyFinding(https, { HTTPS_PROXY, NO_PROXY: 'example' }), 'ok', /^none for .* NO_PROXY or loopback$/],
  [proxyFinding(https, { HTTPS_PROXY, NODE_USE_ENV_PROXY: '0' }), 'ok', /NODE_USE_ENV_PROXY is 0$/],
  [proxyFinding(https, { all_proxy: HTTPS_PROXY }), 'warning', /^none: ALL_PROXY has no effect on an https: /],
  [proxyFinding(new URL('http://127.0.0.1:1'), { HTTP_PROXY: HTTPS_PROXY }), 'ok', /^none$/],
  [unknownHostFinding('a.b', 'EAI_AGAIN', proxyUrl), 'failed', /didn't answer for a\.b \(EAI_AGAIN\)/, /of the proxy/],
  [tcpFinding(443, [four, { ...six, error: undefined }]), 'ok', /10\.0\.0\.1 in 12 ms; 2001:db8::1 in 1 ms$/],
  [tcpFinding(443, [four, six]), 'warning', /^port 443: 10\.0\.0\.1 in 12 ms; 2001:db8::1 failed: ENETUNREACH$/],
  [tcpFinding(443, [blocked]), 'failed', /failed: ETIMEDOUT/, /^A firewall.*of the base URL\. .*set HTTPS_PROXY\.$/],
  [tcpFinding(1, [blocked], proxyUrl), 'failed', /failed: ETIMEDOUT/, /^A firewall.*of the proxy in HTTPS_PROXY\.$/],
  [tlsOf(14 * dayMs), 'ok', /^TLSv1\.3; feed\.example < without a name < Root; 14 days left$/],
  [tlsOf(14 * dayMs - 1_000), 'warning', /13 days left/],
  [
    tlsOf(-dayMs, 'CERT_HAS_EXPIRED'),
    'failed',
    /^The server's certificate has expired .*valid from .* to Wed, 31 Dec 2025 .*; the clock says Thu, 01 Jan 2026/,
    /^Set the clock/,
  ],
  [tlsOf(dayMs, 'CERT_NOT_YET_VALID'), 'failed', /\(CERT_NOT_YET_VALID: valid from/, /^Set the clock/],
  [tlsOf(dayMs, 'ERR_TLS_CERT_ALTNAME_INVALID', { subjectaltname }), 'failed', /: for a\.example, 10\.0\.0\.1\)\.$/],
  [tlsOf(dayMs, 'ERR_TLS_CERT_ALTNAME_INVALID'), 'failed', /: for feed\.example\)\.$/],
  [tlsOf(14 * dayMs, undefined, { subject: undefined }), 'ok', /^TLSv1\.3; without a name < without a name < Root; /],
  [tlsOf(14 * dayMs, undefined, {}, ''), 'ok', /^TLS; feed\.example /],
  [tlsOf(dayMs, Object.assign(new Error(), { code: 'ERR_TLS' })), 'failed', /\(ERR_TLS: feed/, /--ca FILE/],
  [tlsOf(dayMs, new Error('no code')), 'failed', /\(no code: feed/],
  [clockFinding(undefined), 'skipped', /no Date/],
  [clockFinding(-5_000), 'ok', /at most 5\.0 s/],
  [clockFinding(125_000), 'warning', /^This machine is 2 min 05 s ahead of the service\.$/],
  [clockFinding(-125_000), 'warning', /^This machine is 2 min 05 s behind the service\.$/],
])('a finding says what was found and what to do: %j', (finding, status, text, ...[advice]) => {
  expect(finding).toMatchObject(says(status, text, advice));
  expect(JSON.stringify(finding)).not.toContain('planted');
});

it('the conclusion counts the warnings', () => {
  const findings = (['warning', 'ok'] as const).map((status) => ({ status, text: '' }));
  expect(conclusion(findings)).toBe('The feed works, with 1 warning.');
});
