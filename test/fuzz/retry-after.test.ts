import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { goodTicket, httpAnswer, type Script } from './answers.js';
import { type Scripted, startScripted } from './scripted.js';

/** A value of the header, and the wait in ms; `undefined` if the value is not valid. */
interface Asked {
  readonly value: string;
  readonly date?: string;
  readonly ms: number | undefined;
}

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];

/** The three forms of a date in HTTP (RFC 9110, 5.6.7). */
const forms: readonly ((at: Date) => string)[] = [
  (at) => at.toUTCString(),
  (at) => {
    const [, day, month, year, time] = /, (\d+) (\w+) \d\d(\d\d) (\S+) GMT/.exec(at.toUTCString()) ?? [];
    return `${days[at.getUTCDay()]}, ${day}-${month}-${year} ${time} GMT`;
  },
  (at) => {
    const [, weekday, day = '', month, year, time] = /(\w+), (\d+) (\w+) (\d+) (\S+) GMT/.exec(at.toUTCString()) ?? [];
    return `${weekday} ${month} ${day.replace(/^0/, ' ')} ${time} ${year}`;
  },
];

// A year of two digits is within fifty years, so these dates exist in every form.
const seconds = fc.integer({ min: Date.UTC(2001) / 1000, max: Date.UTC(2049) / 1000 });
const form = fc.constantFrom(...forms);

const dates: Arbitrary<Asked> = fc.tuple(seconds, seconds, form, form).map(([at, now, write, writeNow]) => ({
  value: write(new Date(at * 1000)),
  date: writeNow(new Date(now * 1000)),
  ms: Math.max(0, at - now) * 1000,
}));

const numbers: Arbitrary<Asked> = fc
  .oneof(fc.nat(), fc.nat(10), fc.maxSafeNat(), fc.bigInt({ min: 0n, max: 10n ** 400n }))
  .map((n) => ({ value: String(n), ms: Math.min(Number(n) * 1000, Number.MAX_SAFE_INTEGER) }));

const isNumber = (text: string): boolean => /^\s*\d+\s*$/.test(text);
const nonsense: Arbitrary<Asked> = fc
  .oneof(
    fc.integer({ max: -1 }).map(String),
    fc.double().map(String),
    fc.constantFrom('', '-0', '+1', '1e9', '0x10', '1.5', 'Infinity', 'NaN', '5, 6', '5s', 'soon', '\x80\xff', '٣'),
    seconds.map((at) => new Date(at * 1000).toISOString()),
    seconds.map((at) => new Date(at * 1000).toUTCString().replace('GMT', '+0100')),
    fc.string({ maxLength: 60 }),
  )
  .filter((text) => !isNumber(text))
  .map((value) => ({ value, ms: undefined }));

const endpoints = fc.constantFrom(
  { stage: 'ticket', status: '429 Too Many Requests' },
  { stage: 'ticket', status: '503 Service Unavailable' },
  { stage: 'ticket', status: '500 Internal Server Error' },
  { stage: 'handshake', status: '503 Service Unavailable' },
  { stage: 'handshake', status: '401 Unauthorized' },
);

const scriptOf = ({ stage, status }: { stage: string; status: string }, { value, date }: Asked): Script => {
  const headers = [`Retry-After: ${value}`, ...(date === undefined ? [] : [`Date: ${date}`])];
  const refusal = { bytes: () => [httpAnswer(status, Buffer.alloc(0), headers)], end: 'end' } as const;
  return stage === 'ticket' ? { ticket: refusal, handshake: refusal } : { ticket: goodTicket, handshake: refusal };
};

describe(`Retry-After, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => void (scripted = await startScripted()));
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  it(
    'is a valid delay of a timer and a floor, or counts as missing',
    () =>
      fuzz('Retry-After', fc.tuple(endpoints, fc.oneof(dates, numbers, nonsense)), 96, async ([endpoint, asked]) => {
        const { code, failure, delayMs = 0 } = await scripted.run(scriptOf(endpoint, asked));
        expect(failure.status).toBe(Number.parseInt(endpoint.status));
        expect(failure.retryAfterMs).toBe(asked.ms);
        // Without a floor the longest wait of the policy applies.
        if (asked.ms === undefined) expect(delayMs).toBeLessThanOrEqual(5);
        return asked.ms === undefined ? `${code}, as if missing` : code;
      }),
    timeoutFor(250),
  );
});
