import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { inspect } from 'node:util';
import { Secret } from '../../src/protocol/secret.js';
import { Ticket } from '../../src/protocol/ticket.js';
import type { WireTicket } from '../../src/protocol/ticket-fields.js';
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
