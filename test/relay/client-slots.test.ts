import { describe, expect, it } from '@jest/globals';
import { RelayFullError } from '../../src/relay/index.js';
import { ClientSlots, type Slot, type SlotBounds } from '../../src/relay/client-slots.js';

const slotsWith = (bounds: Partial<SlotBounds> = {}) => {
  const slots = new ClientSlots({ maxClients: 10, maxClientsPerUser: 10, ...bounds });
  const taken = (user?: string): Slot => {
    const slot = slots.take();
    slots.admit(slot, user);
    return slot;
  };
  return { slots, taken };
};

/** The reasons that a slot has emitted. */
const reasonsOf = (slot: Slot): string[] => {
  const reasons: string[] = [];
  slot.ended$.subscribe((why) => reasons.push(why));
  return reasons;
};

const refusedWith = (reason: string) => expect.objectContaining({ name: 'RelayFullError', reason });

describe('ClientSlots', () => {
  it('allows `maxClients` clients, admitted or not, and reuses a freed slot', () => {
    const { slots, taken } = slotsWith({ maxClients: 2 });
    const waiting = slots.take();
    taken('a');
    expect(() => slots.take()).toThrow(refusedWith('full'));
    expect(slots.authorizing).toBe(1);
    waiting.unsubscribe();
    waiting.unsubscribe();
    expect(slots.authorizing).toBe(0);
    taken();
    expect(() => slots.take()).toThrow(RelayFullError);
  });

  it('limits the clients of one user only, and does not name the user in the error', () => {
    const { slots, taken } = slotsWith({ maxClientsPerUser: 2 });
    const [first] = [taken('ann-7'), taken('ann-7'), taken('bob'), taken(), taken(), taken()];
    const third = slots.take();
    expect(() => slots.admit(third, 'ann-7')).toThrow(refusedWith('user'));
    expect(() => slots.admit(third, 'ann-7')).not.toThrow(/ann-7/);
    first.unsubscribe();
    expect(() => slots.admit(third, 'ann-7')).not.toThrow();
  });

  it('ends the streams of one user, and returns their number', () => {
    const { slots, taken } = slotsWith();
    const all = [taken('a'), taken('b'), taken('a'), taken()];
    expect(slots.disconnect('a')).toBe(2);
    expect(all.map(reasonsOf)).toEqual([['sessionEnded'], [], ['sessionEnded'], []]);
    expect(slots.disconnect('nobody')).toBe(0);
  });

  it('refuses a user who was disconnected during the authorization, which may have started before', () => {
    const { slots } = slotsWith();
    const [before, other] = [slots.take(), slots.take()];
    expect(slots.disconnect('a')).toBe(0);
    expect(() => slots.admit(before, 'a')).toThrow(refusedWith('session-ended'));
    expect(() => slots.admit(other, 'b')).not.toThrow();
    expect(() => slots.admit(slots.take(), 'a')).not.toThrow();
  });

  it('ends all streams when it is closed, refuses new clients, and emits when the last client has left', () => {
    const { slots, taken } = slotsWith();
    const all = [taken('a'), slots.take()];
    let isEmpty = false;
    slots.emptied$.subscribe(() => (isEmpty = true));
    slots.close();
    expect(all.map(reasonsOf)).toEqual([['closing'], ['closing']]);
    expect(() => slots.take()).toThrow(refusedWith('closed'));
    for (const slot of all) {
      expect(isEmpty).toBe(false);
      slot.unsubscribe();
    }
    expect(isEmpty).toBe(true);
  });
});
