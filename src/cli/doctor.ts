import { once } from 'node:events';
import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { filter, firstValueFrom, from, ignoreElements, map, merge, of, ReplaySubject, timeout, timer } from 'rxjs';
import { type Feed, openConnection, requestTicket, type Ticket, type TradeFeedOptions } from '../index.js';
import { createTradeFeedError } from '../protocol/failures/classify.js';
import type { CertificateProblem } from '../protocol/failures/meanings.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { hostOf, portOf, tlsOptionsFor } from '../transport/connect.js';
import { proxyFor } from '../transport/proxy-for.js';
import { openTunnel } from '../transport/proxy-from-environment.js';
import { connectionOptions } from './connection.js';
import type { CliContext } from './terminal.js';
import { adviceFor, CliError, ExitCode, exitCodeOf, whatHappened } from './errors.js';
import type { ServiceValues } from './options.js';
import { count, duration } from './text.js';

export interface Finding {
  /** `warning`: the feed works, but something needs attention. `failed`: the feed can't work. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly text: string;
  readonly advice?: string | undefined;
  readonly exitCode?: ExitCode;
}

export const checks: readonly string[] = [
  ...['node', 'settings', 'proxy', 'dns', 'tcp', 'tls', 'ticket', 'clock'],
  ...['handshake', 'other client', 'first frame'],
];

type DoctorValues = ServiceValues & Readonly<{ connect?: boolean | undefined; frameWithin?: number | undefined }>;

/**
 * Yields the finding of each check. Each check builds on the ones before it, so stop reading after one that failed.
 * The network checks send neither the key nor a ticket.
 */
export async function* diagnose(
  feed: Feed,
  values: DoctorValues,
  { env }: Pick<CliContext, 'env'>,
): AsyncGenerator<Finding, void, void> {
  try {
    yield nodeFinding(process.versions.node, Date.now());
    const options = await connectionOptions(values, { env });
    // Validates the options, before any I/O.
    const ticket$ = of(feed).pipe(requestTicket(options));
    const url = new URL(options.baseUrl as string);
    yield ok(`${url.href}, with an API key`);
    yield* diagnoseNetwork(url, options, env);
    const [startedMs, startedAt] = [performance.now(), Date.now()];
    const ticket = await firstValueFrom(ticket$);
    const now = performance.now();
    const lifetime = ticket.deadlineMs === undefined ? '' : `, good for ${duration(ticket.deadlineMs - now)}`;
    yield ok(`the API key is valid; a ticket for ${feed} in ${duration(now - startedMs)}${lifetime}`);
    yield clockFinding(skewOf(ticket, startedMs, startedAt));
    yield* values.connect ? diagnoseConnection(feed, values, ticket, options) : notConnected;
  } catch (error) {
    yield findingOf(error);
  }
}

async function* diagnoseNetwork(
  url: URL,
  options: TradeFeedOptions,
  env: CliContext['env'],
): AsyncGenerator<Finding, void, void> {
  const proxy = proxyFor(url, env);
  yield proxyFinding(url, env);
  const [host, port] = [hostOf(proxy ?? url), portOf(proxy ?? url)];
  const addresses = isIP(host) === 0 ? await addressesOf(host).catch(codeOf) : [host];
  if (typeof addresses === 'string') return yield unknownHostFinding(host, addresses, proxy);
  const families = [4, 6].map((family) => addresses.filter((address) => isIP(address) === family));
  const [four, six] = families.map((found) => found.join(', ') || 'none');
  yield isIP(host) === 0 ? ok(`${host}: IPv4 ${four}; IPv6 ${six}`) : skipped(`${host} is an IP address`);
  const attempts = families.flatMap(([first]) => (first === undefined ? [] : attempt(first, port)));
  yield tcpFinding(port, await Promise.all(attempts), proxy);
  yield url.protocol === 'http:'
    ? skipped('none: the service is on this machine')
    : await servedCertificate(url, options, proxy).then((socket) => tlsFinding(socket, Date.now()), noTlsFinding);
}

const finding =
  (status: Finding['status']) =>
  (text: string, advice?: string): Finding => ({ status, text, ...(advice && { advice }) });
const [ok, warning] = [finding('ok'), finding('warning')];
export const skipped = finding('skipped');
const failed = (text: string, advice?: string, exitCode: ExitCode = ExitCode.unavailable): Finding => ({
  ...finding('failed')(text, advice),
  exitCode,
});

const findingOf = (error: unknown): Finding => {
  if (error instanceof CliError) return failed(error.message, undefined, error.exitCode);
  if (!(error instanceof TradeFeedError)) throw error;
  const { retryAfterMs } = error;
  const wait = retryAfterMs === undefined ? undefined : `Wait ${duration(retryAfterMs)}, then run doctor again.`;
  return failed(whatHappened(error), wait ?? adviceFor(error), exitCodeOf(error));
};

const oldestNode = [20, 19] as const;

/** When the security fixes of each line end: https://github.com/nodejs/release. Odd lines are never supported for long. */
const endOfFixes: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
};

const anyOf = new Intl.ListFormat('en', { type: 'disjunction' });

export const nodeFinding = (version: string, now: number): Finding => {
  const [major, minor] = version.split('.').map(Number) as [number, number];
  const isSupported = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  if (!isSupported)
    return failed(`Node ${version} is too old.`, `Install Node ${oldestNode.join('.')} or later.`, ExitCode.failed);
  const end = endOfFixes[major];
  if (end === undefined || now < Date.parse(end)) return ok(`Node ${version}`);
  const lines = Object.entries(endOfFixes).filter(([line, date]) => Number(line) % 2 === 0 && now < Date.parse(date));
  const named = lines.length > 0 ? anyOf.format(lines.map(([line]) => line)) : 'in a line that gets them';
  return warning(`Node ${version} has had no security fixes since ${end}.`, `Install Node ${named}.`);
};

export const proxyFinding = (url: URL, env: CliContext['env']): Finding => {
  const proxy = proxyFor(url, env);
  if (proxy)
    return ok(
      `doctor used ${proxy.host}, from HTTPS_PROXY`,
      "Pass `await proxyFromEnvironment()` to the feed in your app, too: it doesn't use HTTPS_PROXY by itself.",
    );
  const isSet = (name: string): boolean => Boolean(env[name] ?? env[name.toLowerCase()]);
  if (isSet('HTTPS_PROXY')) {
    const cause = env['NODE_USE_ENV_PROXY'] === '0' ? 'NODE_USE_ENV_PROXY is 0' : 'NO_PROXY or loopback';
    return ok(`none for this address, although HTTPS_PROXY is set: ${cause}`);
  }
  const other = ['HTTP_PROXY', 'ALL_PROXY'].find(isSet);
  if (other === undefined || url.protocol === 'http:') return ok('none');
  return warning(
    `none: ${other} has no effect on an https: address`,
    'If this network needs a proxy, set HTTPS_PROXY to its address.',
  );
};

const placeToCheck = (what: string, proxy: URL | undefined): string =>
  proxy
    ? `Check the ${what} of the proxy in HTTPS_PROXY.`
    : `Check the ${what} of the base URL. If this network needs a proxy, set HTTPS_PROXY.`;

const codeOf = (error: unknown): string => {
  const { code, message } = Object(error) as Partial<NodeJS.ErrnoException>;
  return code ?? message ?? String(error);
};

export const networkTimeoutMs = 5_000;

/** Rejects if DNS doesn't answer: the system would wait for up to half a minute. */
export const addressesOf = async (
  host: string,
  query: (host: string) => Promise<readonly { readonly address: string }[]> = (name) => lookup(name, { all: true }),
): Promise<readonly string[]> => {
  const found = await firstValueFrom(from(query(host)).pipe(timeout(networkTimeoutMs)));
  return found.map(({ address }) => address);
};

export const unknownHostFinding = (host: string, code: string, proxy?: URL): Finding => {
  const place = placeToCheck('host', proxy);
  if (code === 'ENOTFOUND') return failed(`${host} doesn't resolve.`, place);
  const advice = `Check the network and the DNS server of this machine. ${place}`;
  return failed(`DNS didn't answer for ${host} (${code}).`, advice);
};

type Attempt = Readonly<{ address: string; ms: number; error?: string | undefined }>;

const attempt = async (address: string, port: number): Promise<Attempt> => {
  const startedMs = performance.now();
  const socket = connect({ host: address, port });
  socket.setTimeout(networkTimeoutMs, () => socket.destroy(new Error('ETIMEDOUT')));
  const error = await once(socket, 'connect').then(() => undefined, codeOf);
  socket.destroy();
  return { address, ms: performance.now() - startedMs, error };
};

export const tcpFinding = (port: number, attempts: readonly Attempt[], proxy?: URL): Finding => {
  const words = attempts.map(
    ({ address, ms, error }) => `${address} ${error ? `failed: ${error}` : `in ${duration(ms)}`}`,
  );
  const text = `port ${port}: ${words.join('; ')}`;
  const errors = attempts.flatMap(({ error }) => error ?? []);
  if (errors.length === 0) return ok(text);
  if (errors.length < attempts.length)
    return warning(text, "One address family doesn't work here. Fix its route, or remove its record from DNS.");
  const cause = errors.includes('ECONNREFUSED')
    ? 'Nothing is listening on that port.'
    : 'A firewall may block the connection.';
  return failed(text, `${cause} ${placeToCheck('host and the port', proxy)}`);
};

const silenceMs = 10_000;

const servedCertificate = async (url: URL, options: TradeFeedOptions, proxy?: URL): Promise<TLSSocket> => {
  // Lets an untrusted certificate through, so that it can be examined.
  const tls = tlsOptionsFor(url, { ...options.tls, rejectUnauthorized: false });
  const tunnel = proxy && (await openTunnel(proxy, url));
  const socket = connectTls({ ...tls, host: hostOf(url), port: portOf(url), ...(tunnel && { socket: tunnel }) });
  socket.setTimeout(silenceMs, () => socket.destroy(new Error(`no answer in ${silenceMs} ms`)));
  await once(socket, 'secureConnect');
  return socket;
};

const [fewDays, dayMs] = [14, 24 * 3_600_000];

type Served = Pick<TLSSocket, 'getPeerCertificate' | 'getProtocol' | 'authorized' | 'destroy'>;

/** Examines the certificate of a connection, then closes the connection. */
export const tlsFinding = (socket: Served, now: number): Finding => {
  const certificate = socket.getPeerCertificate(true);
  const { authorizationError } = socket as { readonly authorizationError?: unknown };
  const problem = socket.authorized ? undefined : codeOf(authorizationError);
  const protocol = socket.getProtocol() ?? 'TLS';
  socket.destroy();
  const chain = chainOf(certificate).join(' < ');
  const { valid_from: from, valid_to: to, subjectaltname: names } = certificate;
  if (problem === undefined) {
    const days = Math.floor((Date.parse(to) - now) / dayMs);
    const text = `${protocol}; ${chain}; ${count(days)} days left`;
    return days < fewDays ? warning(text, 'The certificate expires soon. The service must renew it.') : ok(text);
  }
  const kind = certificateProblems[problem];
  const detail = {
    date: `valid from ${from} to ${to}; the clock says ${new Date(now).toUTCString()}`,
    host: `for ${names?.replaceAll(/(DNS|IP Address):/g, '') ?? nameOf(certificate.subject)}`,
    other: chain,
  }[kind ?? 'other'];
  const facts = { code: 'untrusted-certificate', certificate: kind, detail: `${problem}: ${detail}` } as const;
  return findingOf(createTradeFeedError({ stage: 'ticket', ...facts }));
};

const certificateProblems: Readonly<Record<string, CertificateProblem>> = {
  CERT_HAS_EXPIRED: 'date',
  CERT_NOT_YET_VALID: 'date',
  ERR_TLS_CERT_ALTNAME_INVALID: 'host',
};

// A root certificate is its own issuer. In an incomplete chain, the last certificate has no issuer.
const chainOf = (certificate: Partial<DetailedPeerCertificate>): readonly string[] => {
  const { subject, issuerCertificate: issuer } = certificate;
  return [nameOf(subject), ...(issuer === undefined || issuer === certificate ? [] : chainOf(issuer))];
};

const nameOf = ({ CN, O }: Partial<DetailedPeerCertificate['subject']> = {}): string =>
  [CN ?? O ?? 'without a name'].flat().join(', ');

const noTlsFinding = ({ code, message }: NodeJS.ErrnoException): Finding =>
  code === 'ERR_SSL_WRONG_VERSION_NUMBER'
    ? findingOf(createTradeFeedError({ stage: 'ticket', code: 'ticket-endpoint-without-tls' }))
    : failed(
        `The connection failed: ${message}`,
        'Check the base URL and the proxy. A firewall may also end the connection.',
      );

// The deadline is the time of the request plus the lifetime (`expires_at` minus the response's `Date`).
const skewOf = ({ deadlineMs, expires_at }: Ticket, startedMs: number, startedAt: number): number | undefined =>
  deadlineMs === undefined ? undefined : startedAt - (Date.parse(expires_at) - (deadlineMs - startedMs));

/** The `Date` header counts whole seconds. */
const maxSkewMs = 5_000;

export const clockFinding = (skewMs: number | undefined): Finding => {
  if (skewMs === undefined) return skipped('the response has no Date');
  if (Math.abs(skewMs) <= maxSkewMs) return ok(`this clock and the service's differ by at most ${duration(maxSkewMs)}`);
  return warning(
    `This machine is ${duration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the service.`,
    'Set the clock of this machine. Certificates and the times of frames depend on it. A proxy may also send a wrong Date.',
  );
};

const noConnection = skipped('no connection');
const notConnected: readonly Finding[] = [
  skipped('use --connect to open a connection, which kicks out any other client of the account'),
  noConnection,
  noConnection,
];

/** How long to watch for another client of the account. It would reconnect within a few seconds. */
const otherClientMs = 10_000;
const frameWithinMs = 10_000;

async function* diagnoseConnection(
  feed: Feed,
  { frameWithin: withinMs = frameWithinMs }: DoctorValues,
  ticket: Ticket,
  options: TradeFeedOptions,
): AsyncGenerator<Finding, void, void> {
  const [opened$, first$] = [new ReplaySubject<number>(1), new ReplaySubject<number>(1)];
  const onOpen = (): number => {
    opened$.next(performance.now());
    return 1;
  };
  const startedMs = performance.now();
  const frames$ = of(ticket).pipe(openConnection(options, onOpen));
  const frameTimes$ = frames$.pipe(map(() => performance.now()));
  const kept = frameTimes$.pipe(filter((_, index) => index === 0)).subscribe(first$);
  const failure$ = first$.pipe(ignoreElements());
  try {
    const openedMs = await firstValueFrom(merge(failure$, opened$));
    yield ok(`open in ${duration(openedMs - startedMs)}`);
    await firstValueFrom(merge(failure$, timer(otherClientMs)));
    yield ok(`no other client of the account took over within ${duration(otherClientMs)}`);
    // The check for another client has already used the first seconds.
    const late$ = timer(Math.max(0, withinMs - otherClientMs)).pipe(map(() => Infinity));
    yield firstFrameFinding(feed, (await firstValueFrom(merge(first$, late$))) - openedMs, withinMs);
  } finally {
    kept.unsubscribe();
  }
}

const firstFrameFinding = (feed: Feed, afterMs: number, withinMs: number): Finding =>
  afterMs <= withinMs
    ? ok(`${duration(afterMs)} after the opening`)
    : failed(
        `No frame of ${feed} arrived within ${duration(withinMs)}.`,
        'The connection works, and the feed may be quiet. Use a longer --frame-within, or try the other feed.',
      );
