import { describe, expect, it } from '@jest/globals';
import type { IncomingMessage } from 'node:http';
import { type AllowedOrigins, checkCors, type Cors } from '../../src/relay/cors.js';

const app = 'https://app.example.com';
const requested = {
  'access-control-request-method': 'GET',
  'access-control-request-headers': 'authorization, last-event-id',
};

const cors = (headers: Readonly<Record<string, string>>, allowed: AllowedOrigins = []): Cors =>
  checkCors({ headers: { host: 'relay.example.com', ...headers } }, allowed);

const basics = { 'access-control-allow-methods': 'GET', 'access-control-expose-headers': 'Retry-After' };
const withCookies = { 'access-control-allow-origin': app, 'access-control-allow-credentials': 'true', ...basics };
const preflight = { 'access-control-allow-headers': 'authorization, last-event-id', 'access-control-max-age': '600' };
const vary = { vary: 'Origin' };

describe('checkCors', () => {
  it.each<[string, Record<string, string>, AllowedOrigins, boolean, Record<string, string>]>([
    ['a request without an origin', {}, [], true, vary],
    ['a page of the server itself', { origin: 'https://relay.example.com' }, [], true, vary],
    ['a page of a server behind a proxy that terminates TLS', { origin: 'http://relay.example.com' }, [], true, vary],
    [
      'a page of the server itself where others are allowed',
      { origin: 'https://relay.example.com' },
      [app],
      true,
      vary,
    ],
    ['an allowed page', { origin: app }, [app], true, { ...vary, ...withCookies }],
    [
      'its preflight',
      { origin: app, ...requested },
      ['https://b.example', app],
      true,
      { ...vary, ...withCookies, ...preflight },
    ],
    ['any page', { origin: app }, '*', true, { 'access-control-allow-origin': '*', ...basics }],
    [
      'its preflight',
      { origin: app, ...requested },
      '*',
      true,
      { 'access-control-allow-origin': '*', ...basics, ...preflight },
    ],
    ['a page with an opaque origin', { origin: 'null' }, '*', true, { 'access-control-allow-origin': '*', ...basics }],
    ['a page with an opaque origin', { origin: 'null' }, [], false, vary],
    ['a page with an opaque origin', { origin: 'null' }, [app], false, vary],
    ['another page', { origin: 'https://evil.example' }, [], false, vary],
    ['another page', { origin: 'https://evil.example' }, [app], false, vary],
    ['its preflight', { origin: 'https://evil.example', ...requested }, [app], false, vary],
    ['another scheme', { origin: 'http://app.example.com' }, [app], false, vary],
    ['another port', { origin: `${app}:8443` }, [app], false, vary],
    ['another port of the server', { origin: 'https://relay.example.com:8443' }, [], false, vary],
    ['a host that starts with the allowed one', { origin: `${app}.evil.example` }, [app], false, vary],
    ['a host that ends with the allowed one', { origin: 'https://evilrelay.example.com' }, [], false, vary],
    ['an invalid origin', { origin: 'relay.example.com' }, [], false, vary],
  ])('%s: %j, allowed %j: %j', (_what, headers, allowed, isAllowed, expected) => {
    expect(cors(headers, allowed)).toEqual({ isAllowed, headers: expected });
  });

  it('handles a request without a host', () => {
    const request = { headers: { origin: 'https://evil.example' } } as unknown as IncomingMessage;
    expect(checkCors(request, []).isAllowed).toBe(false);
    const nameless = { headers: { origin: 'data:text/plain,x', host: '' } } as unknown as IncomingMessage;
    expect(checkCors(nameless, []).isAllowed).toBe(true);
  });
});
