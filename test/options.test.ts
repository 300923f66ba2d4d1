import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { inspect } from 'node:util';
import { asyncScheduler, VirtualTimeScheduler } from 'rxjs';
import { Agent as Dispatcher } from 'undici';
import { tradeFeed$, tradeFeedEvents$ } from '../src/index.js';
import { resolveOptions, resolveTicketOptions, type TlsOptions, type TradeFeedOptions } from '../src/options.js';
import { TradeFeedError } from '../src/protocol/failures/trade-feed-error.js';
import { Secret } from '../src/protocol/secret.js';
import { certificateFor } from './support/certificate.js';

const marker = 'PLANTED-4711';
const { cert, key } = await certificateFor();
const dispatcher = new Dispatcher();
const brokenPem = '-----BEGIN CERTIFICATE-----\nPLANTED-4711\n-----END CERTIFICATE-----\n';

const names = ['TRADE_FEED_BASE_URL', 'TRADE_FEED_API_KEY'] as const;
const environment = names.map((name) => [name, process.env[name]] as const);
beforeEach(() => {
  for (const name of names) Reflect.deleteProperty(process.env, name);
});
afterEach(() => {
  for (const [name, value] of environment) {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
});

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

const refused = (name: string, value: unknown): TradeFeedError => refusalOf(() => resolveOptions({ [name]: value }));
const everythingOf = (error: TradeFeedError): string =>
  inspect(error, { showHidden: true, depth: null }) + JSON.stringify(error) + String(error);

interface OptionCase {
  readonly byDefault: unknown;
  /** The allowed values in the message of the error. */
  readonly allowed: string;
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}

const aMoment = 'a number of ms above 0';
const allowedUrl = 'an https: address (http: only for a loopback host) without credentials, query or fragment';
const badMoments = [0, -1, -Infinity, NaN, marker, '10', null, true, {}, [5], 5n, () => 5];
const badWaits = badMoments.filter((value) => value !== 0);

const options: Readonly<Record<keyof TradeFeedOptions, OptionCase>> = {
  baseUrl: {
    byDefault: undefined,
    allowed: allowedUrl,
    good: [
      'https://feed.example.com',
      'https://feed.example.com/',
      'https://feed.example.com:8443/a/path/',
      'HTTPS://FEED.EXAMPLE.COM',
      'http://localhost:8080',
      'http://127.0.0.1:1',
      'http://127.9.9.9',
      'http://[::1]:8080/path',
    ],
    bad: [
      '',
      marker,
      'feed.example.com',
      '/v1',
      'https://',
      'http://feed.example.com',
      `http://${marker}.example.com`,
      'http://127.0.0.1.example.com',
      'http://0.0.0.0',
      'wss://feed.example.com',
      'ws://localhost',
      'ftp://localhost',
      'file:///etc/passwd',
      `https://${marker}@feed.example.com`,
      `https://:${marker}@feed.example.com`,
      `https://feed.example.com?key=${marker}`,
      `https://feed.example.com#${marker}`,
      new URL('https://feed.example.com'),
      null,
      5,
      {},
    ],
  },
  apiKey: {
    byDefault: undefined,
    allowed: 'a string of visible ASCII characters without spaces, or a function that returns one',
    good: ['k', 'sk_live_123', new Secret('k'), () => 'k', () => Promise.resolve('k')],
    bad: [
      '',
      ' ',
      ` ${marker}`,
      `${marker}\n`,
      `${marker}\r\nx: y`,
      `${marker}é`,
      null,
      true,
      {},
      [marker],
      { key: marker },
    ],
  },
  ticketTimeoutMs: { byDefault: 10_000, allowed: aMoment, good: [0.5, 1, 1e12, Infinity], bad: badMoments },
  handshakeTimeoutMs: { byDefault: 10_000, allowed: aMoment, good: [0.5, 1, 1e12, Infinity], bad: badMoments },
  idleTimeoutMs: {
    byDefault: 30_000,
    allowed: 'a number of ms, 0 or more',
    good: [0, 1, 1e12, Infinity],
    bad: badWaits,
  },
  maxFrameBytes: {
    byDefault: 16 * 1024 * 1024,
    allowed: 'a whole number of bytes from 1 to 2147483647',
    good: [1, 125, 2 ** 31 - 1],
    bad: [0, -1, 1.5, NaN, Infinity, 2 ** 31, 2 ** 53, marker, '5', null, true, {}],
  },
  backoff: {
    byDefault: expect.objectContaining({ initialDelayMs: 500, maxDelayMs: 30_000 }),
    allowed: 'an object',
    good: [{}],
    bad: [null, 5, marker, true, () => ({})],
  },
  classify: { byDefault: undefined, allowed: 'a function', good: [() => 'stop'], bad: [marker, {}, null, 5] },
  tls: {
    byDefault: undefined,
    allowed: 'an object of options for node:tls, with certificates and keys in PEM',
    good: [
      {},
      { ca: cert },
      { ca: [cert, Buffer.from(cert)] },
      { ca: cert, cert, key, servername: 'localhost', rejectUnauthorized: true, checkServerIdentity: () => undefined },
      { minVersion: 'TLSv1.3' },
    ],
    bad: [
      null,
      5,
      true,
      marker,
      () => ({}),
      { ca: 5 },
      { ca: { pem: marker } },
      { cert: brokenPem },
      { key: marker },
      { cert, key: marker },
      { pfx: marker, passphrase: marker },
      { minVersion: marker },
    ],
  },
  standby: {
    byDefault: undefined,
    allowed: 'true or false',
    good: [true, false],
    bad: ['true', marker, 0, 1, null, {}],
  },
  receiveIn: {
    byDefault: undefined,
    allowed: "'main' or 'worker'",
    good: ['main', 'worker'],
    bad: ['', marker, 'Main', null, 1, ['main']],
  },
  receiveBufferBytes: {
    byDefault: undefined,
    allowed: 'a whole number, 1 or more',
    good: [1, 2 ** 40],
    bad: [0, -1, 1.5, NaN, Infinity, marker, '5', null, true, {}],
  },
  warnings: {
    byDefault: undefined,
    allowed: 'true or false',
    good: [true, false],
    bad: ['false', marker, 0, 1, null, {}],
  },
  dispatcher: {
    byDefault: undefined,
    allowed: 'a Dispatcher of undici 7',
    good: [dispatcher],
    bad: [null, 5, marker, {}, { dispatch: () => true }, { compose: marker }, new HttpsAgent()],
  },
  agent: {
    byDefault: undefined,
    allowed: 'an http.Agent or https.Agent',
    good: [new HttpAgent(), new HttpsAgent()],
    bad: [null, 5, marker, {}, { addRequest: marker }, dispatcher],
  },
};

describe.each(Object.entries(options))('the option %s', (name, { byDefault, allowed, good, bad }) => {
  it('has its default', () => {
    expect((resolveOptions() as unknown as Record<string, unknown>)[name]).toEqual(byDefault);
    expect((resolveOptions({ [name]: undefined }) as unknown as Record<string, unknown>)[name]).toEqual(byDefault);
  });

  it.each(good.map((value) => [value]))('may be %p', (value) => {
    const settings = resolveOptions({ [name]: value }) as unknown as Record<string, unknown>;
    if (name === 'backoff') expect(settings[name]).toEqual(byDefault);
    else if (name === 'apiKey' && typeof value === 'string') expect((settings[name] as Secret).reveal()).toBe(value);
    else expect(settings[name]).toBe(value);
  });

  it.each(bad.map((value) => [value]))(
    'is refused as %p with the allowed values and without strings from the options',
    (value) => {
      const error = refused(name, value);
      const isShown = typeof value === 'number' || typeof value === 'boolean';
      const got = isShown && name !== 'apiKey';
      expect(error.message).toBe(
        `The options are not valid (\`${name}\` must be ${allowed}${got ? `, got ${String(value)}` : ''}). Correct the option that is named here.`,
      );
      expect(everythingOf(error)).not.toContain(marker);
    },
  );
});

// Good and bad values of each option of the policy.
const policy: Readonly<Record<string, { good: readonly unknown[]; bad: readonly unknown[]; allowed: string }>> = {
  initialDelayMs: { allowed: 'a number of ms, 0 or more', good: [0, 1, 30_000], bad: badWaits },
  maxDelayMs: { allowed: 'a number of ms, 0 or more', good: [500, Infinity], bad: badWaits },
  factor: { allowed: 'a number, 1 or more', good: [1, 1.5, 10], bad: [0.99, 0, -2, NaN, '2', null, marker] },
  jitter: { allowed: "'full' or 'equal' or 'none'", good: ['full', 'equal', 'none'], bad: ['', marker, true, null] },
  stableAfterMs: { allowed: 'a number of ms, 0 or more', good: [0, 1, Infinity], bad: badWaits },
  maxAttempts: {
    allowed: 'a whole number, 0 or more, or Infinity',
    good: [0, 1, Infinity],
    bad: [-1, 1.5, -Infinity, NaN, '3', marker, null],
  },
  random: { allowed: 'a function', good: [() => 0.5], bad: [0.5, marker, null, {}] },
  scheduler: {
    allowed: 'an RxJS scheduler',
    good: [asyncScheduler, new VirtualTimeScheduler()],
    bad: [null, marker, {}, { schedule: marker }, () => undefined],
  },
};

describe.each(Object.entries(policy))('the option backoff.%s', (name, { allowed, good, bad }) => {
  it.each(good.map((value) => [value]))('may be %p', (value) => {
    expect(resolveOptions({ backoff: { [name]: value } }).backoff).toMatchObject({ [name]: value });
  });

  it.each(bad.map((value) => [value]))('must not be %p', (value) => {
    const error = refused('backoff', { [name]: value });
    expect(error.message).toContain(`\`backoff.${name}\` must be ${allowed}`);
    expect(everythingOf(error)).not.toContain(marker);
  });
});

describe('the option backoff', () => {
  it('refuses an unknown name', () => {
    expect(refused('backoff', { maxDelay: 5 }).message).toContain(
      '`backoff.maxDelay` must be left out: the options are initialDelayMs, maxDelayMs, factor, jitter, stableAfterMs, maxAttempts, random, scheduler)',
    );
  });

  it('refuses an initial wait beyond the longest wait', () => {
    expect(refused('backoff', { initialDelayMs: 2_000, maxDelayMs: 1_000 }).message).toContain(
      '`backoff.initialDelayMs` must be at most maxDelayMs (1000), got 2000',
    );
    expect(resolveOptions({ backoff: { initialDelayMs: 1_000, maxDelayMs: 1_000 } }).backoff.maxDelayMs).toBe(1_000);
    // The default of initialDelayMs is limited by maxDelayMs.
    const { backoff } = resolveOptions({ backoff: { maxDelayMs: 100 } });
    expect(backoff).toMatchObject({ initialDelayMs: 100, maxDelayMs: 100 });
    expect(resolveOptions({ backoff }).backoff).toEqual(backoff);
  });
});

// Each allowed option of node:tls, written by hand: a name that is missing here or in src fails the test.
const tlsNames = Object.keys({
  ca: true,
  cert: true,
  key: true,
  passphrase: true,
  pfx: true,
  crl: true,
  servername: true,
  checkServerIdentity: true,
  rejectUnauthorized: true,
  allowPartialTrustChain: true,
  minVersion: true,
  maxVersion: true,
  ciphers: true,
  sigalgs: true,
  ecdhCurve: true,
  dhparam: true,
  honorCipherOrder: true,
  secureOptions: true,
  secureProtocol: true,
  ALPNCallback: true,
  clientCertEngine: true,
  privateKeyEngine: true,
  privateKeyIdentifier: true,
  sessionIdContext: true,
  sessionTimeout: true,
  ticketKeys: true,
} satisfies Record<keyof TlsOptions, true>);

describe('the option tls', () => {
  it.each([
    // Options that would change where `tls.connect` connects: an address, an open socket, a pipe, a lookup function.
    ...['host', 'port', 'socket', 'path', 'lookup', 'localAddress', 'family', 'fd', 'onread'],
    ...['secureContext', 'session', 'ALPNProtocols', 'pskCallback', 'minDHSize', 'requestOCSP', 'timeout'],
    // Misspelled, or an option of another object.
    ...['rejectUnauthorised', 'CA', 'certs', 'serverName', 'checkServerIdentityy', 'constructor', 'toString', ''],
  ])('refuses the unknown name %j from the call itself, and lists the known names', (name) => {
    for (const receiveIn of ['main', 'worker'] as const)
      for (const call of [tradeFeed$, tradeFeedEvents$]) {
        const tls = { ca: cert, [name]: marker } as TlsOptions;
        const input = { baseUrl: 'https://feed.example.com', apiKey: 'k', tls, receiveIn };
        const error = refusalOf(() => call('market', input));
        expect(error.message).toContain(`(\`tls.${name}\` must be left out: the options are ${tlsNames.join(', ')})`);
        expect(everythingOf(error)).not.toContain(marker);
      }
  });

  it('treats __proto__ as a name, not as a prototype', () => {
    const tls = JSON.parse(`{"__proto__":{"host":"${marker}"}}`) as TlsOptions;
    expect(refused('tls', tls).message).toContain('`tls.__proto__` must be left out');
  });

  it.each([
    [{ passphrase: 47_110_815 }, '`tls.passphrase` must be a string)'],
    [{ honorCipherOrder: 'yes' }, '`tls.honorCipherOrder` must be true or false)'],
    [{ allowPartialTrustChain: 1 }, '`tls.allowPartialTrustChain` must be true or false, got 1)'],
    [{ ALPNCallback: marker }, '`tls.ALPNCallback` must be a function)'],
    [{ servername: 5 }, '`tls.servername` must be a host name, got 5)'],
    [{ key: 47_110_815 }, '`tls` must be an object of options for node:tls'],
    [{ pfx: 47_110_815 }, '`tls` must be an object of options for node:tls'],
    [{ ticketKeys: Buffer.from(marker) }, '`tls` must be an object of options for node:tls'],
    [{ sessionTimeout: marker }, '`tls` must be an object of options for node:tls'],
  ])('refuses %p without showing a secret', (tls, message) => {
    const error = refused('tls', tls);
    expect(error.message).toContain(message);
    expect(everythingOf(error)).not.toMatch(new RegExp(`${marker}|47110815`));
  });

  it('accepts undefined for its own names', () => {
    const nothing = Object.fromEntries(tlsNames.map((name) => [name, undefined]));
    expect(resolveOptions({ tls: nothing }).tls).toEqual({});
  });
});

describe('resolveOptions', () => {
  it('refuses an unknown name, and lists the known names', () => {
    expect(refused('apikey', marker).message).toBe(
      `The options are not valid (\`apikey\` must be left out: the options are ${Object.keys(options).join(', ')}). Correct the option that is named here.`,
    );
    expect(everythingOf(refused('apikey', marker))).not.toContain(marker);
  });

  it.each([null, 5, marker, true, () => ({})])('refuses %p, which is not an object', (input) => {
    expect(refusalOf(() => resolveOptions(input as TradeFeedOptions)).message).toContain(
      '`options` must be an object)',
    );
  });

  it('does not change the object of the caller', () => {
    const backoff = Object.freeze({ initialDelayMs: 7 });
    const tls = Object.freeze({ ca: Object.freeze([cert]) as unknown as string[] });
    const input = Object.freeze({ baseUrl: 'https://x.example', apiKey: 'k', backoff, tls, classify: undefined });
    const settings = resolveTicketOptions(input);
    expect(settings.backoff.initialDelayMs).toBe(7);
    expect(input.apiKey).toBe('k');
    expect(backoff).toEqual({ initialDelayMs: 7 });
  });

  it('returns settings that it accepts as options, unchanged', () => {
    process.env['TRADE_FEED_BASE_URL'] = 'https://env.example';
    const once = resolveOptions({
      apiKey: 'k',
      idleTimeoutMs: 0,
      backoff: { jitter: 'none', random: () => 0.5 },
      classify: () => 'stop',
      tls: { ca: cert },
      agent: new HttpsAgent(),
      dispatcher,
    });
    const twice = resolveOptions(once);
    expect(twice).toEqual(once);
    expect(twice.apiKey).toBe(once.apiKey);
    expect(Object.keys(twice).sort()).toEqual(Object.keys(once).sort());
    expect(resolveOptions(resolveOptions())).toEqual(resolveOptions());
  });

  it('wraps the key, so that the settings can be printed', () => {
    const settings = resolveOptions({ apiKey: marker });
    expect(inspect(settings, { showHidden: true, depth: null }) + JSON.stringify(settings)).not.toContain(marker);
    expect((settings.apiKey as Secret).reveal()).toBe(marker);
  });

  it('does not call an apiKey function', () => {
    const apiKey = () => {
      throw new Error('called too early');
    };
    expect(resolveOptions({ apiKey }).apiKey).toBe(apiKey);
  });

  it('needs neither an address nor a key: a ticket contains its own address', () => {
    expect(resolveOptions()).not.toHaveProperty('baseUrl');
    expect(resolveOptions()).not.toHaveProperty('apiKey');
  });
});

describe('the environment', () => {
  it('replaces a missing option', () => {
    process.env['TRADE_FEED_BASE_URL'] = 'https://env.example';
    process.env['TRADE_FEED_API_KEY'] = 'env-key';
    const settings = resolveTicketOptions({ apiKey: undefined });
    expect(settings.baseUrl).toBe('https://env.example');
    expect((settings.apiKey as Secret).reveal()).toBe('env-key');
  });

  it('is ignored if an option is set, even to an invalid value', () => {
    process.env['TRADE_FEED_BASE_URL'] = marker;
    process.env['TRADE_FEED_API_KEY'] = 'a b';
    const settings = resolveTicketOptions({ baseUrl: 'https://x.example', apiKey: 'k' });
    expect(settings.baseUrl).toBe('https://x.example');
    expect((settings.apiKey as Secret).reveal()).toBe('k');
  });

  it('is read at each call, not once', () => {
    process.env['TRADE_FEED_BASE_URL'] = 'https://one.example';
    expect(resolveTicketOptions({ apiKey: 'k' }).baseUrl).toBe('https://one.example');
    process.env['TRADE_FEED_BASE_URL'] = 'https://two.example';
    expect(resolveTicketOptions({ apiKey: 'k' }).baseUrl).toBe('https://two.example');
  });

  it('is not used by openConnection', () => {
    process.env['TRADE_FEED_BASE_URL'] = marker;
    expect(resolveOptions().baseUrl).toBeUndefined();
  });

  it.each([
    ['TRADE_FEED_BASE_URL', `http://${marker}.example`, allowedUrl],
    ['TRADE_FEED_API_KEY', `${marker} ${marker}`, 'a string of visible ASCII characters without spaces'],
  ])('is checked by the same rules: %s', (name, value, allowed) => {
    process.env['TRADE_FEED_BASE_URL'] = 'https://x.example';
    process.env[name] = value;
    const error = refusalOf(() => resolveTicketOptions());
    expect(error.message).toContain(allowed);
    expect(error.message).toContain(`(see ${name})`);
    expect(everythingOf(error)).not.toContain(marker);
  });

  it.each(names)('treats an empty %s as missing', (name) => {
    process.env[name] = '';
    expect(resolveOptions()).toEqual(resolveOptions({}));
    expect(refusalOf(() => resolveTicketOptions()).message).toContain('set, or be in TRADE_FEED_');
  });
});

describe('resolveTicketOptions', () => {
  it.each([
    ['baseUrl', { apiKey: 'k' }, '`baseUrl` must be set, or be in TRADE_FEED_BASE_URL)'],
    ['apiKey', { baseUrl: 'https://x.example' }, '`apiKey` must be set, or be in TRADE_FEED_API_KEY)'],
    ['both', undefined, '`baseUrl` must be set, or be in TRADE_FEED_BASE_URL)'],
  ])('names where a missing value can come from: %s', (_what, input, message) => {
    expect(refusalOf(() => resolveTicketOptions(input)).message).toContain(message);
  });

  it('returns the settings if both are set', () => {
    const input = { baseUrl: 'https://x.example/path', apiKey: () => 'k' };
    expect(resolveTicketOptions(input)).toEqual(resolveOptions(input));
  });
});

describe('invalid options throw from the call itself', () => {
  it.each([
    ['an address that ends in a space', { baseUrl: 'https://feed.example.com ' }],
    ['an address with an empty query', { baseUrl: 'https://feed.example.com?' }],
    ['an address with an empty fragment', { baseUrl: 'https://feed.example.com#' }],
    ['a CA that is not PEM', { tls: { ca: marker } }],
    ['an empty list of CAs', { tls: { ca: [] as string[], servername: 5 as unknown as string } }],
    [
      'a checkServerIdentity that is not a function',
      { tls: { checkServerIdentity: 'x' as unknown as () => undefined } },
    ],
    ['a string for a boolean', { tls: { rejectUnauthorized: 'false' as unknown as boolean } }],
    ['a CA with a broken PEM', { tls: { ca: brokenPem } }],
    ['a frame size beyond 2^31-1, which ws converts to another number', { maxFrameBytes: 2 ** 32 + 16 }],
  ])('for %s', (_what, input) => {
    refusalOf(() => resolveOptions(input));
  });

  it('does not show a key that is a number', () => {
    expect(refused('apiKey', 47_110_815).message).not.toContain('47110815');
  });
});
