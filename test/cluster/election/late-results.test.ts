import { describe, expect, it } from '@jest/globals';
import type { CallResult, Input } from '../../../src/cluster/election/election.js';
import type { Store } from '../simulation/store.js';
import { type DrivenElection, driveElection, driveOwner, typesOf } from './driven-election.js';
import { heard, keyOf, storeWith } from './keys.js';

const handOver: Input = { type: 'hand-over' };
/** Gives the result of the access to the store that is under way. */
const answer = (election: DrivenElection, result: CallResult) =>
  election.give({ type: 'call', id: election.state().call!.id, result });

/** Lets time pass until a condition holds, for a minute at most. */
const passUntil = (election: DrivenElection, condition: () => boolean): void => {
  for (let n = 0; n < 6_000 && !condition(); n += 1) election.pass(10);
  expect(condition()).toBe(true);
};

/** An election whose claim was sent, and has no result yet. */
const claiming = (key: Parameters<typeof storeWith>[0] = { owner: '', phase: 'free' }) => {
  const election = driveElection({}, storeWith(key));
  election.give({ type: 'start' });
  passUntil(election, () => election.state().role === 'claiming');
  // The store reads, and does not answer the write.
  const read = election.store.read();
  election.setStore('away');
  election.pass(50);
  answer(election, read);
  expect(election.writes()).toEqual(['opening 4']);
  return election;
};

describe('a replica whose claim of a free key finds another owner of the same generation, after a loss of data', () => {
  const found = () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    passUntil(election, () => election.state().role === 'claiming');
    election.store.wipe();
    election.store.write(keyOf({ owner: 'third' }), undefined);
    election.pass(50);
    expect(election.writes()).toEqual([]);
    return election;
  };

  it('follows that owner when it has a higher generation, because its follower drops the messages of this one', () => {
    const election = found();
    election.give(heard({ owner: 'third' }));
    expect(election.state()).toMatchObject({ role: 'following', known: { gen: 3, owner: '' } });
    election.give(heard({ owner: 'third', gen: 4 }));
    expect(election.state()).toMatchObject({ role: 'following', known: { gen: 4, owner: 'third' } });
  });

  it('claims if that owner does not answer', () => {
    const election = found();
    election.pass(300);
    expect(election.writes()).toEqual(['opening 4']);
  });
});

describe('a replica that leaves while its claim has no result', () => {
  it('releases the key if the claim was written', () => {
    const election = claiming();
    expect(election.give(handOver)).toEqual([]);
    election.setStore('good');
    const { call } = election.state();
    election.store.write(call!.key!, 1);
    expect(typesOf(answer(election, { type: 'written', revision: 2 }))).toEqual([
      ...['beat', 'open', 'close', 'end', 'beat', 'left'],
    ]);
    expect(election.store.current()).toMatchObject({ phase: 'free', owner: '', gen: 4 });
  });

  it('leaves if another replica has claimed', () => {
    const election = claiming();
    election.give(handOver);
    election.setStore('good');
    election.store.write(keyOf({ gen: 4, owner: 'third' }), 1);
    expect(typesOf(answer(election, { type: 'conflict' }))).toEqual(['left']);
    expect(election.store.current()).toMatchObject({ gen: 4, owner: 'third' });
  });

  it('releases the key if it finds that the claim was written', () => {
    const election = claiming();
    election.give(handOver);
    election.store.write(election.state().call!.key!, 1);
    election.setStore('good');
    expect(typesOf(election.pass(1_000))).toContain('left');
    expect(election.store.current()).toMatchObject({ phase: 'free', owner: '', gen: 4 });
  });
});

describe('a replica whose claim has no result', () => {
  it('does not accept an offer', () => {
    const election = claiming();
    election.give({ type: 'offer', offer: { key: keyOf(), revision: 1 } });
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('accepts an offer while it reads the key', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.setStore('away');
    election.pass(50);
    expect(election.state().call).toMatchObject({ purpose: 'claim', key: undefined });
    election.give({ type: 'offer', offer: { key: keyOf(), revision: 1 } });
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('leaves at once while it only reads the key', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.setStore('away');
    election.pass(50);
    expect(typesOf(election.give(handOver))).toEqual(['left']);
  });

  it('claims after a read that was under way', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.setStore('away');
    election.give({ type: 'stop-notice' });
    election.pass(50);
    expect(election.state()).toMatchObject({ call: { purpose: 'orient' }, wanted: 'claim' });
    election.setStore('good');
    answer(election, election.store.read());
    expect(election.writes()).toEqual(['opening 4']);
  });
});

describe('a replica', () => {
  it('ignores the reports of a feed that it has closed', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    const before = election.state();
    const reports: readonly Input[] = [
      ...([{ type: 'handshake' }, { type: 'opened' }] as const),
      { type: 'disconnected', isUnanswered: true },
      { type: 'failed', isReplaced: true },
    ];
    for (const each of reports) expect(election.give(each)).toEqual([]);
    expect(election.state()).toMatchObject({ ...before, timers: {} });
  });

  it('does not claim after the service has refused its key, whenever that is reported', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    election.give({ type: 'failed', isReplaced: false });
    election.pass(20_000);
    expect(election.writes()).toEqual([]);
  });

  it('ignores its own messages', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    election.give(heard({ gen: 9, owner: 'me' }));
    expect(election.state().gen).toBe(3);
  });

  it('only follows with `canOwn: false`, also when it hears a free key', () => {
    const election = driveElection({ canOwn: false }, storeWith());
    election.give({ type: 'start' });
    election.give(heard());
    election.give(heard({ owner: '', phase: 'free' }));
    expect(election.state()).toMatchObject({ role: 'following', timers: {} });
    expect(election.pass(60_000)).toEqual([]);
  });

  it('does not believe an owner of an earlier generation that answers', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    election.give(heard({ gen: 5, owner: 'newest' }));
    const report = { gen: 3, owner: 'other', phase: 'open', revision: 1 } as const;
    election.setOwner({ type: 'answer', report });
    election.pass(1_999);
    expect(election.writes()).toEqual([]);
    election.pass(100);
    expect(election.writes()).toEqual(['opening 6']);
  });

  it('joins when the engine is back, if it was away from the beginning', () => {
    const election = driveElection({}, storeWith());
    election.setStore('away');
    election.give({ type: 'start' });
    election.give({ type: 'engine', isConnected: false });
    expect(election.state().role).toBe('joining');
    election.setStore('good');
    election.give({ type: 'engine', isConnected: true });
    expect(election.state().role).toBe('following');
  });
});

describe('an owner', () => {
  it('reads its key when another replica calls itself the owner of the same generation, or reports a stop', () => {
    for (const input of [heard({ gen: 1 }), { type: 'stop-notice' } as const]) {
      const election = driveOwner();
      const before = election.writes().length;
      expect(typesOf(election.give(input))).not.toContain('close');
      expect(election.writes().slice(before)).toEqual(['open 1']);
      expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 1 } });
    }
  });

  it('claims again in a higher generation for a replica that knows the release of its own: the store has lost that', () => {
    const election = driveOwner();
    expect(typesOf(election.give({ type: 'asked', question: { gen: 1, owner: '' } })).slice(0, 2)).toEqual([
      ...['answer', 'beat'],
    ]);
    expect(election.state().own?.gen).toBe(2);
    expect(election.store.current()).toMatchObject({ gen: 2, owner: 'me' });
  });

  it('writes its key again if it does not know whether the first write reached the wiped store', () => {
    const election = driveOwner();
    election.setStore('away');
    election.pass(600);
    election.store.wipe();
    passUntil(election, () => election.state().call?.purpose === 'confirm');
    answer(election, election.store.read());
    const { call } = election.state();
    expect(call).toMatchObject({ purpose: 'renew', key: { gen: 1, owner: 'me' } });
    // The write reaches the store, and its answer is lost.
    election.store.write(call!.key!, undefined);
    election.setStore('good');
    election.pass(2_000);
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 1, phase: 'open' } });
    expect(election.store.current()).toMatchObject({ gen: 1, owner: 'me', phase: 'open' });
  });
});

describe('a replica that cannot own, and knows no other candidate', () => {
  /** Lets something happen before the read that decides whether the replica fails. */
  const alone = (before: (election: DrivenElection, store: Store) => void) => {
    const store = storeWith({ owner: '', phase: 'free' });
    let hasRead = false;
    const election = driveElection(
      {},
      {
        ...store,
        read: () => {
          if (election.state().call?.purpose === 'alone') {
            hasRead = true;
            before(election, store);
          }
          return store.read();
        },
      },
    );
    election.give({ type: 'start' });
    election.pass(50);
    election.give({ type: 'failed', isReplaced: false });
    passUntil(election, () => hasRead);
    return election;
  };

  it('fails', () => {
    expect(alone(() => undefined).state().role).toBe('stopped');
  });

  it('follows if another replica has claimed meanwhile', () => {
    const election = alone((_, store) => store.write(keyOf({ gen: 5, owner: 'third' }), 3));
    expect(election.state()).toMatchObject({ role: 'following', gen: 5 });
  });

  it('follows if another candidate reports itself meanwhile', () => {
    const election = alone((each) => each.give({ type: 'standby', presence: { replica: 'third', since: 1 } }));
    expect(election.state()).toMatchObject({ role: 'following', gen: 4 });
  });
});
