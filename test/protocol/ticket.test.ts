import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { PathReporter } from 'io-ts/lib/PathReporter.js';
import { parseTicket, wrongFields } from '../../src/protocol/parse-ticket.js';
import { Secret } from '../../src/protocol/secret.js';
import { Ticket } from '../../src/protocol/ticket.js';
import { cases } from '../support/cases.js';
import { bad, fields, good, namesOf, wire } from './tickets.js';

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

  describe.each(fields)('%s', (field) => {
    it.each(good[field])('may be %j', (value) => {
      const body = { ...wire, [field]: value };
      expect(Ticket.encode(decoded(body))).toEqual(body);
      expect(wrongFields(body)).toEqual([]);
    });

    it.each(bad[field])('must not be %j for the codec and for the parser', (value) => {
      const body = { ...wire, [field]: value };
      expect([namesOf(body), wrongFields(body)]).toEqual([[field], [field]]);
    });
  });

  it('recognizes a ticket with a wrapped secret, and nothing else', () => {
    expect(Ticket.is(decoded(wire))).toBe(true);
    expect(Ticket.is({ ...decoded(wire), deadlineMs: 5 })).toBe(true);
    expect(Ticket.is(wire)).toBe(false);
    for (const wrong of [{ wss_url: 'http://x' }, { expires_at: 5 }, { subprotocol: 5 }])
      expect(Ticket.is({ ...decoded(wire), ...wrong })).toBe(false);
    expect(Ticket.is(null)).toBe(false);
  });

  it('has named types, so that reports can say what is wrong with a body', () => {
    const wrong = Ticket.decode({ ...wire, ticket: '', expires_at: '', wss_url: '', feed: '', subprotocol: '' });
    const reported = E.isLeft(wrong) ? wrong.left.map(({ context }) => context.map(({ type }) => type.name)) : [];
    expect(reported.map((names) => names.at(-1))).toEqual(['Secret', 'Timestamp', 'WssUrl', 'Feed', 'Subprotocol']);
    expect(reported.map((names) => names[0])).toEqual(Array(5).fill('Ticket'));
  });

  it('keeps an invalid ticket out of the reports of io-ts', () => {
    const reported = (ticket: string) => PathReporter.report(Ticket.decode({ ...wire, ticket }));
    expect(reported('tkt planted')).toEqual(["the ticket isn't valid"]);
    expect(reported('t'.repeat(40_000))).toEqual(["the ticket isn't valid, got 40000 characters (at most 16384)"]);
  });
});

describe('parseTicket', () => {
  it.each(['', ' ', '{', 'tkt-planted-0815', '<html>', `${JSON.stringify(wire)}x`, "{'ticket':'t'}"])(
    "reports that %j isn't JSON",
    (body) => {
      expect(parseTicket(body)).toBe("the body isn't JSON");
    },
  );

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
