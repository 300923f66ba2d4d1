import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { inspect } from 'node:util';
import { Secret } from '../../src/protocol/secret.js';
import {
  invalidFields,
  parseTicket,
  parseTimestamp,
  redactorOf,
  Ticket,
  type WireTicket,
} from '../../src/protocol/ticket.js';
import { cases } from '../support/cases.js';

const wire: WireTicket = {
  ticket: 'tkt-planted-0815',
  token_type: 'Bearer',
  expires_at: '2026-11-20T12:00:00Z',
  wss_url: 'wss://stream.example.com/ws',
  feed: 'market',
  subprotocol: 'mmp.trade-batch.v1',
};
const fields = Object.keys(wire) as (keyof WireTicket)[];

const decoded = (body: unknown): Ticket => {
  const result = Ticket.decode(body);
  if (E.isLeft(result)) throw new Error(`refused: ${invalidFields(result).join()}`);
  return result.right;
};

// Everything that is said of a refusal: names, and whatever a log could make of the result without its values.
const namesOf = (body: unknown): readonly string[] => invalidFields(Ticket.decode(body));

const good: Readonly<Record<keyof WireTicket, readonly string[]>> = {
  ticket: ['t', '~!"#$%&', 'eyJhbGciOi.J9.x-_', 'x'.repeat(8_192)],
  token_type: ['Bearer'],
  expires_at: [
    '2026-11-20T12:00:00Z',
    '2026-11-20t12:00:00z',
    '2026-11-20T12:00:00.123456789Z',
    '2026-11-20T12:00:00+00:00',
    '2026-11-20T12:00:00-07:30',
    '2016-12-31T23:59:60Z',
    '2024-02-29T00:00:00Z',
  ],
  wss_url: [
    'wss://stream.example.com/ws',
    'wss://stream.example.com:8443/a/b?c=d',
    'wss://192.0.2.7/ws',
    'ws://localhost:9000/ws',
    'ws://127.0.0.1/ws',
    'ws://[::1]:1/ws',
  ],
  feed: ['market', 'raw'],
  subprotocol: ['mmp.trade-batch.v1', 'a', "!#$%&'*+-.^_`|~09AZaz"],
};

const bad: Readonly<Record<keyof WireTicket, readonly unknown[]>> = {
  ticket: [undefined, null, '', ' ', 'a b', 'a\r\nx-api-key: b', 'é', 5, true, {}, ['t'], { reveal: 't' }],
  token_type: [undefined, null, '', 'bearer', 'BEARER', 'Basic', ' Bearer', 1, ['Bearer']],
  expires_at: [
    undefined,
    null,
    '',
    'soon',
    1_795_176_000,
    '1795176000',
    '2026-11-20',
    '2026-11-20 12:00:00Z',
    '2026-11-20T12:00:00',
    '2026-11-20T12:00Z',
    '2026-11-20T12:00:00z ',
    '2026-13-20T12:00:00Z',
    '2026-11-20T25:00:00Z',
    '2026-11-20T12:61:00Z',
    '2026-11-20T12:00:61Z',
    '2026-11-20T12:00:00+25:00',
    '+002026-11-20T12:00:00Z',
    'Fri, 20 Nov 2026 12:00:00 GMT',
    {},
    ['2026-11-20T12:00:00Z'],
  ],
  wss_url: [
    undefined,
    null,
    '',
    '/ws',
    'stream.example.com/ws',
    'https://stream.example.com/ws',
    'http://localhost/ws',
    'ws://stream.example.com/ws',
    'ws://127.0.0.1.example.com/ws',
    'ws+unix:///tmp/socket',
    'wss://',
    'wss://user@stream.example.com/ws',
    'wss://:password@stream.example.com/ws',
    'wss://stream.example.com/ws#fragment',
    'javascript:alert(1)',
    7,
    {},
    ['wss://stream.example.com/ws'],
  ],
  feed: [undefined, null, '', 'Market', 'toString', 'market,raw', 1, {}, ['market']],
  subprotocol: [undefined, null, '', 'a b', 'a,b', 'a\r\nb: c', 'é', '"a"', 'a/b', 'a;b', 'a=b', 3, {}, ['a']],
};

describe('Ticket', () => {
  it('decodes the body of the contract and wraps its secret', () => {
    const { ticket, ...rest } = decoded(wire);
    expect(ticket).toBeInstanceOf(Secret);
    expect(ticket.reveal()).toBe('tkt-planted-0815');
    expect({ ticket: wire.ticket, ...rest }).toEqual(wire);
  });

  describe.each(fields)('%s', (field) => {
    it.each(good[field])('may be %j', (value) => {
      expect(Ticket.encode(decoded({ ...wire, [field]: value }))).toEqual({ ...wire, [field]: value });
    });

    it.each(bad[field])('must not be %j', (value) => {
      expect(namesOf({ ...wire, [field]: value })).toEqual([field]);
    });

    it('is required', () => {
      const { [field]: _left, ...others } = wire;
      expect(namesOf(others)).toEqual([field]);
    });
  });

  it('drops unknown fields, also `deadlineMs`', () => {
    const ticket = decoded({ ...wire, deadlineMs: 1e12, extra: 'x', __proto__: { y: 1 }, constructor: 'z' });
    expect(Object.keys(ticket).sort()).toEqual([...fields].sort());
    expect(ticket.deadlineMs).toBeUndefined();
  });

  it('encodes only the fields of the wire', () => {
    expect(Ticket.encode({ ...decoded(wire), deadlineMs: 5 })).toEqual(wire);
  });

  it('accepts a ticket with a wrapped secret, and no other value', () => {
    expect(Ticket.is(decoded(wire))).toBe(true);
    expect(Ticket.is({ ...decoded(wire), deadlineMs: 5 })).toBe(true);
    expect(Ticket.is(wire)).toBe(false);
    expect(Ticket.is({ ...decoded(wire), wss_url: 'http://x' })).toBe(false);
    expect(Ticket.is({ ...decoded(wire), expires_at: 5 })).toBe(false);
    expect(Ticket.is({ ...decoded(wire), subprotocol: 5 })).toBe(false);
    expect(Ticket.is(null)).toBe(false);
  });

  it('has a name, and so has each of its types, for reports of a wrong body', () => {
    const wrong = Ticket.decode({ ...wire, ticket: '', expires_at: '', wss_url: '', feed: '', subprotocol: '' });
    const reported = E.isLeft(wrong) ? wrong.left.map(({ context }) => context.map(({ type }) => type.name)) : [];
    expect(reported.map((names) => names.at(-1))).toEqual(['Secret', 'Timestamp', 'WssUrl', 'Feed', 'Subprotocol']);
    expect(reported.map((names) => names[0])).toEqual(Array(5).fill('Ticket'));
  });

  it('is printed without its secret', () => {
    const shown = inspect(decoded(wire), { showHidden: true, depth: null }) + JSON.stringify(decoded(wire));
    expect(shown).not.toContain(wire.ticket);
    expect(shown).toContain('[secret]');
  });

  it('encodes any decoded ticket to the same fields', () => {
    const anyGood = fc.record(
      Object.fromEntries(fields.map((field) => [field, fc.constantFrom(...good[field])])) as {
        [F in keyof WireTicket]: fc.Arbitrary<string>;
      },
    );
    fc.assert(
      fc.property(anyGood, fc.dictionary(fc.string(), fc.jsonValue()), (body, extra) => {
        expect(Ticket.encode(decoded({ ...extra, ...body }))).toEqual(body);
      }),
      { numRuns: cases(100) },
    );
  });

  it('never throws for a JSON value, and accepts only tickets', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        expect(Ticket.decode(body)._tag).toBe('Left');
        expect(Ticket.is(body)).toBe(false);
      }),
      { numRuns: cases(100) },
    );
  });

  it('never throws for a value in any field', () => {
    fc.assert(
      fc.property(fc.constantFrom(...fields), fc.anything(), (field, value) => {
        expect(['Left', 'Right']).toContain(Ticket.decode({ ...wire, [field]: value })._tag);
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('invalidFields', () => {
  it('returns no name for a valid ticket', () => {
    expect(namesOf(wire)).toEqual([]);
  });

  it('names every wrong field once, in order', () => {
    expect(namesOf({})).toEqual(fields);
    expect(namesOf({ ...wire, feed: 'x', ticket: '' })).toEqual(['ticket', 'feed']);
  });

  it.each([null, undefined, 'text', 5, true, [], [wire]])('returns `body` for %j, which is not an object', (body) => {
    const names = namesOf(body);
    expect(Array.isArray(body) ? [['body'], fields] : [['body']]).toContainEqual(names);
  });

  it('never shows a value of any field', () => {
    const marker = 'PLANTED-4711';
    const planted = fc.constantFrom<(text: string) => unknown>(
      (text) => text,
      (text) => ` ${text}\n`,
      (text) => [text],
      (text) => ({ [text]: text }),
      (text) => ({ key: text, name: text, message: text, toString: () => text }),
    );
    fc.assert(
      fc.property(fc.subarray(fields, { minLength: 1 }), planted, (wrong, plant) => {
        const body = { ...wire, ...Object.fromEntries(wrong.map((field) => [field, plant(marker)])), [marker]: 1 };
        const names = namesOf(body);
        expect(names.join()).not.toContain(marker);
        expect(fields).toEqual(expect.arrayContaining([...names]));
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('redactorOf', () => {
  it('hides the ticket, or the secrets of its redactor', () => {
    const ticket = decoded(wire);
    expect(redactorOf(ticket)(`a ${wire.ticket} b`)).toBe('a [secret] b');
    const redact = (text: string) => `${text}, looked through`;
    expect(redactorOf({ ...ticket, redact })).toBe(redact);
  });
});

describe('parseTicket', () => {
  it('returns the ticket of a valid body', () => {
    expect(parseTicket(JSON.stringify(wire))).toEqual(decoded(wire));
    expect(parseTicket(` ${JSON.stringify({ ...wire, extra: 1 })}\n`)).toEqual(decoded(wire));
  });

  it.each(['', ' ', '{', 'tkt-planted-0815', '<html>', `${JSON.stringify(wire)}x`, "{'ticket':'t'}"])(
    'reports that %j is not JSON',
    (body) => {
      expect(parseTicket(body)).toBe('the body is not JSON');
    },
  );

  it.each([
    ['null', 'wrong or missing: body'],
    ['"text"', 'wrong or missing: body'],
    ['{}', `wrong or missing: ${fields.join(', ')}`],
    [JSON.stringify({ ...wire, feed: 'tkt-planted-0815' }), 'wrong or missing: feed'],
  ])('names the wrong part of %s', (body, words) => {
    expect(parseTicket(body)).toBe(words);
  });

  it('never throws and never quotes the body, for any body', () => {
    const marker = 'PLANTED-4711';
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.jsonValue(), (before, after, value) => {
        const planted = JSON.stringify({ ...wire, feed: marker, x: value });
        for (const body of [before + marker + after, JSON.stringify(value), planted]) {
          const words = parseTicket(body);
          expect(words).toMatch(/^(the body is not JSON|wrong or missing: [a-z_]+(, [a-z_]+)*)$/);
        }
      }),
      { numRuns: cases(100) },
    );
  });
});

describe('parseTimestamp', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['1970-01-01T00:00:01.5Z', 1_500],
    ['1970-01-01t01:00:00+01:00', 0],
    ['1969-12-31T23:00:00-01:00', 0],
    // A leap second counts as the second before it, so a ticket expires at most one second early.
    ['2016-12-31T23:59:60Z', Date.UTC(2016, 11, 31, 23, 59, 59)],
    ['2016-12-31T23:59:60.25Z', Date.UTC(2016, 11, 31, 23, 59, 59, 250)],
    ['2017-01-01T00:59:60+01:00', Date.UTC(2016, 11, 31, 23, 59, 59)],
  ])('parses %s', (text, ms) => {
    expect(parseTimestamp(text)).toBe(ms);
  });

  it.each(['', '1970-01-01', '1970-01-01T00:00:00', '1970-01-01T00:00:00ZZ', 'x1970-01-01T00:00:00Z'])(
    'returns NaN for %j',
    (text) => {
      expect(parseTimestamp(text)).toBeNaN();
    },
  );

  it('parses every output of toISOString with a year of four digits', () => {
    const moments = fc.integer({ min: Date.UTC(0, 0, 1), max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(moments, (ms) => {
        expect(parseTimestamp(new Date(ms).toISOString())).toBe(ms);
      }),
      { numRuns: cases(100) },
    );
  });
});
