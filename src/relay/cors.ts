import type { IncomingHttpHeaders } from 'node:http';
import type { Rule } from '../protocol/rules.js';

/** The origins whose pages may receive the feed. */
export type AllowedOrigins = readonly string[] | '*';

/** The rule for the option `allowOrigins`. */
export const originsRule: Rule = {
  allowed: "'*' or a list of origins such as 'https://app.example.com'",
  is: (v) =>
    v === '*' ||
    (Array.isArray(v) && v.every((each) => URL.canParse(each as string) && new URL(each as string).origin === each)),
};

/** The result of the CORS check of a request (Fetch, 3.2). */
export interface Cors {
  readonly isAllowed: boolean;
  /** The headers of every answer. Without them a page cannot read even the status. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Checks the origin of a request. A request without an origin, or with the origin of the server, is allowed. */
export const checkCors = ({ headers }: { readonly headers: IncomingHttpHeaders }, allowed: AllowedOrigins): Cors => {
  const { origin, host } = headers;
  const varies = { vary: 'Origin' };
  if (origin === undefined || isSameHost(origin, host)) return { isAllowed: true, headers: varies };
  const requested = headers['access-control-request-headers'];
  const preflight =
    requested === undefined ? {} : { 'access-control-allow-headers': requested, 'access-control-max-age': '600' };
  const methods = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
  if (allowed === '*')
    return { isAllowed: true, headers: { 'access-control-allow-origin': '*', ...methods, ...preflight } };
  if (!allowed.includes(origin)) return { isAllowed: false, headers: varies };
  const withCookies = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' };
  return { isAllowed: true, headers: { ...varies, ...withCookies, ...methods, ...preflight } };
};

// The scheme may differ, because a proxy may terminate TLS.
const isSameHost = (origin: string, host: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === host;
