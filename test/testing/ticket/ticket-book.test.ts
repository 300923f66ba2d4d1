import { describe, expect, it } from '@jest/globals';
import { createTicketBook } from '../../../src/testing/ticket/ticket-book.js';

const bookAt = (lifetimeMs: number) => {
  const clock = { now: 0 };
  return { clock, book: createTicketBook(lifetimeMs, () => clock.now) };
};

describe('the tickets of a service (contract 3.1)', () => {
  it('creates a different secret for each ticket', () => {
    const { book } = bookAt(100);
    const tickets = Array.from({ length: 100 }, () => book.issue('account-1', 'raw'));
    expect(new Set(tickets).size).toBe(100);
    expect(tickets[0]).toMatch(/^ticket_[\w-]{32}$/);
  });

  it('reserves a ticket once', () => {
    const { book } = bookAt(100);
    const ticket = book.issue('account-1', 'raw');
    expect(book.reserve(ticket)).toMatchObject({ was: 'issued', record: { account: 'account-1', feed: 'raw' } });
    expect(book.reserve(ticket)?.was).toBe('consumed');
  });

  it.each([
    [99, 'issued'],
    [100, 'expired'],
    [101, 'expired'],
  ])('after %d of 100 ms a ticket is %s', (now, was) => {
    const { book, clock } = bookAt(100);
    const ticket = book.issue('account-1', 'market');
    clock.now = now;
    expect(book.reserve(ticket)?.was).toBe(was);
  });

  it('does not change a used ticket at its deadline', () => {
    const { book, clock } = bookAt(100);
    const ticket = book.issue('account-1', 'market');
    book.reserve(ticket);
    clock.now = 150;
    expect(book.reserve(ticket)?.was).toBe('consumed');
  });

  it('revokes only a ticket that is still issued', () => {
    const { book, clock } = bookAt(100);
    const [issued, used, old] = [0, 1, 2].map(() => book.issue('account-1', 'market')) as [string, string, string];
    book.reserve(used);
    expect(book.revoke(issued)).toMatchObject({ state: 'revoked' });
    expect(book.reserve(issued)?.was).toBe('revoked');
    expect(book.revoke(issued)).toBeUndefined();
    expect(book.revoke(used)).toBeUndefined();
    clock.now = 100;
    expect(book.revoke(old)).toBeUndefined();
    expect(book.revoke('none')).toBeUndefined();
  });

  it('revokes all tickets of an account', () => {
    const { book } = bookAt(100);
    const mine = [book.issue('account-1', 'market'), book.issue('account-1', 'raw')];
    const other = book.issue('account-2', 'market');
    expect(book.revokeOf('account-1')).toHaveLength(2);
    expect(mine.map((ticket) => book.reserve(ticket)?.was)).toEqual(['revoked', 'revoked']);
    expect(book.reserve(other)?.was).toBe('issued');
  });

  it('removes a ticket one lifetime after its deadline', () => {
    const { book, clock } = bookAt(100);
    const ticket = book.issue('account-1', 'market');
    clock.now = 199;
    book.issue('account-1', 'market');
    expect(book.has(ticket)).toBe(true);
    clock.now = 200;
    book.issue('account-1', 'market');
    expect(book.has(ticket)).toBe(false);
  });
});
