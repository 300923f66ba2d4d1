import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { transformFileSync } from '@swc/core';
import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { checkFeed, isFeed, isLoopback, parseTimestamp } from '../../src/protocol/contract.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { Feed } from '../../src/protocol/feed.js';
import { parseTicket, redactorOf } from '../../src/protocol/parse-ticket.js';
import { printable } from '../../src/protocol/printable.js';
import { parseHttpDate, retryAfterMs } from '../../src/protocol/retry-after.js';
import type { Ticket } from '../../src/protocol/ticket.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';
import { wire } from './tickets.js';

describe('a feed', () => {
  it.each(['market', 'raw'])('is %s', (feed) => {
    expect([Feed.is(feed), isFeed(feed)]).toEqual([true, true]);
    expect(Feed.decode(feed)).toEqual({ _tag: 'Right', right: feed });
    expect(() => checkFeed(feed)).not.toThrow();
  });

  it.each(['', 'Market', 'raw ', 'toString', '__proto__', 0, null, ['raw'], { market: null }])('is not %j', (value) => {
    expect([Feed.is(value), isFeed(value), Feed.decode(value)._tag]).toEqual([false, false, 'Left']);
    expect(() => checkFeed(value)).toThrow("`feed` must be 'market' or 'raw'");
    expect(() => checkFeed(value)).toThrow(expect.objectContaining({ code: 'invalid-options' }));
  });
});

it.each([
  ...['http://localhost', 'http://LOCALHOST:8080/x', 'ws://127.0.0.1:1/ws', 'ws://127.255.255.254/ws'],
  // The URL parser reads these as 127.0.0.1.
  ...['http://127.1', 'http://0x7f000001', 'http://[::1]:8080', 'http://[0:0:0:0:0:0:0:1]'],
])('isLoopback is true for %s', (url) => {
  expect(isLoopback(new URL(url))).toBe(true);
});

it.each([
  ...['http://localhost.example.com', 'http://notlocalhost', 'http://127.0.0.1.example.com', 'http://example.com'],
  ...['http://x127.0.0.1.nip.io', 'http://128.0.0.1', 'http://0.0.0.0', 'http://10.0.0.1', 'http://[::]'],
  // A user name that looks like an address.
  ...['http://[::2]', 'http://[fe80::1]', 'http://127.0.0.1@example.com', 'http://example.com/?localhost'],
])('isLoopback is false for %s', (url) => {
  expect(isLoopback(new URL(url))).toBe(false);
});

// The ticket tests cover which texts are timestamps.
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

describe('retry after', () => {
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

  const source = fileURLToPath(new URL('../../src/protocol/retry-after.ts', import.meta.url));

  // A process can't change its time zone, so a separate one loads the file.
  const parsedIn = (tz: string, texts: readonly string[]): unknown => {
    const { code } = transformFileSync(source, { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } });
    const script = `${code}; console.log(JSON.stringify(${JSON.stringify(texts)}.map(parseHttpDate)));`;
    const env = { ...process.env, TZ: tz };
    return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' }));
  };

  describe('parseHttpDate', () => {
    it('parses each form, with white space around it and with two-digit days', () => {
      for (const text of Object.values(forms)) expect(parseHttpDate(`  ${text} `)).toBe(at);
      expect(parseHttpDate('Wed Nov 16 08:49:37 1994')).toBe(at + 10 * 86_400_000);
    });

    it.each(['America/New_York', 'Asia/Kolkata'])('parses all forms as GMT on a machine in %s', (tz) => {
      expect(parsedIn(tz, Object.values(forms))).toEqual([at, at, at]);
    });

    it.each([...notADate, '784111777'])('returns undefined for %j', (text) => {
      expect(parseHttpDate(text)).toBeUndefined();
    });

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
      ['120', 120_000],
      [' 7 ', 7_000],
      ['007', 7_000],
      ['9007199254741', Number.MAX_SAFE_INTEGER],
      ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
    ])('parses %j as seconds', (value, ms) => {
      expect(retryAfterMs(value, undefined)).toBe(ms);
    });

    it.each(Object.entries(forms))("compares %s with the response's Date, not with the local clock", (_, value) => {
      const dates = ['Sun, 06 Nov 1994 08:49:30 GMT', 'Sun Nov  6 08:48:37 1994', 'Sun, 06 Nov 1994 08:49:38 GMT'];
      expect([...dates, value].map((date) => retryAfterMs(value, date))).toEqual([7_000, 60_000, 0, 0]);
    });

    it.each([undefined, '', 'garbage'])('uses the local clock if the Date is %j', (date) => {
      expect(retryAfterMs('Sun, 01 Jan 2040 00:00:09 GMT', date)).toBe(9_000);
    });

    const noNumber = ['-1', '+1', '1.5', '1,5', '1e3', '0x10', '5s', '5, 6', 'Infinity', 'NaN', '٣'];
    it.each([undefined, ...noNumber, ...notADate])('returns undefined for %j', (value) => {
      expect(retryAfterMs(value, forms['the preferred form'])).toBeUndefined();
    });

    it('never throws or returns NaN or a negative number, whatever the value', () => {
      const dates = fc.date({ noInvalidDate: true }).map((date) => date.toUTCString());
      const header = fc.oneof(
        fc.string(),
        fc.string({ unit: character }),
        fc.integer().map(String),
        fc.double().map(String),
        dates,
        fc.constantFrom(...Object.values(forms), ...notADate),
        fc.constant(undefined),
      );
      fc.assert(
        fc.property(header, header, (value, date) => {
          const ms = retryAfterMs(value, date);
          expect(ms === undefined || ms >= 0).toBe(true);
        }),
        { numRuns: cases(500) },
      );
    });
  });
});

describe('printable', () => {
  it.each([
    ['plain text, € and 漢 and 🙂', 'plain text, € and 漢 and 🙂'],
    ['a\r\nb\tc\u0000', 'a␍␊b␉c␀'],
    ['\u001b[31mred\u007f', '␛[31mred␡'],
    ['\u001f !~', '␟ !~'],
    ['a\u0085b\u009bc\u2028d\u202ee\u2066f', 'a�b�c�d�e�f'],
    ['\u061c\u200e\u200f\u2029\u202a\u2069', '�'.repeat(6)],
  ])('replaces characters that control a terminal: %j', (text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it('puts a reason and a detail into one line of a message, without white space around them', () => {
    const error = createTradeFeedError({ stage: 'stream', closeCode: 4999, reason: ' a\nb ', detail: '\tc\r\nd\n' });
    expect(error.message).toContain('"a␊b", c␍␊d)');
    expect(error.reason).toBe(' a\nb ');
  });
});

describe('redactorOf', () => {
  it('hides the ticket, or whatever its redactor hides', () => {
    const ticket = parseTicket(JSON.stringify(wire)) as Ticket;
    expect(redactorOf(ticket)(`a ${wire.ticket} b`)).toBe('a [secret] b');
    const redact = (text: string) => `${text}, looked through`;
    expect(redactorOf({ ...ticket, redact })).toBe(redact);
  });
});
