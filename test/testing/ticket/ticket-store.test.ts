import { describe, expect, it } from '@jest/globals';
import { createTicketStore } from '../../../src/testing/ticket/ticket-store.js';

const bookAt = (lifetimeMs: number) => {
  const clock = { now: 0 };
  return { clock, store: createTicketStore(lifetimeMs, () => clock.now) };
};

describe('the tickets of a service (contract 3.1)', () => {
  it('creates a different secret for each ticket', () => {
    const { store } = bookAt(100);
    const tickets = Array.from({ length: 100 }, () => store.issue('account-1', 'raw'));
    expect(new Set(tickets).size).toBe(100);
    expect(tickets[0]).toMatch(/^ticket_[\w-]{32}$/);
  });

  it('reserves a ticket once', () => {
    const { store } = bookAt(100);
    const ticket = store.issue('account-1', 'raw');
    expect(store.reserve(ticket)).toMatchObject({ was: 'issued', record: { account: 'account-1', feed: 'raw' } });
    expect(store.reserve(ticket)?.was).toBe('consumed');
  });

  it.each([
    [99, 'issued'],
    [100, 'expired'],
    [101, 'expired'],
  ])('after %d of 100 ms a ticket is %s', (now, was) => {
    const { store, clock } = bookAt(100);
    const ticket = store.issue('account-1', 'market');
    clock.now = now;
    expect(store.reserve(ticket)?.was).toBe(was);
  });

  it('does not change a used ticket at its deadline', () => {
    const { store, clock } = bookAt(100);
    const ticket = store.issue('account-1', 'market');
    store.reserve(ticket);
    clock.now = 150;
    expect(store.reserve(ticket)?.was).toBe('consumed');
  });

  it('revokes only a ticket that is still issued', () => {
    const { store, clock } = bookAt(100);
    const [issued, used, old] = [0, 1, 2].map(() => store.issue('account-1', 'market')) as [string, string, string];
    store.reserve(used);
    expect(store.revoke(issued)).toMatchObject({ state: 'revoked' });
    expect(store.reserve(issued)?.was).toBe('revoked');
    expect(store.revoke(issued)).toBeUndefined();
    expect(store.revoke(used)).toBeUndefined();
    clock.now = 100;
    expect(store.revoke(old)).toBeUndefined();
    expect(store.revoke('none')).toBeUndefined();
  });

  it('revokes all tickets of an account', () => {
    const { store } = bookAt(100);
    const mine = [store.issue('account-1', 'market'), store.issue('account-1', 'raw')];
    const other = store.issue('account-2', 'market');
    expect(store.revokeOf('account-1')).toHaveLength(2);
    expect(mine.map((ticket) => store.reserve(ticket)?.was)).toEqual(['revoked', 'revoked']);
    expect(store.reserve(other)?.was).toBe('issued');
  });

  it('removes a ticket one lifetime after its deadline', () => {
    const { store, clock } = bookAt(100);
    const ticket = store.issue('account-1', 'market');
    clock.now = 199;
    store.issue('account-1', 'market');
    expect(store.has(ticket)).toBe(true);
    clock.now = 200;
    store.issue('account-1', 'market');
    expect(store.has(ticket)).toBe(false);
  });
});
