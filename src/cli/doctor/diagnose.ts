import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { connect as connectTls, type DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { EMPTY, filter, firstValueFrom, from, ignoreElements, map, merge, noop, type Observable, of } from 'rxjs';
import { ReplaySubject, share, throwError, timeout, timer } from 'rxjs';
import { type Feed, openConnection, proxyFromEnvironment, requestTicket, type Ticket } from '../../index.js';
import type { TradeFeedOptions } from '../../index.js';
import { proxyFor } from '../../transport/proxy-for.js';
import { connectionOptions } from '../connection.js';
import type { CliContext } from '../context.js';
import { ExitCode } from '../errors.js';
import type { ServiceValues } from '../options.js';
import { duration } from '../view/text.js';
import { addressesFinding, type Attempt, clockFinding, failed, type Finding, findingOf } from './findings.js';
import { nodeFinding, noTlsFinding, ok, proxyFinding, skipped, tcpFinding, type TlsFacts } from './findings.js';
import { tlsFinding, unknownHostFinding } from './findings.js';

export interface DoctorValues extends ServiceValues {
  readonly connect?: boolean | undefined;
  /** In ms. */
  readonly frameWithin?: number | undefined;
}

export const checks = [
  'node',
  'settings',
  'proxy',
  'dns',
  'tcp',
  'tls',
  'ticket',
  'clock',
  'handshake',
  'other client',
  'first frame',
];

/**
 * Yields the finding of each check. Each check needs what the ones before it found, so the reader stops after a finding
 * that failed. The checks of the network send neither the key nor a ticket.
 */
export async function* diagnose(
  feed: Feed,
  values: DoctorValues,
  { env }: Pick<CliContext, 'env'>,
): AsyncGenerator<Finding, void, void> {
  yield nodeFinding(process.versions.node);
  const options = await settingsOf(values, env);
  if ('status' in options) return yield options;
  const url = new URL(options.baseUrl as string);
  yield ok(`${url.href}, with an API key`);

  yield proxyFinding(url, env);
  const proxy = proxyFor(url, env);
  const host = hostOf(proxy ?? url);
  const addresses = isIP(host) === 0 ? await addressesOf(host).catch(codeOf) : [host];
  if (typeof addresses === 'string') return yield unknownHostFinding(host, addresses, proxy);
  yield isIP(host) === 0 ? addressesFinding(host, addresses) : skipped(`${host} is an IP address`);
  const port = portOf(proxy ?? url);
  const ofEachFamily = [4, 6].flatMap((family) => addresses.find((address) => isIP(address) === family) ?? []);
  yield tcpFinding(port, await Promise.all(ofEachFamily.map((address) => attempt(address, port))), proxy);
  yield url.protocol === 'http:'
    ? skipped('none: the service is on this machine')
    : await servedCertificate(url, options, env).then((facts) => tlsFinding(facts, Date.now()), noTlsFinding);

  const [startedMs, startedAt] = [performance.now(), Date.now()];
  const ticket = await firstValueFrom(of(feed).pipe(requestTicket(options))).catch(findingOf);
  if ('status' in ticket) return yield ticket;
  const now = performance.now();
  const lifetime = ticket.deadlineMs === undefined ? '' : `, good for ${duration(ticket.deadlineMs - now)}`;
  yield ok(`the API key is valid; a ticket for ${feed} in ${duration(now - startedMs)}${lifetime}`);
  yield clockFinding(skewOf(ticket, startedMs, startedAt));
  yield* values.connect ? diagnoseConnection(feed, values, ticket, options) : notConnected;
}

const noConnection = skipped('no connection');
const notConnected: readonly Finding[] = [
  skipped('use --connect to open a connection; it closes the connection of another client of the account'),
  noConnection,
  noConnection,
];

// The operator validates the options when it is created, before any input or output.
const settingsOf = async (values: DoctorValues, env: CliContext['env']): Promise<TradeFeedOptions | Finding> => {
  try {
    const options = await connectionOptions(values, { env });
    EMPTY.pipe(requestTicket(options));
    return options;
  } catch (error) {
    return findingOf(error);
  }
};

export const dnsTimeoutMs = 5_000;

/** Rejects with `ETIMEDOUT` if DNS is silent: the system would wait for up to half a minute. */
export const addressesOf = (
  host: string,
  query: (host: string) => Promise<readonly { readonly address: string }[]> = (name) => lookup(name, { all: true }),
): Promise<readonly string[]> => {
  const silence = () => throwError(() => Object.assign(new Error(), { code: 'ETIMEDOUT' }));
  const found$ = from(query(host)).pipe(timeout({ first: dnsTimeoutMs, with: silence }));
  return firstValueFrom(found$.pipe(map((found) => found.map(({ address }) => address))));
};

const codeOf = (error: unknown): string => {
  const { code, message } = Object(error) as Partial<NodeJS.ErrnoException>;
  return code ?? message ?? String(error);
};

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');
const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80));

const connectTimeoutMs = 5_000;

const attempt = (address: string, port: number): Promise<Attempt> =>
  new Promise((resolve) => {
    const startedMs = performance.now();
    const end = (error?: string): void => {
      socket.destroy();
      resolve({ address, ms: performance.now() - startedMs, error });
    };
    const socket = connect({ host: address, port })
      .once('connect', () => end())
      .once('error', (error) => end(codeOf(error)))
      .setTimeout(connectTimeoutMs, () => end('ETIMEDOUT'));
  });

const silenceMs = 10_000;

const servedCertificate = async (url: URL, options: TradeFeedOptions, env: CliContext['env']): Promise<TlsFacts> => {
  // An untrusted certificate is examined.
  const tls = { ...options.tls, rejectUnauthorized: false };
  const [host, port] = [hostOf(url), portOf(url)];
  const { agent } = await proxyFromEnvironment({ env, tls });
  const socket = await new Promise<TLSSocket>((resolve, reject) => {
    if (agent) {
      const done = (error: Error | null, socket: unknown): void =>
        socket instanceof TLSSocket ? resolve(socket) : reject(error ?? new Error('no TLS connection'));
      agent.createConnection({ host, port, defaultPort: 443 }, done);
      return;
    }
    const direct = connectTls({ host, port, servername: isIP(host) === 0 ? host : '', ...tls })
      .once('secureConnect', () => resolve(direct))
      .once('error', reject)
      .setTimeout(silenceMs, () => direct.destroy(new Error(`no answer in ${silenceMs} ms`)));
  });
  const facts = tlsFacts(socket);
  socket.destroy();
  return facts;
};

export const tlsFacts = (socket: Pick<TLSSocket, 'getPeerCertificate' | 'getProtocol' | 'authorized'>): TlsFacts => {
  const certificate = socket.getPeerCertificate(true);
  const { authorizationError: problem } = socket as { readonly authorizationError?: unknown };
  return {
    protocol: socket.getProtocol() ?? 'TLS',
    problem: socket.authorized ? undefined : codeOf(problem),
    chain: chainOf(certificate),
    names: (certificate.subjectaltname ?? '').replaceAll(/(DNS|IP Address):/g, '') || nameOf(certificate.subject),
    expiresAt: Date.parse(certificate.valid_to),
  };
};

// A root certificate is its own issuer. An incomplete chain ends with a certificate that has none.
const chainOf = (certificate: Partial<DetailedPeerCertificate>): readonly string[] => {
  const { subject, issuerCertificate: issuer } = certificate;
  return [nameOf(subject), ...(issuer === undefined || issuer === certificate ? [] : chainOf(issuer))];
};

const nameOf = ({ CN, O }: Partial<DetailedPeerCertificate['subject']> = {}): string =>
  [CN ?? O ?? 'without a name'].flat().join(', ');

// The deadline is the time of the request plus the lifetime, which is `expires_at` minus the `Date` of the response.
const skewOf = ({ deadlineMs, expires_at }: Ticket, startedMs: number, startedAt: number): number | undefined =>
  deadlineMs === undefined ? undefined : startedAt - (Date.parse(expires_at) - (deadlineMs - startedMs));

/** How long to wait for another client of the account, in ms. A client that reconnects does it within a few seconds. */
const otherClientMs = 10_000;
const frameWithinMs = 10_000;

async function* diagnoseConnection(
  feed: Feed,
  { frameWithin: withinMs = frameWithinMs }: DoctorValues,
  ticket: Ticket,
  options: TradeFeedOptions,
): AsyncGenerator<Finding, void, void> {
  const opened$ = new ReplaySubject<number>(1);
  const onOpen = (): number => {
    opened$.next(performance.now());
    return 1;
  };
  const first$ = of(ticket).pipe(
    openConnection(options, onOpen),
    map(() => performance.now()),
    filter((_, index) => index === 0),
    share({ connector: () => new ReplaySubject(1), resetOnError: false, resetOnComplete: false }),
  );
  const startedMs = performance.now();
  const kept = first$.subscribe({ error: noop });
  const until = (result$: Observable<Finding>): Promise<Finding> =>
    firstValueFrom(merge(first$.pipe(ignoreElements()), result$)).catch(findingOf);
  try {
    yield await until(opened$.pipe(map((openedMs) => ok(`open in ${duration(openedMs - startedMs)}`))));
    const noOther = ok(`no other client of the account took over within ${duration(otherClientMs)}`);
    yield await until(timer(otherClientMs).pipe(map(() => noOther)));
    const openedMs = await firstValueFrom(opened$);
    // The check for another client took the first seconds.
    const late$ = timer(Math.max(0, withinMs - otherClientMs)).pipe(map(() => Infinity));
    yield await until(merge(first$, late$).pipe(map((at) => firstFrameFinding(feed, at - openedMs, withinMs))));
  } finally {
    kept.unsubscribe();
  }
}

const firstFrameFinding = (feed: Feed, afterMs: number, withinMs: number): Finding =>
  afterMs <= withinMs
    ? ok(`${duration(afterMs)} after the opening`)
    : failed(
        ExitCode.timeUp,
        `No frame of ${feed} arrived within ${duration(withinMs)}.`,
        'The connection works, and the feed may be quiet. Use a longer --frame-within, or try the other feed.',
      );
