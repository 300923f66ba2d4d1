import { isLoopback } from '../protocol/contract.js';
import { invalidOption } from '../protocol/validate.js';
import { isSecure, portOf } from './connect.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the proxy for a URL. Lower case wins, as in curl, and `NODE_USE_ENV_PROXY=0` turns proxies off. Never uses a
 * proxy for this machine. Throws `invalid-options` if `HTTPS_PROXY` isn't the address of an HTTP proxy.
 */
export const proxyFor = (url: URL, env: Environment): URL | undefined => {
  const proxy = proxyOf(env);
  return proxy === undefined || isDirect(url, env) ? undefined : proxy;
};

/** Returns whether the environment names a proxy for a URL. It doesn't check the proxy's address. */
export const hasProxy = (url: URL, env: Environment): boolean => addressOf(env) !== '' && !isDirect(url, env);

/** Returns the proxy in the environment, whatever the host. */
export const proxyOf = (env: Environment): URL | undefined => {
  const address = addressOf(env);
  if (address === '') return undefined;
  const text = address.includes('://') ? address : `http://${address}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  // SOCKS proxies speak another protocol.
  if (proxy === undefined || !/^https?:$/.test(proxy.protocol))
    throw invalidOption('HTTPS_PROXY', 'the http: or https: address of a proxy, such as http://proxy.example:3128');
  return proxy;
};

const addressOf = (env: Environment): string => (env['NODE_USE_ENV_PROXY'] === '0' ? '' : valueOf(env, 'HTTPS_PROXY'));

const isDirect = (url: URL, env: Environment): boolean => !isSecure(url) || isLoopback(url) || isExcepted(url, env);

const valueOf = (env: Environment, name: string): string => (env[name.toLowerCase()] ?? env[name] ?? '').trim();

// `example.com` and `.example.com` mean the host and all hosts below it, as in curl and undici.
const isExcepted = (url: URL, env: Environment): boolean => {
  const host = url.hostname.toLowerCase();
  const entries = valueOf(env, 'NO_PROXY')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return entries.some((entry) => {
    const place = entry.replace(/^\*?\./, '');
    const name = place.replace(/:\d+$/, '');
    const port = place.slice(name.length + 1);
    // If an IPv6 address lacks its brackets, its last part looks like a port.
    if (`[${entry}]` === host || entry === '*') return true;
    return (port === '' || Number(port) === portOf(url)) && (host === name || host.endsWith(`.${name}`));
  });
};
