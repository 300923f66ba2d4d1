import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { transformFileSync } from '@swc/core';
import fc from 'fast-check';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseHttpDate, retryAfterMs } from '../../src/protocol/retry-after.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';

const at = Date.UTC(1994, 10, 6, 8, 49, 37);

// RFC 9110, 5.6.7: one moment in the three forms.
const forms = {
  'the preferred form': 'Sun, 06 Nov 1994 08:49:37 GMT',
  'the obsolete form of RFC 850': 'Sunday, 06-Nov-94 08:49:37 GMT',
  'the obsolete form of asctime': 'Sun Nov  6 08:49:37 1994',
};

const notADate = [
  '',
  'soon',
  '1994-11-06T08:49:37Z',
  'Sun, 06 Nov 1994 08:49:37',
  'Sun, 06 Nov 1994 08:49:37 +0100',
  'Sun, 06 Nov 1994 08:49:37 CET',
  'Sun, 6 Nov 1994 08:49:37 GMT',
  'sun, 06 nov 1994 08:49:37 gmt',
  'Sun, 06 Xyz 1994 08:49:37 GMT',
  // Each form with a word before or after it, which `Date.parse` ignores.
  ...Object.values(forms).flatMap((form) => [`x${form}`, `${form} (x)`]),
  'Sun, 06 Nov 1994 99:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37 GMT, Mon, 07 Nov 1994 08:49:37 GMT',
  '784111777',
];

const source = fileURLToPath(new URL('../../src/protocol/retry-after.ts', import.meta.url));

// The time zone of a process is fixed at its start, so a separate process loads the file.
const parsedIn = (tz: string, texts: readonly string[]): unknown => {
  const { code } = transformFileSync(source, {
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
  });
  const script = `${code}; console.log(JSON.stringify(${JSON.stringify(texts)}.map(parseHttpDate)));`;
  const env = { ...process.env, TZ: tz };
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' }));
};

describe('parseHttpDate', () => {
  it('parses a day of two digits in the form of asctime', () => {
    expect(parseHttpDate('Wed Nov 16 08:49:37 1994')).toBe(at + 10 * 86_400_000);
  });

  it.each(Object.entries(forms))('parses %s', (_name, text) => {
    expect(parseHttpDate(text)).toBe(at);
    expect(parseHttpDate(`  ${text} `)).toBe(at);
  });

  it.each(['America/New_York', 'Asia/Kolkata'])('parses all forms as GMT on a machine in %s', (tz) => {
    expect(parsedIn(tz, Object.values(forms))).toEqual([at, at, at]);
  });

  it.each(notADate)('returns undefined for %j', (text) => {
    expect(parseHttpDate(text)).toBeUndefined();
  });

  it('returns undefined for a missing header', () => {
    expect(parseHttpDate(undefined)).toBeUndefined();
  });

  it('parses every output of toUTCString with a year of four digits', () => {
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
    // The local clock is wrong by years, and no result may depend on it.
    jest.useFakeTimers({ now: Date.UTC(2040, 0, 1), doNotFake: ['performance'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['0', 0],
    ['1', 1_000],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['007', 7_000],
    ['31536000', 31_536_000_000],
    ['9007199254741', Number.MAX_SAFE_INTEGER],
    ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ])('parses %j as seconds', (value, ms) => {
    expect(retryAfterMs(value, undefined)).toBe(ms);
  });

  it.each(Object.entries(forms))(
    'compares %s with the Date of the response, not with the local clock',
    (_name, value) => {
      expect(retryAfterMs(value, 'Sun, 06 Nov 1994 08:49:30 GMT')).toBe(7_000);
      expect(retryAfterMs(value, 'Sun Nov  6 08:48:37 1994')).toBe(60_000);
    },
  );

  it('ignores the Date if the value is a number of seconds', () => {
    expect(retryAfterMs('5', 'Sun, 06 Nov 1994 08:49:30 GMT')).toBe(5_000);
  });

  it('returns 0 for a date in the past, and for the current time', () => {
    expect(retryAfterMs(forms['the preferred form'], 'Sun, 06 Nov 1994 08:49:38 GMT')).toBe(0);
    expect(retryAfterMs(forms['the preferred form'], 'Sun, 06 Nov 1994 08:49:37 GMT')).toBe(0);
  });

  it.each([undefined, '', 'garbage'])('uses the local clock if the Date is %j', (date) => {
    expect(retryAfterMs('Sun, 01 Jan 2040 00:00:09 GMT', date)).toBe(9_000);
  });

  it.each([
    undefined,
    '-1',
    '+1',
    '1.5',
    '1,5',
    '1e3',
    '0x10',
    '5s',
    '5, 6',
    'Infinity',
    'NaN',
    '٣',
    ...notADate.slice(0, -1),
  ])('returns undefined for %j', (value) => {
    expect(retryAfterMs(value, forms['the preferred form'])).toBeUndefined();
  });

  it('never throws, and is never NaN or negative, for any value', () => {
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
