import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

type Seen = readonly [type: string, at: number, account: string, status: number, code: string, retryAfter: number];
const { waitsOf, mostInWindow, ticketsOf } = await reliabilityModule<{
  waitsOf: (events: readonly Seen[]) => { refused: number; early: readonly number[]; late: readonly number[] };
  mostInWindow: (events: readonly Seen[], windowMs: number) => number;
  ticketsOf: (events: readonly Seen[]) => Readonly<Record<string, number>>;
}>('storm/service-limits.mjs');

const issued = (at: number, account = 'a'): Seen => ['ticket-issued', at, account, 0, '', 0];
const limited = (at: number, seconds: number, account = 'a'): Seen => [
  'ticket-refused',
  at,
  account,
  429,
  'x',
  seconds,
];
const open = (at: number, account = 'a'): Seen => ['handshake-accepted', at, account, 0, '', 0];
const rejected = (at: number, status: number, account = 'a'): Seen => [
  'handshake-refused',
  at,
  account,
  status,
  'x',
  0,
];

describe('a client that was refused with 429', () => {
  it('is early if it returns before Retry-After is over, and late otherwise', () => {
    const events = [limited(100, 2), limited(50, 1, 'b'), issued(1_040, 'b'), issued(2_130)];
    expect(waitsOf(events)).toEqual({ refused: 2, early: [-10], late: [30, -10] });
  });

  it('is early even if the request is refused again', () => {
    expect(waitsOf([limited(0, 2), limited(500, 2), issued(2_600)]).early).toEqual([-1_500]);
  });

  it('is not counted as early or late if it does not return', () => {
    expect(waitsOf([limited(0, 2)])).toEqual({ refused: 1, early: [], late: [] });
  });
});

describe('a window', () => {
  it('counts the tickets of each account separately', () => {
    const events = [issued(0), issued(10, 'b'), issued(500), limited(600, 1), issued(1_000), issued(1_400, 'b')];
    expect(mostInWindow(events, 1_000)).toBe(2);
    expect(mostInWindow(events, 400)).toBe(1);
  });

  it('begins with the first request, even if that is refused', () => {
    expect(mostInWindow([limited(0, 1), issued(900), issued(1_100)], 1_000)).toBe(1);
  });
});

describe('tickets', () => {
  it('are counted together with their handshakes', () => {
    expect(ticketsOf([issued(0), open(1), issued(2), rejected(3, 503)])).toEqual(
      { issued: 2, handshakes: 2, refused: 0, withoutTicket: 0, violations: 0 }, // prettier-ignore
    );
  });

  it('are reported if one is used twice', () => {
    expect(ticketsOf([issued(0), open(1), rejected(2, 401)])).toMatchObject({ refused: 1, withoutTicket: 1 });
    // The ticket of another account does not count.
    expect(ticketsOf([issued(0), issued(0, 'b'), open(1), open(2)])).toMatchObject({ withoutTicket: 1 });
  });
});
