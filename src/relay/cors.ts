import type { IncomingHttpHeaders } from 'node:http';
import type { Rule } from '../protocol/rules.js';

/** Whose pages may receive. */
export type Origins = readonly string[] | '*';

/** What they must be. */
export const originsRule: Rule = {
  allowed: "'*' or a list of origins such as 'https://app.example.com'",
  is: (v) =>
    v === '*' ||
    (Array.isArray(v) && v.every((each) => URL.canParse(each as string) && new URL(each as string).origin === each)),
};

/** What CORS makes of a request (Fetch, 3.2). */
export interface Cors {
  readonly isAllowed: boolean;
  /** For the answer, whatever it is: without them a page is not even shown the status. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Holds the origin of a request against the allowed ones; one without an origin, or of the server itself, is allowed. */
export const corsOf = ({ headers }: { readonly headers: IncomingHttpHeaders }, allowed: Origins): Cors => {
  const { origin, host } = headers;
  const varies = { vary: 'Origin' };
  if (origin === undefined || isOwn(origin, host)) return { isAllowed: true, headers: varies };
  const asked = headers['access-control-request-headers'];
  const preflight =
    asked === undefined ? {} : { 'access-control-allow-headers': asked, 'access-control-max-age': '600' };
  const methods = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
  if (allowed === '*')
    return { isAllowed: true, headers: { 'access-control-allow-origin': '*', ...methods, ...preflight } };
  if (!allowed.includes(origin)) return { isAllowed: false, headers: varies };
  const withCookies = { 'access-control-allow-origin': origin, 'access-control-allow-credentials': 'true' };
  return { isAllowed: true, headers: { ...varies, ...withCookies, ...methods, ...preflight } };
};

// The scheme may be another one here: TLS ends at a proxy.
const isOwn = (origin: string, host: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === host;
