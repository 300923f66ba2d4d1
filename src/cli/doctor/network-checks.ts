import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import { firstValueFrom, from, throwError, timeout } from 'rxjs';
import { ExitCode } from '../exit-code.js';
import { duration } from '../view/units.js';
import { type Check, type Checked, failed, type Facts, ok, skipped, warning } from './check.js';
import { tlsCheck } from './tls-check.js';

/** How long one connection may take, in ms. */
const connectTimeoutMs = 5_000;

/** What to check if there is no connection: the proxy, or the address of the service. */
const placeToCheck = (what: string, proxy: URL | undefined): string =>
  proxy
    ? `Check the ${what} of the proxy in HTTPS_PROXY.`
    : `Check the ${what} of the base URL. If this network needs a proxy, set HTTPS_PROXY.`;

const dns = async ({ url, proxy }: Facts): Promise<Checked> => {
  const host = hostOf(proxy ?? (url as URL));
  if (isIP(host) !== 0) return skipped(`${host} is an IP address`, { addresses: [host] });
  try {
    return addressesFinding(host, await addressesOf(host));
  } catch (error) {
    return unknownHostFinding(host, String((error as NodeJS.ErrnoException).code), proxy);
  }
};

/** How long DNS may take, in ms. */
export const dnsTimeoutMs = 5_000;

/** Returns the addresses of a host. Rejects with `ETIMEDOUT` if DNS is silent: the system would wait for up to half a minute. */
export const addressesOf = (
  host: string,
  query: (host: string) => Promise<readonly LookupAddress[]> = (name) => lookup(name, { all: true }),
): Promise<readonly LookupAddress[]> => {
  const silence = () => throwError(() => Object.assign(new Error(), { code: 'ETIMEDOUT' }));
  return firstValueFrom(from(query(host)).pipe(timeout({ first: dnsTimeoutMs, with: silence })));
};

/** Reports the addresses of a host, in both families. */
export const addressesFinding = (host: string, found: readonly LookupAddress[]): Checked => {
  const ofFamily = (family: number): string =>
    found
      .filter((each) => each.family === family)
      .map(({ address }) => address)
      .join(', ') || 'none';
  return ok(`${host}: IPv4 ${ofFamily(4)}; IPv6 ${ofFamily(6)}`, { addresses: found.map(({ address }) => address) });
};

/** Reports a host without an address. */
export const unknownHostFinding = (host: string, code: string, proxy?: URL): Checked =>
  code === 'ENOTFOUND'
    ? failed(ExitCode.unavailable, `DNS knows no host ${host}.`, placeToCheck('host', proxy))
    : failed(
        ExitCode.unavailable,
        `DNS did not answer for ${host} (${code}).`,
        `Check the network and the DNS server of this machine. ${placeToCheck('host', proxy)}`,
      );

/** The result of one connection attempt. */
export interface Attempt {
  readonly address: string;
  readonly ms: number;
  /** The code of the error, if it failed. */
  readonly error?: string;
}

const tcp = async ({ url, proxy, addresses = [] }: Facts): Promise<Checked> => {
  const port = portOf(proxy ?? (url as URL));
  const ofEachFamily = [4, 6].flatMap((family) => addresses.find((address) => isIP(address) === family) ?? []);
  return tcpFinding(port, await Promise.all(ofEachFamily.map((address) => attempt(address, port))), proxy);
};

const attempt = (address: string, port: number): Promise<Attempt> =>
  new Promise((resolve) => {
    const startedMs = performance.now();
    const end = (error?: string): void => {
      socket.destroy();
      resolve({ address, ms: performance.now() - startedMs, ...(error !== undefined && { error }) });
    };
    const socket = connect({ host: address, port })
      .once('connect', () => end())
      .once('error', ({ code }: NodeJS.ErrnoException) => end(code ?? 'unknown'))
      .setTimeout(connectTimeoutMs, () => end('ETIMEDOUT'));
  });

/** Reports the connection attempts, one for each family. */
export const tcpFinding = (port: number, attempts: readonly Attempt[], proxy?: URL): Checked => {
  const words = attempts.map(
    ({ address, ms, error }) => `${address} ${error === undefined ? `in ${duration(ms)}` : `failed: ${error}`}`,
  );
  const text = `port ${port}: ${words.join('; ')}`;
  const errors = attempts.flatMap(({ error }) => error ?? []);
  if (errors.length === 0) return ok(text);
  if (errors.length < attempts.length)
    return warning(text, 'One address family does not work here. Repair its route, or remove its record from DNS.');
  const cause = errors.includes('ECONNREFUSED') ? 'No program listens there.' : 'A firewall may block the connection.';
  return failed(ExitCode.unavailable, text, `${cause} ${placeToCheck('host and the port', proxy)}`);
};

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');
const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80));

/** The checks of the network: they send neither the key nor a ticket. */
export const networkChecks: readonly Check[] = [{ name: 'dns', run: dns }, { name: 'tcp', run: tcp }, tlsCheck];
