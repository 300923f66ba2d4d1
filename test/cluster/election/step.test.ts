import { describe, expect, it } from '@jest/globals';
import { type ClusterKey, readKey, writeKey } from '../../../src/cluster/election/cluster-key.js';
import type { AskResult, Input, Report } from '../../../src/cluster/election/election.js';
import { createStore, type Store } from '../simulation/store.js';
import { driveElection, driveOwner, typesOf } from './driven-election.js';

const keyOf = (fields: Partial<ClusterKey> = {}): ClusterKey => ({
  ...{ v: 1, feed: 'market', epoch: 9, gen: 3, owner: 'other', phase: 'open', since: 0 },
  ...{ credits: [], evictions: [], changes: [] },
  ...fields,
});
const storeWith = (fields: Partial<ClusterKey> = {}): Store => {
  const store = createStore();
  store.write(keyOf(fields), undefined);
  return store;
};
const heard = (fields: Partial<Report> = {}): Input => ({
  type: 'heard',
  report: { gen: 3, owner: 'other', phase: 'open', revision: 1, ...fields },
});
const credit = { gen: 2, leftMs: 60_000 };
const revisionOf = (store: Store): number | undefined => {
  const result = store.read();
  return result.type === 'entry' ? result.revision : undefined;
};
/** An owner with an open connection, after a handshake without an answer. */
const withCredit = () => {
  const election = driveOwner();
  election.give({ type: 'disconnected', isUnanswered: true });
  election.give({ type: 'handshake' });
  election.give({ type: 'opened' });
  return election;
};

describe('a replica that joins', () => {
  it('claims a key that does not exist, after two questions without a responder', () => {
    const election = driveElection();
    election.give({ type: 'start' });
    expect(election.writes()).toEqual([]);
    const effects = election.pass(149);
    expect(election.writes()).toEqual([]);
    expect(typesOf([...effects, ...election.pass(30)])).toEqual(['presence', 'beat', 'open']);
    expect(election.writes()).toEqual(['opening 1']);
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 1, phase: 'opening' } });
  });

  it('waits a full lease for an owner that does not answer, also if its clock does not begin at 0', () => {
    const election = driveElection();
    election.setOwner({ type: 'no-answer' });
    election.pass(10_000);
    election.give({ type: 'start' });
    election.pass(1_900);
    expect(election.writes()).toEqual([]);
    election.pass(200);
    expect(election.writes()).toEqual(['opening 1']);
  });

  it('claims a higher generation than that of the frames that it emits: the store has lost the keys of these', () => {
    const election = driveElection();
    election.setFollowed(3);
    election.give({ type: 'start' });
    election.pass(1_000);
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 4 } });
  });

  it('claims a free key at once, within 50 ms', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    expect(typesOf(election.pass(50))).toContain('open');
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('follows an owner', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    expect(election.state()).toMatchObject({ role: 'following', gen: 3, known: { owner: 'other' } });
  });

  it('announces itself before the store has answered, and accepts an offer', () => {
    const election = driveElection({}, storeWith());
    election.setStore('away');
    election.give({ type: 'start' });
    expect(typesOf(election.pass(0))).toEqual(['presence']);
    expect(election.state().role).toBe('joining');
    election.setStore('good');
    const effects = election.give({ type: 'offer', offer: { key: keyOf(), revision: 1 } });
    expect(typesOf(effects)).toEqual(['beat', 'open']);
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('does not announce itself if it only follows', () => {
    const election = driveElection({ canOwn: false }, storeWith());
    election.setStore('away');
    election.give({ type: 'start' });
    expect(typesOf(election.pass(0))).toEqual([]);
  });

  it('fails if the cluster has stopped', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'stopped' }));
    expect(election.give({ type: 'start' })).toEqual([{ type: 'fail', isReplaced: true }]);
    expect(election.state().role).toBe('stopped');
  });

  it('reads again if the store did not answer', () => {
    const election = driveElection({}, storeWith());
    election.setStore('away');
    election.give({ type: 'start' });
    election.pass(1_000);
    election.setStore('good');
    election.pass(500);
    expect(election.state().role).toBe('following');
  });
});

describe('a follower', () => {
  const follower = (settings = {}, key: Partial<ClusterKey> = {}) => {
    const election = driveElection(settings, storeWith(key));
    election.give({ type: 'start' });
    return election;
  };

  it('claims when a silent owner has no responder twice, 150 ms apart', () => {
    const election = follower();
    election.pass(300);
    election.give(heard());
    election.pass(600 + 149);
    expect(election.writes()).toEqual([]);
    election.pass(26);
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('waits for the end of the lease if the owner was opening, and issues a credit', () => {
    const election = follower({}, { phase: 'opening' });
    election.pass(1_999);
    expect(election.writes()).toEqual([]);
    election.pass(26);
    expect(election.writes()).toEqual(['opening 4']);
    expect(election.store.current()?.credits).toEqual([{ gen: 3, leftMs: 65_000 }]);
  });

  it('keeps the credits of an owner that was open, and adds none', () => {
    const election = follower({}, { credits: [credit] });
    election.pass(1_000);
    expect(election.store.current()).toMatchObject({ gen: 4, credits: [credit] });
  });

  it('does not claim while it hears the owner', () => {
    const election = follower();
    for (let n = 0; n < 100; n += 1) {
      election.pass(500);
      election.give(heard({ revision: n }));
    }
    expect(election.writes()).toEqual([]);
  });

  it('does not claim if another replica has written the key in the meantime', () => {
    const election = follower();
    election.pass(600);
    election.store.write(keyOf({ gen: 4, owner: 'third' }), 1);
    election.pass(300);
    expect(election.writes()).toEqual([]);
    expect(election.state().known).toMatchObject({ gen: 4, owner: 'third' });
  });

  describe('whose owner wrote its key and did not report it', () => {
    const silentOwner = (key: Partial<ClusterKey>, result: AskResult) => {
      const election = follower();
      election.pass(400);
      election.store.write(keyOf(key), 1);
      election.setOwner(result);
      return election;
    };

    it('claims as soon as without that write, if there is no responder', () => {
      const election = silentOwner({}, { type: 'no-responders' });
      election.pass(200 + 150 + 24);
      expect(election.writes()).toEqual([]);
      election.pass(1);
      expect(election.writes()).toEqual(['opening 4']);
    });

    it('claims as soon if that write was that it is open', () => {
      const election = follower({}, { phase: 'opening' });
      election.store.write(keyOf(), 1);
      election.pass(600 + 150 + 25);
      expect(election.writes()).toEqual(['opening 4']);
    });

    it('waits for its lease from the first question on, if there is no answer', () => {
      const election = silentOwner({}, { type: 'no-answer' });
      election.pass(200 + 2_024);
      expect(election.writes()).toEqual([]);
      election.pass(1);
      expect(election.writes()).toEqual(['opening 4']);
    });

    it('claims at once if that write has released the key', () => {
      const election = silentOwner({ owner: '', phase: 'free' }, { type: 'no-answer' });
      election.pass(200 + 25);
      expect(election.writes()).toEqual(['opening 4']);
    });

    it('waits for the next revision if that write comes after the first question', () => {
      const election = silentOwner({}, { type: 'no-answer' });
      election.pass(1_000);
      election.store.write(keyOf(), 2);
      election.pass(2_000);
      expect(election.writes()).toEqual([]);
    });

    it('asks on if the store does not answer', () => {
      const election = follower();
      election.setStore('away');
      election.pass(600 + 150 + 500);
      expect(election.writes()).toEqual([]);
      election.setStore('good');
      election.pass(1_500);
      expect(election.writes()).toEqual(['opening 4']);
    });
  });

  it('waits for a full lease after the engine is back', () => {
    const election = follower();
    election.give({ type: 'engine', isConnected: false });
    expect(election.state().role).toBe('isolated');
    election.pass(10_000);
    election.give({ type: 'engine', isConnected: true });
    election.pass(1_999);
    expect(election.writes()).toEqual([]);
    election.pass(200);
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('waits longer after three claims in a minute', () => {
    const election = follower();
    const times: number[] = [];
    for (let n = 0; n < 6; n += 1) {
      const before = election.writes().length;
      const from = election.now();
      while (election.writes().length === before) election.pass(10);
      times.push(Math.round((election.now() - from) / 1_000));
      const { gen } = election.state();
      election.store.write(keyOf({ gen: gen + 1 }), revisionOf(election.store));
      election.give(heard({ gen: gen + 1, revision: revisionOf(election.store)! }));
    }
    expect(times).toEqual([1, 1, 1, 3, 5, 9]);
  });

  it('never asks and never claims with `canOwn: false`', () => {
    const election = follower({ canOwn: false });
    expect(election.pass(60_000)).toEqual([]);
    expect(election.writes()).toEqual([]);
  });

  it('does not believe a store that has lost writes, but asks the owner', () => {
    const election = follower();
    election.give(heard({ gen: 5, owner: 'newest' }));
    election.give({ type: 'stop-notice' });
    expect(election.state()).toMatchObject({ role: 'following', gen: 5, known: { owner: 'newest' } });
    election.pass(300);
    expect(election.writes()).toEqual(['opening 6']);
  });

  it('accepts an offer at once', () => {
    const election = follower();
    election.give({ type: 'offer', offer: { key: keyOf(), revision: 1 } });
    expect(election.writes()).toEqual(['opening 4']);
    expect(election.store.current()?.credits).toEqual([]);
  });
});

describe('an owner', () => {
  it('renews its key, and sends beats', () => {
    const election = driveOwner();
    const before = election.writes().length;
    const effects = election.pass(10_000);
    expect(election.writes().length - before).toBe(20);
    expect(typesOf(effects).filter((type) => type === 'beat').length).toBeGreaterThanOrEqual(40);
    expect(election.store.current()).toMatchObject({ phase: 'open', owner: 'me' });
  });

  it('sends a handshake at once after a write that is recent', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    expect(typesOf(election.give({ type: 'handshake' }))).toEqual(['allow']);
    expect(election.writes()).toEqual(['opening 4']);
  });

  it('sends no handshake in the last part of its lease, before a new write', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.setStore('away');
    election.pass(1_800);
    expect(election.give({ type: 'handshake' })).toEqual([]);
    election.setStore('good');
    expect(typesOf(election.pass(1_000))).toContain('allow');
  });

  it('sends no handshake after a jump of the wall clock, before a new write', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.jump(60_000);
    const before = election.writes().length;
    expect(typesOf(election.give({ type: 'handshake' }))).toContain('allow');
    expect(election.writes().length).toBe(before + 1);
  });

  it('writes `opening` before the next handshake after its connection was lost', () => {
    const election = driveOwner();
    election.give({ type: 'disconnected', isUnanswered: false });
    expect(election.writes().at(-1)).toBe('opening 1');
    expect(typesOf(election.give({ type: 'handshake' }))).toEqual(['allow']);
  });

  it('sends no handshake after its connection was lost, if the write of `open` had no result', () => {
    const election = driveElection();
    election.give({ type: 'start' });
    election.pass(1_000);
    election.give({ type: 'handshake' });
    election.setStore('lost');
    election.give({ type: 'opened' });
    election.give({ type: 'disconnected', isUnanswered: false });
    expect(typesOf(election.give({ type: 'handshake' }))).not.toContain('allow');
    election.setStore('good');
    expect(typesOf(election.pass(2_000))).toContain('allow');
    expect(election.writes().at(-1)).toBe('opening 1');
  });

  it('keeps its connection while the engine is away, and its key afterwards', () => {
    const election = driveOwner();
    election.give({ type: 'engine', isConnected: false });
    expect(typesOf(election.pass(60_000))).toEqual([]);
    const effects = election.give({ type: 'engine', isConnected: true });
    expect(typesOf(effects)).not.toContain('close');
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 1, phase: 'open' } });
  });

  it('creates its key again after the store was wiped', () => {
    const election = driveOwner();
    election.store.wipe();
    election.pass(600);
    expect(election.store.current()).toMatchObject({ gen: 1, owner: 'me', phase: 'open' });
  });

  it('writes its key again after the store went back in time', () => {
    const election = driveOwner();
    election.pass(3_000);
    election.store.rollBack(4);
    election.pass(600);
    expect(election.store.current()).toMatchObject({ gen: 1, owner: 'me', phase: 'open' });
    expect(election.state().own).toBeDefined();
  });

  it('continues after a write whose answer was lost', () => {
    const election = driveOwner();
    election.setStore('lost');
    election.pass(600);
    election.setStore('good');
    election.pass(2_000);
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 1 } });
  });

  it('claims again when it learns of a later generation', () => {
    const election = driveOwner();
    const effects = election.give({ type: 'asked', question: { gen: 7, owner: 'gone' } });
    expect(typesOf(effects)).toContain('answer');
    expect(election.store.current()).toMatchObject({ gen: 8, owner: 'me' });
  });

  it('issues a credit when it claims after an owner whose key the store has lost: that one may still open', () => {
    const election = driveOwner();
    election.give({ type: 'asked', question: { gen: 7, owner: 'gone' } });
    expect(election.store.current()?.credits).toEqual([{ gen: 7, leftMs: 65_000 }]);
    election.give({ type: 'failed', isReplaced: true });
    expect(election.state()).toMatchObject({ role: 'owning', own: { gen: 8, phase: 'opening', credits: [] } });
  });

  it('keeps its connection until it is replaced, when another replica has claimed', () => {
    const election = driveOwner();
    expect(election.give(heard({ gen: 2, phase: 'opening' }))).toEqual([]);
    expect(election.state()).toMatchObject({ role: 'following', own: undefined, draining: 1 });
    expect(typesOf(election.give({ type: 'failed', isReplaced: true }))).toEqual(['close', 'end']);
  });

  it('voids its credit when it was displaced before its first handshake', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    expect(typesOf(election.give(heard({ gen: 5 })))).toEqual(['close', 'end', 'voided']);
  });

  it('does not void its credit after a handshake', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.give({ type: 'handshake' });
    expect(typesOf(election.give(heard({ gen: 5 })))).toEqual(['close', 'end']);
  });

  it('claims again in a higher generation if it emits frames of a later one, whose key the store has lost', () => {
    const election = driveOwner();
    election.setFollowed(3);
    election.pass(250);
    expect(election.state().own).toMatchObject({ gen: 4, phase: 'open' });
    expect(election.store.current()).toMatchObject({ gen: 4, owner: 'me' });
  });

  it('stops, and does not write over the stop of a later generation, when a replica asks that knows that one', () => {
    const election = driveOwner();
    election.store.write(keyOf({ gen: 2, owner: '', phase: 'stopped' }), revisionOf(election.store));
    expect(typesOf(election.give({ type: 'asked', question: { gen: 2, owner: 'third' } }))).toContain('fail');
    expect(election.state()).toMatchObject({ role: 'stopped' });
    expect(election.store.current()).toMatchObject({ gen: 2, phase: 'stopped' });
  });

  it('follows the owner of a later generation whose frames it emits', () => {
    const election = driveOwner();
    election.store.write(keyOf({ gen: 2 }), revisionOf(election.store));
    election.setFollowed(2);
    election.pass(250);
    expect(election.state()).toMatchObject({ role: 'following', gen: 2 });
  });

  it('issues a credit for a handshake that had no answer', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.give({ type: 'handshake' });
    election.give({ type: 'disconnected', isUnanswered: true });
    expect(election.store.current()?.credits).toEqual([{ gen: 4, leftMs: 65_000 }]);
  });

  it('sends no handshake after one that had no answer, before a write has its credit', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.give({ type: 'handshake' });
    election.setStore('away');
    election.give({ type: 'disconnected', isUnanswered: true });
    expect(typesOf(election.give({ type: 'handshake' }))).not.toContain('allow');
    election.setStore('good');
    expect(typesOf(election.pass(1_000))).toContain('allow');
    expect(election.store.current()?.credits).toHaveLength(1);
  });

  it('keeps the credit of a handshake that was sent, when its sender voids the one of its displacement', () => {
    const credit = { gen: 4, leftMs: 60_000 };
    const election = driveElection({}, storeWith({ owner: 'other', phase: 'opening', credits: [credit], gen: 4 }));
    election.give({ type: 'start' });
    election.pass(4_000);
    expect(election.state().own?.credits).toHaveLength(2);
    election.give({ type: 'voided', gen: 4 });
    expect(election.state().own?.credits).toHaveLength(1);
  });
});

describe('an owner whose connection was replaced', () => {
  const replaced: Input = { type: 'failed', isReplaced: true };

  it('follows if another replica has claimed', () => {
    const election = driveOwner();
    election.store.write(keyOf({ gen: 2 }), revisionOf(election.store));
    expect(typesOf(election.give(replaced))).toEqual(['close', 'end']);
    expect(election.state()).toMatchObject({ role: 'following', gen: 2 });
  });

  it('stops, and tells all replicas, without a credit', () => {
    const election = driveOwner();
    expect(typesOf(election.give(replaced))).toEqual(['stop-notice', 'close', 'end', 'fail']);
    expect(election.store.current()).toMatchObject({ phase: 'stopped', owner: '', stop: { by: 'me' } });
  });

  it('uses a credit, and opens once more', () => {
    const election = withCredit();
    expect(typesOf(election.give(replaced))).toContain('open');
    expect(election.store.current()).toMatchObject({ phase: 'opening', owner: 'me', credits: [], evictions: [{}] });
    election.give({ type: 'handshake' });
    election.give({ type: 'opened' });
    expect(typesOf(election.give(replaced))).toContain('fail');
  });

  it('does not use a credit after 65 s', () => {
    const election = withCredit();
    election.pass(65_001);
    expect(typesOf(election.give(replaced))).toContain('fail');
  });

  it('stops at the fourth time in a minute, also with a credit', () => {
    const election = driveOwner();
    const leftMs = [50_000, 40_000, 30_000].map((each) => ({ leftMs: each }));
    election.give({ type: 'evicted', evictions: leftMs });
    election.give({ type: 'disconnected', isUnanswered: true });
    election.give({ type: 'handshake' });
    election.give({ type: 'opened' });
    expect(typesOf(election.give(replaced))).toContain('fail');
  });

  it('opens nothing while the store is away', () => {
    const election = driveOwner();
    election.give({ type: 'engine', isConnected: false });
    expect(election.give(replaced)).toEqual([]);
    expect(election.pass(60_000)).toEqual([]);
    election.give({ type: 'engine', isConnected: true });
    expect(election.store.current()?.phase).toBe('open');
    expect(election.state()).toMatchObject({ role: 'following', own: undefined });
  });

  it('does not explain it after its lease, but follows', () => {
    const election = driveOwner();
    election.setStore('away');
    election.pass(2_100);
    expect(typesOf(election.give(replaced))).not.toContain('fail');
    election.setStore('good');
    election.pass(1_000);
    expect(election.store.current()?.phase).not.toBe('stopped');
  });

  it('does not follow another owner with its own generation, which a store that has lost all data has used again', () => {
    const election = driveOwner();
    const { gen } = election.state();
    election.store.wipe();
    election.store.write(keyOf({ gen }), undefined);
    election.give(heard({ gen }));
    const { heardAt } = election.state();
    expect(election.state()).toMatchObject({ own: undefined, role: 'following', known: { gen, owner: 'me' } });
    election.pass(100);
    election.give(heard({ gen }));
    expect(election.state()).toMatchObject({ heardAt, known: { gen, owner: 'me' } });
  });
});

describe('a hand-over', () => {
  const standby = (replica: string, since: number): Input => ({ type: 'standby', presence: { replica, since } });

  it('offers the ownership to the youngest standby first, then to the next', () => {
    const election = driveOwner();
    for (const each of [standby('old', 1), standby('young', 3), standby('middle', 2)]) election.give(each);
    const [offer] = election.give({ type: 'hand-over' });
    expect(offer).toMatchObject({ type: 'offer', to: 'young', offer: { revision: revisionOf(election.store) } });
    const next = election.pass(600).filter(({ type }) => type === 'offer');
    expect(next).toMatchObject([{ to: 'middle', offer: { revision: revisionOf(election.store) } }]);
  });

  it('ends when the standby has replaced the connection', () => {
    const election = driveOwner();
    election.give(standby('young', 3));
    election.give({ type: 'hand-over' });
    expect(election.give(heard({ gen: 2, phase: 'opening' }))).toEqual([]);
    expect(typesOf(election.give({ type: 'failed', isReplaced: true }))).toEqual(['close', 'end', 'left']);
  });

  it('releases the key if there is no standby', () => {
    const election = driveOwner();
    expect(typesOf(election.give({ type: 'hand-over' }))).toEqual(['close', 'end', 'beat', 'left']);
    expect(election.store.current()).toMatchObject({ phase: 'free', owner: '', gen: 1 });
  });

  it.each<[string, Input]>([
    ['has ended', { type: 'disconnected', isUnanswered: false }],
    ['was replaced by a late handshake', { type: 'failed', isReplaced: true }],
  ])('releases the key, and opens no other connection, if the connection %s', (_, end) => {
    const election = withCredit();
    election.give(standby('young', 3));
    expect(typesOf(election.give({ type: 'hand-over' }))).toEqual(['offer']);
    const effects = typesOf(election.give(end));
    expect(effects).not.toContain('offer');
    expect(effects.slice(-4)).toEqual(['close', 'end', 'beat', 'left']);
    expect(election.store.current()).toMatchObject({ phase: 'free', owner: '' });
  });

  it('does not offer to a standby that is silent for 3 s', () => {
    const election = driveOwner();
    election.give(standby('young', 3));
    election.pass(3_000);
    expect(typesOf(election.give({ type: 'hand-over' }))).toContain('left');
  });

  it('leaves after its deadline', () => {
    const election = driveOwner();
    election.setStore('away');
    election.give({ type: 'hand-over' });
    expect(typesOf(election.pass(5_000))).toContain('left');
  });

  it('of a follower ends at once', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    expect(typesOf(election.give({ type: 'hand-over' }))).toEqual(['left']);
  });

  it('leaves a credit for a handshake that is under way', () => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    election.give({ type: 'handshake' });
    election.give({ type: 'hand-over' });
    expect(election.store.current()).toMatchObject({ phase: 'free', credits: [{ gen: 4 }] });
  });
});

describe('a replica whose key the service refuses', () => {
  const barred = (...before: readonly Input[]) => {
    const election = driveElection({}, storeWith({ owner: '', phase: 'free' }));
    election.give({ type: 'start' });
    election.pass(50);
    for (const each of before) election.give(each);
    return { election, effects: election.give({ type: 'failed', isReplaced: false }) };
  };

  it('does not read the key of a silent owner, because it cannot claim', () => {
    const { election } = barred({ type: 'standby', presence: { replica: 'other', since: 1 } });
    election.give(heard({ gen: 5 }));
    election.setStore('away');
    election.pass(600);
    expect(election.state()).toMatchObject({ unanswered: 1, call: undefined });
  });

  it('releases the ownership, and does not claim again', () => {
    const { election, effects } = barred({ type: 'standby', presence: { replica: 'other', since: 1 } });
    expect(typesOf(effects)).toEqual(['close', 'end', 'beat']);
    expect(election.store.current()?.phase).toBe('free');
    election.pass(10_000);
    expect(election.writes()).toEqual(['opening 4', 'free 4']);
    expect(election.state().role).toBe('following');
  });

  it('fails if it knows no other candidate', () => {
    const { election } = barred();
    expect(election.pass(10_000)).toEqual([{ type: 'fail', isReplaced: false }]);
  });
});

describe('the key', () => {
  it('is read as it was written', () => {
    const changes = [{ gen: 3, owner: 'other', since: 1, cause: 'silence' }] as const;
    const key = keyOf({ credits: [credit], evictions: [{ leftMs: 1 }], changes, stop: { by: 'x', at: 1 } });
    expect(readKey(writeKey(key))).toEqual(key);
  });

  it.each(['', 'null', '{}', '{"v":2}', writeKey(keyOf()).replace('"gen":3', '"gen":-1')])(
    'is refused if it is %j',
    (text) => {
      expect(() => readKey(text)).toThrow(expect.objectContaining({ code: 'invalid-options', option: 'account' }));
    },
  );
});
