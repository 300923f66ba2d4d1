/** @lane processes */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { transformFileSync } from '@swc/core';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { PathReporter } from 'io-ts/lib/PathReporter.js';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { format, inspect } from 'node:util';
import { serialize } from 'node:v8';
import { checkFeed, isFeed, isLoopback, parseTimestamp } from '../../src/protocol/contract.js';
import { Feed } from '../../src/protocol/feed.js';
import { parseTicket, wrongFields } from '../../src/transport/parse-ticket.js';
import { printable } from '../../src/protocol/printable.js';
import { parseHttpDate, retryAfterMs } from '../../src/transport/retry-after.js';
import { isCredential, redactor, Secret } from '../../src/protocol/secret.js';
import { Ticket } from '../../src/protocol/ticket.js';
import { checkRequired, clampMs, durationMs, MAX_TIMER_MS, oneOf, validated } from '../../src/protocol/validate.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';
import { rightTicketFields as good, ticketBody as wire, wrongTicketFields as bad } from '../support/ticket-fields.js';

const fields = Object.keys(wire) as (keyof typeof wire)[];

/** Returns which fields the codec's errors name as invalid; `body` if the value isn't an object. */
const namesOf = (body: unknown): readonly string[] => {
  const result = Ticket.decode(body);
  return E.isLeft(result) ? [...new Set(result.left.map(({ context }) => context[1]?.key || 'body'))] : [];
};

it.each(['market', 'raw', '', 'Market', 'raw ', 'toString', '__proto__', 0, null, ['raw'], { market: null }])(
  'only market and raw are feeds: %j',
  (value) => {
    const isOne = value === 'market' || value === 'raw';
    expect([Feed.is(value), isFeed(value), Feed.decode(value)._tag]).toEqual([isOne, isOne, isOne ? 'Right' : 'Left']);
    const check = expect(() => checkFeed(value));
    if (isOne) check.not.toThrow();
    else check.toThrow(expect.objectContaining({ code: 'invalid-options', option: 'feed' }));
  },
);

it('isLoopback is true only for this machine', () => {
  const here = [
    ...['http://localhost', 'http://LOCALHOST:8080/x', 'ws://127.0.0.1:1/ws', 'ws://127.255.255.254/ws'],
    // The URL parser reads these as 127.0.0.1.
    ...['http://127.1', 'http://0x7f000001', 'http://[::1]:8080', 'http://[0:0:0:0:0:0:0:1]'],
  ];
  const elsewhere = [
    ...['http://localhost.example.com', 'http://notlocalhost', 'http://127.0.0.1.example.com', 'http://example.com'],
    ...['http://x127.0.0.1.nip.io', 'http://128.0.0.1', 'http://0.0.0.0', 'http://10.0.0.1', 'http://[::]'],
    // A user name that looks like an address.
    ...['http://[::2]', 'http://[fe80::1]', 'http://127.0.0.1@example.com', 'http://example.com/?localhost'],
  ];
  expect([...here, ...elsewhere].filter((url) => isLoopback(new URL(url)))).toEqual(here);
});

// The tests of tickets cover which texts are timestamps.
it.each([
  ['1970-01-01T00:00:01.5Z', 1_500],
  ['1970-01-01t01:00:00+01:00', 0],
  ['1969-12-31T23:00:00-01:00', 0],
  // A leap second counts as the one before it, so a ticket expires at most one second early.
  ['2016-12-31T23:59:60Z', Date.UTC(2016, 11, 31, 23, 59, 59)],
  ['2016-12-31T23:59:60.25Z', Date.UTC(2016, 11, 31, 23, 59, 59, 250)],
  ['2017-01-01T00:59:60+01:00', Date.UTC(2016, 11, 31, 23, 59, 59)],
  ['x1970-01-01T00:00:00Z', NaN],
  ['1970-01-01T00:00:00ZZ', NaN],
])('parseTimestamp parses %s', (text, ms) => {
  expect(parseTimestamp(text)).toBe(ms);
});

const at = Date.UTC(1994, 10, 6, 8, 49, 37);

// RFC 9110, 5.6.7: the same moment in all three forms.
const forms = {
  'the preferred form': 'Sun, 06 Nov 1994 08:49:37 GMT',
  'the obsolete form of RFC 850': 'Sunday, 06-Nov-94 08:49:37 GMT',
  'the obsolete form of asctime': 'Sun Nov  6 08:49:37 1994',
};

const notADate = [
  ...['', 'soon', '1994-11-06T08:49:37Z', 'Sun, 06 Nov 1994 08:49:37', 'Sun, 06 Nov 1994 08:49:37 +0100'],
  ...['Sun, 06 Nov 1994 08:49:37 CET', 'Sun, 6 Nov 1994 08:49:37 GMT', 'sun, 06 nov 1994 08:49:37 gmt'],
  ...['Sun, 06 Xyz 1994 08:49:37 GMT', 'Sun, 06 Nov 1994 99:49:37 GMT'],
  // `Date.parse` ignores a word before or after a date.
  ...Object.values(forms).flatMap((form) => [`x${form}`, `${form} (x)`]),
  'Sun, 06 Nov 1994 08:49:37 GMT, Mon, 07 Nov 1994 08:49:37 GMT',
];

describe('parseHttpDate', () => {
  it('parses each form, with white space around it and with two-digit days', () => {
    for (const text of Object.values(forms)) expect(parseHttpDate(`  ${text} `)).toBe(at);
    expect(parseHttpDate('Wed Nov 16 08:49:37 1994')).toBe(at + 10 * 86_400_000);
  });

  it('parses all forms as GMT on a machine in India', () => {
    // A process can't change its time zone, so a separate one loads the file.
    const source = fileURLToPath(new URL('../../src/transport/retry-after.ts', import.meta.url));
    const { code } = transformFileSync(source, { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } });
    const script = `${code}; console.log(JSON.stringify(${JSON.stringify(Object.values(forms))}.map(parseHttpDate)));`;
    const options = { env: { ...process.env, TZ: 'Asia/Kolkata' }, encoding: 'utf8' } as const;
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], options);
    expect(JSON.parse(printed)).toEqual([at, at, at]);
  }, 60_000);

  it('parses whatever toUTCString returns for a four-digit year', () => {
    const seconds = fc.integer({ min: Date.UTC(1970, 0, 1) / 1000, max: Date.UTC(9999, 11, 31) / 1000 });
    fc.assert(
      fc.property(seconds, (s) => {
        expect(parseHttpDate(new Date(s * 1000).toUTCString())).toBe(s * 1000);
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('retryAfterMs', () => {
  beforeEach(() => {
    // The local clock is off by years, and no result may depend on it.
    jest.useFakeTimers({ now: Date.UTC(2040, 0, 1), doNotFake: ['performance'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['0', 0],
    [' 7 ', 7_000],
    ['007', 7_000],
    ['2.5', 3_000],
    ['0.001', 1_000],
    ['2.0', 2_000],
    ['.5', 1_000],
    ['9007199254741', Number.MAX_SAFE_INTEGER],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ])('parses %j as seconds', (value, ms) => {
    expect(retryAfterMs(value, undefined)).toBe(ms);
  });

  it.each(Object.entries(forms))("compares %s with the response's Date, not with the local clock", (_, value) => {
    const dates = ['Sun, 06 Nov 1994 08:49:30 GMT', 'Sun Nov  6 08:48:37 1994', 'Sun, 06 Nov 1994 08:49:38 GMT'];
    expect([...dates, value].map((date) => retryAfterMs(value, date))).toEqual([7_000, 60_000, 0, 0]);
  });

  it.each([undefined, 'garbage'])('uses the local clock if the Date is %j', (date) => {
    expect(retryAfterMs('Sun, 01 Jan 2040 00:00:09 GMT', date)).toBe(9_000);
  });

  // The fuzz tests send all kinds of values over the wire.
  it('returns undefined for neither a date nor a number', () => {
    const noNumber = ['-1', '+1', '.', '1.5.', '1,5', '-2.5', '1e3', '0x10', '5s', '5, 6', 'Infinity', 'NaN', '٣'];
    const valid = [undefined, ...noNumber, ...notADate].filter((value) => retryAfterMs(value, undefined) !== undefined);
    expect(valid).toEqual([]);
  });
});

it.each([
  ['plain text, € and 漢 and 🙂', 'plain text, € and 漢 and 🙂'],
  ['a\r\nb\tc\u0000', 'a␍␊b␉c␀'],
  ['\u001b[31mred\u007f', '␛[31mred␡'],
  ['\u001f !~', '␟ !~'],
  ['a\u0085b\u009bc\u2028d\u202ee\u2066f', 'a�b�c�d�e�f'],
  ['\u061c\u200e\u200f\u2029\u202a\u2069', '�'.repeat(6)],
])('printable replaces characters that control a terminal: %j', (text, shown) => {
  expect(printable(text)).toBe(shown);
});

const decoded = (body: unknown): Ticket => {
  const result = Ticket.decode(body);
  if (E.isLeft(result)) throw new Error(`refused: ${namesOf(body).join()}`);
  return result.right;
};

describe('Ticket', () => {
  it('decodes the body of the contract and wraps its secret', () => {
    const { ticket, ...rest } = decoded(wire);
    expect(ticket).toBeInstanceOf(Secret);
    expect(ticket.reveal()).toBe('tkt-planted-0815');
    expect({ ticket: wire.ticket, ...rest }).toEqual(wire);
  });

  it.each(fields)('has only valid values of the field %s, for the codec and for the parser', (field) => {
    for (const value of good[field]) {
      const body = { ...wire, [field]: value };
      expect(Ticket.encode(decoded(body))).toEqual(body);
      expect(wrongFields(body)).toEqual([]);
    }
    for (const value of bad[field]) {
      const body = { ...wire, [field]: value };
      expect([value, namesOf(body), wrongFields(body)]).toEqual([value, [field], [field]]);
    }
  });

  it('recognizes a ticket with a wrapped secret, and nothing else', () => {
    expect(Ticket.is(decoded(wire))).toBe(true);
    expect(Ticket.is({ ...decoded(wire), deadlineMs: 5 })).toBe(true);
    expect(Ticket.is(wire)).toBe(false);
    for (const wrong of [{ wss_url: 'http://x' }, { expires_at: 5 }, { subprotocol: 5 }])
      expect(Ticket.is({ ...decoded(wire), ...wrong })).toBe(false);
    expect(Ticket.is(null)).toBe(false);
  });

  it('keeps an invalid ticket out of the reports of io-ts', () => {
    const reported = (ticket: string) => PathReporter.report(Ticket.decode({ ...wire, ticket }));
    expect(reported('tkt planted')).toEqual(["the ticket isn't valid"]);
    expect(reported('t'.repeat(40_000))).toEqual(["the ticket isn't valid, got 40000 characters (at most 16384)"]);
  });
});

describe('parseTicket', () => {
  it("ignores a byte order mark before the JSON, and reports what isn't JSON", () => {
    const json = JSON.stringify(wire);
    expect(parseTicket(`\uFEFF${json}`)).toMatchObject({ feed: 'market' });
    for (const body of ['', '{', 'tkt-planted-0815', `${json}x`, `\uFEFF\uFEFF${json}`])
      expect([body, parseTicket(body)]).toEqual([body, "the body isn't JSON"]);
  });

  const tooLong = { ...wire, ticket: 'tkt-planted-0815'.repeat(2_500), feed: 'x' };
  it.each([
    ...[null, 'text', 5, true, [], [wire]].map((body) => [body, 'body'] as const),
    [{}, fields.join(', ')],
    [{ ...wire, feed: 'tkt-planted-0815' }, 'feed'],
    [tooLong, 'ticket, got 40000 characters (at most 16384), feed'],
  ] as const)('names the wrong part of %.80j, and never quotes it', (body, names) => {
    expect(parseTicket(JSON.stringify(body))).toBe(`wrong or missing: ${names}`);
  });

  it('agrees with the codec on any JSON value and on any values of the fields, and never quotes the body', () => {
    const valueOf = (field: (typeof fields)[number]) =>
      fc.oneof(fc.constantFrom(...good[field], ...bad[field]), fc.jsonValue());
    const anyBody = fc.record(Object.fromEntries(fields.map((field) => [field, valueOf(field)])), { requiredKeys: [] });
    const marker = 'PLANTED-4711';
    fc.assert(
      fc.property(fc.oneof(anyBody, fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()), (value, extra) => {
        const isObject = typeof value === 'object' && !Array.isArray(value);
        const text = JSON.stringify(isObject ? { ...extra, ...value } : value);
        const json: unknown = JSON.parse(text);
        expect(wrongFields(json)).toEqual(namesOf(json));
        const parsed = parseTicket(text);
        // Comparing tickets wouldn't look at their secrets, so encode both.
        if (typeof parsed !== 'string') expect(Ticket.encode(parsed)).toEqual(Ticket.encode(decoded(json)));
        else expect(Ticket.decode(json)._tag).toBe('Left');
        for (const body of [marker + text, JSON.stringify({ ...wire, feed: marker, x: json })])
          expect(parseTicket(body)).toMatch(/^(the body isn't JSON|wrong or missing: [a-z_]+(, [a-z_]+)*)$/);
      }),
      { numRuns: cases(500) },
    );
  });
});

const marker = 'sk-planted-4711';
const secret = new Secret(marker);

describe('Secret', () => {
  it.each<[string, (secret: Secret) => string]>([
    ['String()', (s) => String(s)],
    // eslint-disable-next-line @typescript-eslint/restrict-template-expressions -- like a careless log line
    ['a template', (s) => `${s}`],
    ['util.format', (s) => format('%s', s)],
    ['util.inspect with hidden properties', (s) => inspect(s, { showHidden: true, depth: null, getters: true })],
    ['JSON', (s) => JSON.stringify({ deep: [s] }).slice('{"deep":["'.length, -'"]}'.length)],
  ])('is printed as [secret] by %s', (_how, print) => {
    expect(print(secret)).toBe('[secret]');
  });

  it.each<[string, (secret: Secret) => unknown]>([
    ['all of its own properties', (s) => Reflect.ownKeys(s).map((key) => Reflect.get(s, key) as unknown)],
    ['a copy', (s) => [{ ...s }, Object.entries(s)]],
    ['a structured clone', (s) => structuredClone(s)],
    ['a serialization by v8', (s) => serialize(s).toString('latin1')],
    ['util.inspect without its own method', (s) => inspect(s, { customInspect: false, showHidden: true, depth: null })],
  ])('is not in %s', (_what, list) => {
    expect(inspect(list(secret), { customInspect: false, showHidden: true, depth: null })).not.toContain(marker);
  });

  it.each(['', ' ', 'a b', 'a\r\nb', 'ключ', 7 as unknown as string])(
    "can't contain what isn't valid in a header: %j",
    (value) => {
      expect(() => new Secret(value)).toThrow(new TypeError('A secret must be one or more visible ASCII characters.'));
    },
  );

  it("can't exceed 16 KiB, and the error shows only how long the value is", () => {
    expect(new Secret(marker.repeat(1_000)).reveal()).toHaveLength(15_000);
    expect(() => new Secret('x'.repeat(16_385))).toThrow(
      new TypeError('A secret must be one or more visible ASCII characters, got 16385 characters (at most 16384).'),
    );
  });
});

describe('redactor', () => {
  it.each<[string, readonly unknown[], string, string]>([
    [
      'hides every occurrence of every secret, and no other text',
      [secret, new Secret('tkt')],
      `a ${marker} b tkt c ${marker}`,
      'a [secret] b [secret] c [secret]',
    ],
    [
      'hides all of a secret that begins with another',
      [new Secret('key-1'), new Secret('key-1.ticket')],
      'key-1.ticket, key-1',
      '[secret], [secret]',
    ],
    [
      'ignores case, because errors write host names in lower case',
      [new Secret('Tkt+1')],
      'ENOTFOUND tkt+1.invalid',
      'ENOTFOUND [secret].invalid',
    ],
    ["ignores what isn't a Secret, such as a key function", [undefined, () => 'key', 'text'], 'key text', 'key text'],
    ['keeps characters that change length in lower case', [secret], `İİİ ${marker} İ`, 'İİİ [secret] İ'],
    [
      'hides several secrets of the longest possible length',
      [new Secret('k*'.repeat(8_192)), new Secret('(t'.repeat(8_192))],
      `a ${'k*'.repeat(8_192)} b ${'(T'.repeat(8_192)} c`,
      'a [secret] b [secret] c',
    ],
  ])('%s', (_title, secrets, text, hidden) => {
    expect(redactor(...secrets)(text)).toBe(hidden);
  });

  it('leaves no secret in any text', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.stringMatching(/^[!-Z^-~]{8,}$/), (before, after, value) => {
        const hidden = redactor(new Secret(value))(before + value + after);
        expect(hidden).not.toContain(value);
        expect(hidden).toContain('[secret]');
      }),
      { numRuns: cases(100) },
    );
  });
});

it('isCredential accepts nothing that could end a header line', () => {
  fc.assert(
    fc.property(fc.string({ unit: character }), (text) => {
      const visible = [...text].every((char) => char > ' ' && char < '\u007f');
      expect(isCredential(text)).toBe(text !== '' && visible);
    }),
    { numRuns: cases(100) },
  );
});

it('clampMs returns a valid delay unchanged, and shortens any other to the longest that timers accept', () => {
  expect([0, 1, MAX_TIMER_MS, MAX_TIMER_MS + 1, 1e300, Infinity].map(clampMs)).toEqual([
    ...[0, 1, 2_147_483_647, 2_147_483_647, 2_147_483_647, 2_147_483_647],
  ]);
});

// The tests of the options cover the messages about each of them.
describe('options', () => {
  const rules = { wait: durationMs, word: oneOf('a') };
  const check = (options: unknown, prefix?: string) =>
    validated<{ wait?: number | undefined; word?: string | undefined }>(options as object, rules, prefix);
  const invalid = (message: string) =>
    expect.objectContaining({ code: 'invalid-options', message: containing(message) });
  const containing = (message: string) => expect.stringContaining(message) as unknown;

  it.each([null, undefined, 5, 'text', true, () => 1])('must be an object, not %p', (value) => {
    expect(() => check(value)).toThrow(invalid('`options` must be an object.'));
    expect(() => check(value, 'backoff.')).toThrow(invalid('`backoff` must be an object.'));
  });

  it.each<[object, string]>([
    [{ word: 'a' }, '`wait` must be a number of ms, 0 or more.'],
    [{ wait: -1, word: 'b' }, '`wait` must be a number of ms, 0 or more, got -1.'],
    [{ wait: 1, word: 'b' }, "`word` must be 'a', got 'b'."],
  ])('that are required are all checked: %j', (values, message) => {
    expect(() => checkRequired(values, rules)).toThrow(invalid(message));
  });
});
