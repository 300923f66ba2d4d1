import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { inspect } from 'node:util';
import { asapScheduler, asyncScheduler, firstValueFrom, of, VirtualTimeScheduler } from 'rxjs';
import { Agent as Dispatcher } from 'undici';
import { type BackoffPolicy, resolveBackoff } from '../../src/feed/backoff.js';
import {
  resolveOptions,
  resolveTicketOptions,
  type TlsOptions,
  type TradeFeedOptions,
} from '../../src/feed/options.js';
import { type Feed, requestTicket, tradeFeed$, tradeFeedEvents$ } from '../../src/index.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Secret } from '../../src/protocol/secret.js';
import { certificateFor } from '../support/certificate.js';

const marker = 'PLANTED-4711';
const valid: TradeFeedOptions = { baseUrl: 'https://feed.example.com', apiKey: 'k' };
const { cert, key } = await certificateFor();
const dispatcher = new Dispatcher();
const brokenPem = '-----BEGIN CERTIFICATE-----\nPLANTED-4711\n-----END CERTIFICATE-----\n';

const names = ['TRADE_FEED_BASE_URL', 'TRADE_FEED_API_KEY'] as const;
beforeEach(() => void jest.replaceProperty(process, 'env', {}));
afterEach(() => void jest.restoreAllMocks());

const refusalOf = (call: () => unknown): TradeFeedError => {
  try {
    call();
  } catch (error) {
    expect(error).toBeInstanceOf(TradeFeedError);
    expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop' });
    return error as TradeFeedError;
  }
  throw new Error('no exception');
};

const invalid = (problem: string): string =>
  `Invalid option: ${problem}. Correct it and start again. See node_modules/rx-trade-feed/docs/failures/ticket.md#invalid-options`;
const refused = (name: string, value: unknown): TradeFeedError => refusalOf(() => resolveOptions({ [name]: value }));
const everythingOf = (error: TradeFeedError): string =>
  inspect(error, { showHidden: true, depth: null }) + JSON.stringify(error) + String(error);

interface OptionCase {
  readonly byDefault?: unknown;
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}

const badMoments = [0, -1, -Infinity, NaN, marker, '10', null, true, {}, [5], 5n, () => 5];
const badWaits = badMoments.filter((value) => value !== 0);
const aSwitch = { good: [true, false], bad: ['true', marker, 0, 1, null, {}] };
const badKeys = ['', ' ', ` ${marker}`, `${marker}\n`, `${marker}\r\nx: y`, `${marker}é`, null, true, {}, [marker]];
const tlsOfUser = { ca: cert, cert, key, servername: 'localhost', checkServerIdentity: () => undefined };
const badTls = [
  ...[null, 5, true, marker, () => ({}), { ca: 5 }, { ca: { pem: marker } }, { ticketKeys: Buffer.from(marker) }],
  ...[{ cert: brokenPem }, { key: marker }, { cert, key: marker }, { pfx: marker }, { minVersion: marker }],
  ...[{ key: 47_110_815 }, { pfx: 47_110_815 }, { sessionTimeout: marker }],
];

const options: Readonly<Record<keyof TradeFeedOptions, OptionCase>> = {
  baseUrl: {
    good: [
      ...['https://feed.example.com', 'https://feed.example.com:8443/a/path/', 'HTTPS://FEED.EXAMPLE.COM'],
      ...['http://localhost:8080', 'http://127.9.9.9', 'http://[::1]:8080/path'],
    ],
    bad: ['', null, 5, {}, { href: 'https://feed.example.com' }],
  },
  apiKey: { good: ['k', 'sk_live_123', new Secret('k'), () => 'k', () => Promise.resolve('k')], bad: badKeys },
  ticketTimeoutMs: { byDefault: 10_000, good: [0.5, 1, 1e12, Infinity], bad: badMoments },
  handshakeTimeoutMs: { byDefault: 10_000, good: [0.5, 1, 1e12, Infinity], bad: badMoments },
  idleTimeoutMs: { byDefault: 30_000, good: [0, 1, 1e12, Infinity], bad: badWaits },
  maxFrameBytes: {
    byDefault: 16 * 1024 * 1024,
    good: [1, 125, 2 ** 31 - 1],
    bad: [0, -1, 1.5, NaN, Infinity, 2 ** 31, 2 ** 53, marker, '5', null, true, {}],
  },
  deliveryDelayMs: {
    byDefault: 'auto',
    good: ['auto', 0, 0.5, 500, 60_000],
    bad: [-1, 60_001, Infinity, NaN, marker, '500', null, true, {}],
  },
  backoff: { byDefault: resolveBackoff(), good: [], bad: [null, 5, marker, true, () => ({})] },
  classify: { good: [() => 'stop'], bad: [marker, {}, null, 5] },
  tls: {
    good: [{}, { ca: [cert, Buffer.from(cert)] }, tlsOfUser, { minVersion: 'TLSv1.3', rejectUnauthorized: true }],
    bad: badTls,
  },
  standby: aSwitch,
  receiveIn: { good: ['main', 'worker'], bad: ['', marker, null, 1, ['main']] },
  receiveBufferBytes: { good: [1, 2 ** 40], bad: [0, -1, 1.5, NaN, Infinity, marker, '5', null, true, {}] },
  warnings: aSwitch,
  dispatcher: {
    good: [dispatcher],
    bad: [null, 5, marker, {}, { dispatch: () => true }, { compose: marker }, new HttpsAgent()],
  },
  agent: {
    good: [new HttpAgent(), new HttpsAgent()],
    bad: [null, 5, marker, {}, { addRequest: marker }, dispatcher],
  },
};

const policy: Readonly<Record<keyof BackoffPolicy, OptionCase>> = {
  initialDelayMs: { byDefault: 500, good: [0, 1, 30_000], bad: badWaits },
  maxDelayMs: { byDefault: 30_000, good: [500, Infinity], bad: badWaits },
  factor: { byDefault: 2, good: [1, 1.5, 10], bad: [0.99, 0, -2, NaN, '2', null, marker] },
  jitter: { byDefault: 'full', good: ['full', 'equal', 'none'], bad: ['', marker, true, null] },
  stableAfterMs: { byDefault: 5_000, good: [0, 1, Infinity], bad: badWaits },
  maxAttempts: { byDefault: Infinity, good: [0, 1, Infinity], bad: [-1, 1.5, -Infinity, NaN, '3', marker, null] },
  random: { byDefault: Math.random, good: [() => 0.5], bad: [0.5, marker, null, {}] },
  scheduler: {
    byDefault: asapScheduler,
    good: [asyncScheduler, new VirtualTimeScheduler()],
    bad: [null, marker, {}, { schedule: marker }, () => undefined],
  },
};

describe.each([
  ...Object.entries(options).map(([name, each]) => [name, each] as const),
  ...Object.entries(policy).map(([name, each]) => [`backoff.${name}`, each] as const),
])('the option %s', (path, { byDefault, good, bad }) => {
  const [name, part] = path.split('.') as [string, string?];
  const given = (value: unknown) => ({ [name]: part === undefined ? value : { [part]: value } });
  const resolved = (value: unknown) => {
    const settings = resolveOptions(given(value)) as unknown as Record<string, unknown>;
    return part === undefined ? settings[name] : (settings[name] as Record<string, unknown>)[part];
  };

  it('has its default, and accepts valid values', () => {
    expect(resolved(undefined)).toEqual(byDefault);
    for (const value of good) {
      if (name === 'apiKey' && typeof value === 'string') expect((resolved(value) as Secret).reveal()).toBe(value);
      else expect(resolved(value)).toBe(value);
    }
  });

  it('refuses other values, and the error names it and shows numbers and booleans, but no string', () => {
    for (const value of bad) {
      const error = refusalOf(() => resolveOptions(given(value)));
      const isShown = (typeof value === 'number' || typeof value === 'boolean') && name !== 'apiKey';
      expect(error.message).toMatch(new RegExp(`^Invalid option: \`${path}\` (must be|begins with|ends with) `));
      if (isShown) expect(error.message).toContain(`, got ${String(value)}. `);
      else expect(error.message).not.toContain(', got');
      expect(everythingOf(error)).not.toContain(marker);
    }
  });
});

const withoutTls =
  'is http://feed.example.com: without TLS, anybody on the network could read your key. ' +
  'Begin it with https:// (http:// works for this machine only)';
const withUser = 'contains a user name or a password. Remove them: the key goes into `apiKey`';
const withQuery = 'contains a query or a fragment. Remove everything from ? or # on';
const addresses: Readonly<Record<string, string>> = {
  'feed.example.com': 'has no scheme: "feed.example.com". Begin it with https://',
  // A service on this machine usually has no certificate. To any other one, the key would go without TLS.
  'localhost:8080': 'has no scheme: "localhost:8080". Begin it with http://',
  'localhost:8080/path': 'has no scheme. Begin it with http://',
  '192.168.1.5:8080': 'has no scheme: "192.168.1.5:8080". Begin it with https://',
  'localhost.example.com': 'has no scheme: "localhost.example.com". Begin it with https://',
  'https://': "isn't a complete address. Write it as https://feed.example.com",
  'https://feed.example.com\n': 'contains a space or a line break. Remove it',
  'http://feed.example.com': withoutTls,
  'file:///etc/passwd': 'is file:. Begin it with https://',
  [`https://${marker}@feed.example.com`]: withUser,
  [`https://feed.example.com?key=${marker}`]: withQuery,
  'https://feed.example.com#': withQuery,
  'https://feed.example.com/v1/wss/tickets':
    'is https://feed.example.com/v1/wss/tickets, which is the ticket endpoint. Remove /v1/wss/tickets: the feed adds it',
};

it.each(Object.entries(addresses))('says in one sentence what is wrong with the address %p', (address, problem) => {
  const error = refused('baseUrl', address);
  expect(error.message).toBe(invalid(`\`baseUrl\` ${problem}`));
  expect(everythingOf(error)).not.toContain(marker);
  process.env['TRADE_FEED_BASE_URL'] = address;
  const fromEnvironment = refusalOf(() => tradeFeed$('market', { apiKey: marker }));
  expect(fromEnvironment.message).toBe(invalid(`\`baseUrl\` (from TRADE_FEED_BASE_URL) ${problem}`));
});

const edges: Readonly<Record<string, string>> = {
  [`${marker} `]: 'ends with a space. Remove it',
  [`${marker}\r\n`]: 'ends with a line break. Remove it',
  [`${marker}\t`]: 'ends with white space. Remove it',
  [` ${marker}`]: 'begins with a space. Remove it',
  [`\ufeff${marker}`]: 'begins with white space. Remove it',
};
it.each(Object.entries(edges))('says what is wrong with white space around a key: %j', async (key, problem) => {
  const { baseUrl } = valid;
  const option = refusalOf(() => resolveOptions({ apiKey: key }));
  expect(option.message).toBe(invalid(`\`apiKey\` ${problem}`));
  process.env['TRADE_FEED_API_KEY'] = key;
  const fromEnvironment = refusalOf(() => resolveTicketOptions({ baseUrl }));
  expect(fromEnvironment.message).toBe(invalid(`\`apiKey\` (from TRADE_FEED_API_KEY) ${problem}`));
  const later = of('market' as const).pipe(requestTicket({ baseUrl, apiKey: () => key }));
  const returned = await firstValueFrom(later).catch((error: unknown) => error);
  expect((returned as Error).message).toBe(invalid(`\`apiKey\` is a function whose key ${problem}`));
  for (const error of [option, fromEnvironment, returned])
    expect(everythingOf(error as TradeFeedError)).not.toContain(marker);
  expect(() => new Secret(key)).toThrow(new TypeError(`A secret ${problem}.`));
});

describe('an unknown option', () => {
  it.each([
    ['apiKey', { apikey: 'k' }],
    ['baseUrl', { baseURL: 'https://x.example' }],
    ['apiKey', { APIKEY: 'k' }],
    ['idleTimeoutMs', { idleTimoutMs: 1 }],
    ['classify', { classfy: () => 'stop' }],
    ['backoff.maxAttempts', { backoff: { maxAttempt: 1 } }],
    ['tls.ca', { tls: { CA: cert } }],
  ])('gets the name that was meant: %s', (meant, given) => {
    const error = refusalOf(() => tradeFeed$('market', { ...valid, ...given } as TradeFeedOptions));
    expect(error.message).toMatch(
      new RegExp(`doesn't exist: the options are .+\\. Did you mean \`${meant}\`\\? Correct`),
    );
  });

  it.each(['url', 'timeout', 'x', '', 'retry'])('gets only the list if no name is near: %j', (name) => {
    expect(refusalOf(() => tradeFeed$('market', { ...valid, [name]: 1 })).message).not.toContain('Did you mean');
  });
});

it.each([
  [{}, '`baseUrl` and `apiKey`. Pass them as options, or set TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY.'],
  [{ apiKey: marker }, '`baseUrl`. Pass it as an option, or set TRADE_FEED_BASE_URL.'],
  [{ baseUrl: 'https://x.example' }, '`apiKey`. Pass it as an option, or set TRADE_FEED_API_KEY.'],
])('names everything missing from %p at once, and how to start without an account', (options, missing) => {
  const { message } = refusalOf(() => tradeFeed$('market', options));
  expect(message).toBe(
    `Missing ${missing} No account? Run \`npx rx-trade-feed serve\`: it prints what to set. ` +
      'See node_modules/rx-trade-feed/docs/failures/ticket.md#invalid-options',
  );
});

it('refuses a key that is too long, and shows only its length, and nothing of a key that is a number', () => {
  const error = refused('apiKey', marker.repeat(3_000));
  expect(error.message).toContain('got 36000 characters (at most 16384)');
  expect(everythingOf(error)).not.toContain(marker);
  expect(refused('apiKey', 47_110_815).message).not.toContain('47110815');
});

describe('the option tls', () => {
  it.each([
    // Options that would change where `tls.connect` connects: an address, an open socket, a pipe, a lookup function.
    ...['host', 'port', 'socket', 'path', 'lookup', 'onread', 'secureContext', 'session'],
    // Misspelled, or belongs to another object.
    ...['rejectUnauthorised', 'toString', '', '__proto__'],
  ])('refuses the unknown name %j from the call itself, and lists the known names', (name) => {
    const tls = JSON.parse(JSON.stringify({ ca: cert }).replace(/}$/, `,"${name}":"${marker}"}`)) as TlsOptions;
    const error = refusalOf(() => tradeFeed$('market', { ...valid, tls }));
    expect(error.message).toContain(`\`tls.${name}\` doesn't exist: the options are ca, cert, key, passphrase, `);
    expect(everythingOf(error)).not.toContain(marker);
  });

  it.each([
    ...[{ ca: marker }, { ca: brokenPem }, { ca: `${cert}\n${brokenPem}` }, { ca: [], servername: 5 }],
    ...[{ passphrase: 47_110_815 }, { honorCipherOrder: 'yes' }, { rejectUnauthorized: 'false' }],
    ...[{ checkServerIdentity: 'x' }, { allowPartialTrustChain: 1 }, { ALPNCallback: marker }],
  ])('refuses %p by the name of the part, without showing a secret', (tls) => {
    const error = refused('tls', tls);
    expect(error.message).toContain(`\`tls.${Object.keys(tls).at(-1)}\` must be `);
    expect(everythingOf(error)).not.toMatch(new RegExp(`${marker}|47110815`));
  });
});

it('resolveOptions accepts its own result as options, and returns it unchanged', () => {
  const backoff = { jitter: 'none', random: () => 0.5 } as const;
  const more = { tls: { ca: cert }, agent: new HttpsAgent(), dispatcher };
  const once = resolveOptions({ apiKey: 'k', idleTimeoutMs: 0, backoff, classify: () => 'stop', ...more });
  const twice = resolveOptions(once);
  expect(twice).toEqual(once);
  expect(twice.apiKey).toBe(once.apiKey);
  expect(Object.keys(twice).sort()).toEqual(Object.keys(once).sort());
  expect(resolveOptions(resolveOptions())).toEqual(resolveOptions());
});

describe('the environment', () => {
  it('replaces a missing option, and is read on every call', () => {
    process.env['TRADE_FEED_API_KEY'] = 'env-key';
    for (const address of ['https://one.example', 'https://two.example']) {
      process.env['TRADE_FEED_BASE_URL'] = address;
      const settings = resolveTicketOptions({ apiKey: undefined });
      expect([settings.baseUrl, (settings.apiKey as Secret).reveal()]).toEqual([address, 'env-key']);
    }
  });

  it('is ignored if an option is set, even to an invalid value', () => {
    process.env['TRADE_FEED_BASE_URL'] = marker;
    process.env['TRADE_FEED_API_KEY'] = 'a b';
    const input = { baseUrl: 'https://x.example/path', apiKey: () => 'k' };
    expect(resolveTicketOptions(input)).toEqual(resolveOptions(input));
  });

  it.each(names)('treats an empty %s as missing', (name) => {
    process.env[name] = '';
    expect(resolveOptions()).toEqual(resolveOptions({}));
    expect(refusalOf(() => resolveTicketOptions()).message).toMatch(new RegExp(`^Missing .*set .*${name}`));
  });
});

describe.each([
  ['tradeFeed$', tradeFeed$],
  ['tradeFeedEvents$', tradeFeedEvents$],
] as const)('%s', (_name, feed$) => {
  it('validates once, not on every subscription', () => {
    const passphrase = jest.fn(() => 'none');
    const tls = Object.defineProperty({}, 'passphrase', { get: passphrase, enumerable: true });
    const ready$ = feed$('market', { ...valid, tls, apiKey: () => new Promise<string>(() => undefined) });
    const { length } = passphrase.mock.calls;
    ready$.subscribe().unsubscribe();
    expect(length).toBeGreaterThan(0);
    expect(passphrase).toHaveBeenCalledTimes(length);
  });

  it.each([
    ['x', ", got 'x'"],
    ['planted-key', ''],
    [5, ', got 5'],
  ])('refuses the feed %p at once', (feed, got) => {
    const error = refusalOf(() => feed$(feed as Feed, valid));
    expect(error.message).toContain(`\`feed\` must be 'market' or 'raw'${got}.`);
    expect(inspect(error)).not.toContain('planted');
  });
});
