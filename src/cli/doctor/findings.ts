import { isIP } from 'node:net';
import { TradeFeedError } from '../../index.js';
import { proxyFor } from '../../transport/proxy-for.js';
import { adviceFor, CliError, ExitCode, exitCodeOf, whatHappened } from '../errors.js';
import { count, duration } from '../view/text.js';

export interface Finding {
  /** `warning`: the feed works, but something needs attention. `failed`: the feed cannot work. */
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped';
  readonly text: string;
  readonly advice?: string | undefined;
  readonly exitCode?: ExitCode;
}

export const ok = (text: string, advice?: string): Finding => ({ status: 'ok', text, ...(advice && { advice }) });
export const skipped = (text: string): Finding => ({ status: 'skipped', text });
const warning = (text: string, advice: string): Finding => ({ status: 'warning', text, advice });
export const failed = (exitCode: ExitCode, text: string, advice?: string): Finding => ({
  status: 'failed',
  text,
  advice,
  exitCode,
});

/** Returns the finding of an error: of the feed, or of the settings. */
export const findingOf = (error: unknown): Finding => {
  if (error instanceof CliError) return failed(error.exitCode, error.message);
  if (!(error instanceof TradeFeedError)) throw error;
  const { retryAfterMs } = error;
  const wait = retryAfterMs === undefined ? undefined : `Wait ${duration(retryAfterMs)}, then run doctor again.`;
  return failed(exitCodeOf(error), whatHappened(error), wait ?? adviceFor(error));
};

const oldestNode = [20, 19] as const;

export const nodeFinding = (version: string): Finding => {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isSupported = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  if (isSupported) return ok(`Node ${version}`);
  return failed(ExitCode.local, `Node ${version} is too old.`, `Install Node ${oldestNode.join('.')} or later.`);
};

type Env = Readonly<Record<string, string | undefined>>;

/** Reports which proxy is used for the address, and variables that have no effect. */
export const proxyFinding = (url: URL, env: Env): Finding => {
  const proxy = proxyFor(url, env);
  if (proxy) return ok(`doctor used ${proxy.host}, from HTTPS_PROXY`, passTheProxy);
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

const passTheProxy =
  "Pass `await proxyFromEnvironment()` to the feed in your app, too: it doesn't use HTTPS_PROXY by itself.";

const placeToCheck = (what: string, proxy: URL | undefined): string =>
  proxy
    ? `Check the ${what} of the proxy in HTTPS_PROXY.`
    : `Check the ${what} of the base URL. If this network needs a proxy, set HTTPS_PROXY.`;

export const addressesFinding = (host: string, addresses: readonly string[]): Finding => {
  const ofFamily = (family: number) => addresses.filter((address) => isIP(address) === family).join(', ') || 'none';
  return ok(`${host}: IPv4 ${ofFamily(4)}; IPv6 ${ofFamily(6)}`);
};

export const unknownHostFinding = (host: string, code: string, proxy?: URL): Finding => {
  const place = placeToCheck('host', proxy);
  if (code === 'ENOTFOUND') return failed(ExitCode.unavailable, `DNS knows no host ${host}.`, place);
  const advice = `Check the network and the DNS server of this machine. ${place}`;
  return failed(ExitCode.unavailable, `DNS did not answer for ${host} (${code}).`, advice);
};

export interface Attempt {
  readonly address: string;
  readonly ms: number;
  readonly error?: string | undefined;
}

export const tcpFinding = (port: number, attempts: readonly Attempt[], proxy?: URL): Finding => {
  const words = attempts.map(
    ({ address, ms, error }) => `${address} ${error ? `failed: ${error}` : `in ${duration(ms)}`}`,
  );
  const text = `port ${port}: ${words.join('; ')}`;
  const errors = attempts.flatMap(({ error }) => error ?? []);
  if (errors.length === 0) return ok(text);
  if (errors.length < attempts.length)
    return warning(text, 'One address family does not work here. Repair its route, or remove its record from DNS.');
  const cause = errors.includes('ECONNREFUSED') ? 'No program listens there.' : 'A firewall may block the connection.';
  return failed(ExitCode.unavailable, text, `${cause} ${placeToCheck('host and the port', proxy)}`);
};

export interface TlsFacts {
  readonly protocol: string;
  /** The code of the verification error; `undefined` if the certificate is trusted for this host. */
  readonly problem: string | undefined;
  readonly chain: readonly string[];
  readonly names: string;
  readonly expiresAt: number;
}

const fewDays = 14;
const dayMs = 24 * 3_600_000;

export const tlsFinding = ({ protocol, problem, chain, names, expiresAt }: TlsFacts, now: number): Finding => {
  const clock = `the clock of this machine: it is ${new Date(now).toISOString()}.`;
  const refused = (text: string, advice: string): Finding => failed(ExitCode.certificate, text, advice);
  switch (problem) {
    case undefined: {
      const days = Math.floor((expiresAt - now) / dayMs);
      const text = `${protocol}; ${chain.join(' < ')}; ${count(days)} days left`;
      return days < fewDays ? warning(text, 'The certificate expires soon. The service must renew it.') : ok(text);
    }
    case 'CERT_HAS_EXPIRED':
      return refused(
        `The certificate expired on ${new Date(expiresAt).toISOString().slice(0, 10)}, by the clock of this machine.`,
        `The service must renew it. If the date is in the future, set ${clock}`,
      );
    case 'CERT_NOT_YET_VALID':
      return refused(
        'The certificate is not valid yet, by the clock of this machine.',
        `Set ${clock} If that is right, the service must replace the certificate.`,
      );
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return refused(`The certificate is for ${names}.`, 'Check the host of the base URL.');
    default:
      return refused(
        `The certificate is not trusted (${problem}): ${chain.join(' < ')}.`,
        'Use --ca FILE for the CA of a private service, or check which server answers at this address.',
      );
  }
};

export const noTlsFinding = ({ code, message }: NodeJS.ErrnoException): Finding =>
  code === 'ERR_SSL_WRONG_VERSION_NUMBER'
    ? failed(
        ExitCode.refused,
        'The server answered without TLS, although the base URL begins with https:.',
        'Check the host and the port of the base URL: this port speaks plain HTTP or another protocol.',
      )
    : failed(
        ExitCode.unavailable,
        `The connection failed: ${message}`,
        'Check the base URL and the proxy. A firewall may also end the connection.',
      );

/** A larger difference of the clocks is a problem, in ms. The `Date` of a response has a resolution of a second. */
const maxSkewMs = 5_000;

/** Reports the difference between the clock of this machine and that of the service, in ms. */
export const clockFinding = (skewMs: number | undefined): Finding => {
  if (skewMs === undefined) return skipped('the response has no Date');
  if (Math.abs(skewMs) <= maxSkewMs) return ok(`the difference to the service is at most ${duration(maxSkewMs)}`);
  return warning(
    `This machine is ${duration(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the service.`,
    'Set the clock of this machine. Certificates and the times of frames depend on it. A proxy may also send a wrong Date.',
  );
};
