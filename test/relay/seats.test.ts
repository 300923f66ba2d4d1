import { describe, expect, it } from '@jest/globals';
import { RelayFullError } from '../../src/relay/index.js';
import { type Seat, type SeatBounds, Seats } from '../../src/relay/seats.js';

const seatsWith = (bounds: Partial<SeatBounds> = {}) => {
  const seats = new Seats({ maxClients: 10, maxClientsPerUser: 10, ...bounds });
  const taken = (user?: string): Seat => {
    const seat = seats.take();
    seats.admit(seat, user);
    return seat;
  };
  return { seats, taken };
};

/** What a seat is told, also before now. */
const sentAway = (seat: Seat): string[] => {
  const told: string[] = [];
  seat.sentAway$.subscribe((why) => told.push(why));
  return told;
};

const refusedWith = (reason: string) => expect.objectContaining({ name: 'RelayFullError', reason });

describe('Seats', () => {
  it('gives as many as there are, admitted or not; a place that is free again is given again', () => {
    const { seats, taken } = seatsWith({ maxClients: 2 });
    const waiting = seats.take();
    taken('a');
    expect(() => seats.take()).toThrow(refusedWith('full'));
    expect(seats.authorizing).toBe(1);
    waiting.unsubscribe();
    waiting.unsubscribe();
    expect(seats.authorizing).toBe(0);
    taken();
    expect(() => seats.take()).toThrow(RelayFullError);
  });

  it('admits a user as often as allowed, others and clients without a user as before; names no user in the error', () => {
    const { seats, taken } = seatsWith({ maxClientsPerUser: 2 });
    const [first] = [taken('ann-7'), taken('ann-7'), taken('bob'), taken(), taken(), taken()];
    const third = seats.take();
    expect(() => seats.admit(third, 'ann-7')).toThrow(refusedWith('user'));
    expect(() => seats.admit(third, 'ann-7')).not.toThrow(/ann-7/);
    first.unsubscribe();
    expect(() => seats.admit(third, 'ann-7')).not.toThrow();
  });

  it('sends the clients of one user away, and says how many', () => {
    const { seats, taken } = seatsWith();
    const all = [taken('a'), taken('b'), taken('a'), taken()];
    expect(seats.disconnect('a')).toBe(2);
    expect(all.map(sentAway)).toEqual([['sessionEnded'], [], ['sessionEnded'], []]);
    expect(seats.disconnect('nobody')).toBe(0);
  });

  it('does not admit a user who was sent away while the authorization was under way: it may have looked before', () => {
    const { seats } = seatsWith();
    const [before, other] = [seats.take(), seats.take()];
    expect(seats.disconnect('a')).toBe(0);
    expect(() => seats.admit(before, 'a')).toThrow(refusedWith('session-ended'));
    expect(() => seats.admit(other, 'b')).not.toThrow();
    expect(() => seats.admit(seats.take(), 'a')).not.toThrow();
  });

  it('sends everybody away once it is closed, gives no place any more, and is empty when the last one has left', () => {
    const { seats, taken } = seatsWith();
    const all = [taken('a'), seats.take()];
    let isEmpty = false;
    seats.emptied$.subscribe(() => (isEmpty = true));
    seats.close();
    expect(all.map(sentAway)).toEqual([['closing'], ['closing']]);
    expect(() => seats.take()).toThrow(refusedWith('closed'));
    for (const seat of all) {
      expect(isEmpty).toBe(false);
      seat.unsubscribe();
    }
    expect(isEmpty).toBe(true);
  });
});
