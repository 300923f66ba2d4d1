import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isRight } from 'fp-ts/lib/Either.js';
import { parseTicket, wrongFields } from '../../src/protocol/parse-ticket.js';
import { Ticket } from '../../src/protocol/ticket.js';
import { cases } from '../support/cases.js';
import { bad, fields, good, namesOf, wire } from './tickets.js';

const decoded = (body: unknown): Ticket | undefined => {
  const result = Ticket.decode(body);
  return isRight(result) ? result.right : undefined;
};

describe('wrongFields', () => {
  it('returns no name for a valid ticket', () => {
    expect(wrongFields(wire)).toEqual([]);
  });

  it('names every wrong field once, in order', () => {
    expect(wrongFields({})).toEqual(fields);
    expect(wrongFields({ ...wire, feed: 'x', ticket: '' })).toEqual(['ticket', 'feed']);
  });

  it.each([null, undefined, 'text', 5, true, [], [wire]])('returns `body` for %j, which is not an object', (body) => {
    expect(wrongFields(body)).toEqual(['body']);
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
        const names = wrongFields(body);
        expect(names.join()).not.toContain(marker);
        expect(fields).toEqual(expect.arrayContaining([...names]));
      }),
      { numRuns: cases(100) },
    );
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

describe('the parser and the codec', () => {
  const oneWrong = fields.flatMap((field) =>
    [...good[field], ...bad[field]].map((value) => ({ ...wire, [field]: value })),
  );

  it.each(oneWrong)('agree on %j', (body) => {
    expect(wrongFields(body)).toEqual(namesOf(body));
  });

  it('agree on any JSON value, and on any values of the fields', () => {
    const anyBody = fc.record(
      Object.fromEntries(
        fields.map((field) => [field, fc.oneof(fc.constantFrom(...good[field], ...bad[field]), fc.jsonValue())]),
      ),
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(anyBody, fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()), (value, extra) => {
        const text = JSON.stringify(
          typeof value === 'object' && !Array.isArray(value) ? { ...extra, ...value } : value,
        );
        const json: unknown = JSON.parse(text);
        expect(wrongFields(json)).toEqual(namesOf(json));
        const parsed = parseTicket(text);
        // A comparison does not see the secret in a ticket, so both are encoded.
        const shown = (ticket: Ticket | undefined) => ticket && Ticket.encode(ticket);
        expect(shown(typeof parsed === 'string' ? undefined : parsed)).toEqual(shown(decoded(json)));
      }),
      { numRuns: cases(500) },
    );
  });
});
