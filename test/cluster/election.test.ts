import { describe, expect, it } from '@jest/globals';
import { repairedKey, type ClusterKey, readKey, resumedKey, writeKey } from '../../src/cluster/election/cluster-key.js';
import type { ElectionSettings, Input } from '../../src/cluster/election/election.js';
import type { Store } from './simulation/store.js';
import {
  type Change,
  claimed,
  DrivenElection,
  free,
  heard,
  joined,
  keyOf,
  overwrite,
  owner,
  ownerWithCredit,
  reportOf,
  type Step,
  storeWith,
} from './support/driven-election.js';

const credit = { gen: 2, leftMs: 60_000 };
const unanswered: Input = { type: 'disconnected', isUnanswered: true };
const replaced: Input = { type: 'failed', isReplaced: true };
const refused: Input = { type: 'failed', isReplaced: false };
const engine = (isConnected: boolean): Input => ({ type: 'engine', isConnected });
const offer = (fields: Partial<ClusterKey> = {}): Input => ({
  type: 'offer',
  offer: { key: keyOf(fields), revision: 1 },
});
const standby = (replica: string, since = 1): Input => ({ type: 'standby', presence: { replica, since } });
const asked = (gen: number, of: string): Input => ({ type: 'asked', question: { gen, owner: of } });
const current = ({ store }: DrivenElection): ClusterKey | undefined => store.current();

/** Starts an election over an empty store. */
const fresh = (...steps: readonly Step[]): DrivenElection => {
  const replica = new DrivenElection();
  replica.give(...steps, 'start');
  return replica;
};

/** Starts an election over a key, and lets something happen. */
const after = (key: Partial<ClusterKey>, ...steps: readonly Step[]): DrivenElection => {
  const replica = joined(key);
  replica.give(...steps);
  return replica;
};

/** Writes the key as another replica. */
const written =
  (fields: Partial<ClusterKey> = {}): Change =>
  (replica) =>
    overwrite(replica, fields);
const wiped: Change = ({ store }) => store.wipe();
const damaged: Change = ({ store }) => store.damage();
const untilClaiming: Change = (replica) => replica.passUntil(() => replica.state.name === 'claiming');

/** Starts an election that plans a claim, and finds another owner of the generation, because data was lost. */
const foundOther = (): DrivenElection => {
  const replica = after(free, untilClaiming, wiped, written({ owner: 'third' }), 50);
  expect(replica.writes).toEqual([]);
  return replica;
};

/** Starts an election whose account is used for another feed or service, by a silent owner. */
const misfit = (settings: Partial<ElectionSettings> = {}, key: Partial<ClusterKey> = {}): DrivenElection => {
  const replica = new DrivenElection({ feed: 'raw', service: 'a#1', ...settings }, storeWith(key));
  replica.owner = 'no-answer';
  replica.give('start');
  return replica;
};

/** Replicas delay a claim by a random 0 to 50 ms; these take the middle. */
const spread = 25;

describe('a replica claims', () => {
  const [away, back] = [engine(false), engine(true)];
  const noAnswer = { owner: 'no-answer' } as const;
  const newest = heard({ gen: 5, owner: 'newest' });

  const repaired = (): DrivenElection => {
    const replica = fresh(damaged);
    replica.give(30_000, ({ store }) => store.write(keyOf(free), 1));
    return replica;
  };

  it.each<[string, number, afterMs: number, () => DrivenElection, credits?: ClusterKey['credits']]>([
    ['a key that does not exist, after two questions without a responder', 1, 150, () => fresh()],
    ['a key that does not exist after a lease, if nobody answers', 1, 2_000, () => fresh(noAnswer)],
    ['a key that does not exist, also if its clock is at 10 s', 1, 2_000, () => fresh(noAnswer, { now: 10_000 })],
    ['above frames whose keys the store has lost', 4, 150, () => fresh({ followed: { gen: 3, owner: 'other' } })],
    ['a free key at once', 4, 0, () => joined(free)],
    [
      'when a silent owner has no responder twice, with its credits',
      4,
      750,
      () => after({ credits: [credit] }),
      [credit],
    ],
    ['later if it has heard the owner meanwhile', 4, 750, () => after({}, 300, heard())],
    ['as soon after a write that the silent owner did not report', 4, 350, () => after({}, 400, written())],
    ['as soon after such a write of `open`', 4, 350, () => after({ phase: 'opening' }, 400, written())],
    ['a lease after the first question, if nobody answers', 4, 2_200, () => after({}, 400, written(), noAnswer)],
    ['at the first question, if a write has released the key', 4, 200, () => after({}, 400, written(free), noAnswer)],
    [
      'later if an owner writes its key after the first question',
      4,
      2_625,
      () => after({}, noAnswer, 1_400, written()),
    ],
    ['after the store has answered again', 4, 1_150, () => after({}, { mode: 'away' }, 1_250, { mode: 'good' })],
    ['a full lease after the engine is back', 4, 2_000, () => after({}, away, 10_000, back)],
    ['above an owner whose key the store has lost', 6, 150, () => after({}, newest, 'stop-notice')],
    ['after a lease if only an earlier owner answers', 6, 2_000, () => after({}, newest, { owner: reportOf() })],
    ['when another owner of a generation that was used again does not answer', 4, 125, foundOther],
    ['for another feed later than replicas that fit, if the owner does not answer', 4, 5_000, () => misfit()],
    ['a key that was damaged, when it is repaired', 4, 500, repaired],
  ])('%s', (_, gen, afterMs, start, credits = []) => {
    const replica = start();
    replica.pass(afterMs + spread - 1);
    expect(replica.writes).toEqual([]);
    replica.pass(1);
    expect(replica.writes).toEqual([`opening ${gen}`]);
    expect(current(replica)).toMatchObject({ owner: 'me', credits });
  });
});

describe('a replica that joins', () => {
  it('announces itself before the store has answered, unless it only follows, and accepts an offer', () => {
    const join = (canOwn: boolean) => {
      const replica = new DrivenElection({ canOwn }, storeWith());
      replica.mode = 'away';
      replica.give('start');
      return replica;
    };
    expect(join(false).pass(0)).toBe('');
    const replica = join(true);
    expect(replica.pass(0)).toBe('presence');
    expect(replica.state.name).toBe('joining');
    replica.give(heard());
    expect(replica.state.name).toBe('joining');
    replica.mode = 'good';
    expect(replica.give(offer())).toBe('beat open');
    expect(replica.writes).toEqual(['opening 4']);
  });

  it('reads again if the store did not answer, or if the engine was unreachable from the start', () => {
    for (const back of [[], [engine(false), engine(true)]]) {
      const replica = new DrivenElection({}, storeWith());
      replica.give({ mode: 'away' }, 'start', 1_000, { mode: 'good' }, ...back, 500);
      expect(replica.state.name).toBe('following');
    }
  });
});

describe('a follower', () => {
  it('waits longer after three claims in a minute', () => {
    const replica = joined();
    const seconds = Array.from({ length: 6 }, () => {
      const { length } = replica.writes;
      const from = replica.now;
      replica.passUntil(() => replica.writes.length > length);
      const gen = replica.election.gen + 1;
      overwrite(replica, { gen });
      replica.give(heard({ gen, revision: replica.election.call?.id ?? 2 * gen }));
      return Math.round((replica.now - from) / 1_000);
    });
    expect(seconds).toEqual([1, 1, 1, 3, 5, 9]);
  });

  it('only follows with `canOwn: false`, even if the key is free', () => {
    const replica = joined({}, { canOwn: false });
    replica.give(heard(), heard({ owner: '', phase: 'free' }));
    expect(replica.pass(60_000)).toBe('');
    expect(replica.questions).toEqual([]);
    expect(replica.writes).toEqual([]);
  });

  it('does not follow an owner whose frames it would drop, and asks it for a higher generation', () => {
    const replica = new DrivenElection({}, storeWith({ gen: 2 }));
    replica.give({ followed: { gen: 3, owner: 'dead' }, owner: reportOf({ revision: 2 }) }, 'start');
    for (let n = 0; n < 4; n += 1) replica.give(heard(), 250);
    expect(replica.election.known).not.toMatchObject({ gen: 3 });
    expect(replica.questions.at(-1)).toEqual({ gen: 3, owner: 'dead' });
    replica.give(heard({ gen: 4 }));
    expect(replica.election.known).toMatchObject({ gen: 4, owner: 'other' });
  });

  it('asks as if it knew no owner if the key and the frames that it emits are of two owners of one generation', () => {
    const replica = after({}, heard(), { followed: { gen: 3, owner: 'dead' } }, 700);
    expect(replica.questions.at(-1)).toEqual({ gen: 3, owner: '' });
  });
});

it('keeps asking if an owner of an earlier generation answers', () => {
  const replica = after({}, heard({ gen: 5, owner: 'newest' }), { owner: reportOf() }, 1_999);
  expect(replica.questions.length).toBeGreaterThan(5);
});

it('follows another owner of its generation, after a loss of data, when that has a higher one', () => {
  const replica = foundOther();
  replica.give(heard({ owner: 'third' }));
  expect(replica.election.known).toMatchObject({ gen: 3, owner: '' });
  replica.give(heard({ owner: 'third', gen: 4 }));
  expect(replica.election.known).toMatchObject({ gen: 4, owner: 'third' });
  expect(replica.state.name).toBe('following');
});

it.each<[string, readonly Step[], (replica: DrivenElection) => unknown]>([
  [
    'it hears the owner',
    Array.from({ length: 100 }, (_, revision) => [500, heard({ revision })]).flat(),
    ({ state }) => state.name === 'following',
  ],
  [
    'only earlier questions find no responder',
    Array<Input>(3).fill({ type: 'ask', id: -1, result: 'no-responders' }),
    () => true,
  ],
  ['the service has refused its key, whenever that is reported', [refused, 20_000], () => true],
  [
    'another replica has written the key in the meantime',
    [600, written({ gen: 4, owner: 'third' }), 300],
    ({ election: { known } }) => known.gen === 4 && known.owner === 'third',
  ],
  ['the key of the silent owner cannot be read', [damaged, 10_000], ({ state }) => state.name === 'following'],
  [
    'it has only its own messages, and the reports of a feed that it has closed',
    [heard({ gen: 9, owner: 'me' }), 'handshake', 'opened', unanswered, replaced],
    ({ election }) => election.gen === 3,
  ],
])('a follower does not claim if %s', (_, steps, isRight) => {
  const replica = after({}, ...steps);
  expect(replica.writes).toEqual([]);
  expect(isRight(replica)).toBe(true);
});

describe('a replica whose claim has no result', () => {
  /** `isRead`: only the key was read, and the claim was sent. */
  const claiming = (isRead: boolean) => {
    const replica = joined(free);
    replica.give(untilClaiming, { mode: 'away' }, 50);
    if (isRead) replica.answer();
    expect(replica.writes).toEqual(isRead ? ['opening 4'] : []);
    return replica;
  };

  it('accepts an offer, or leaves at once, while it only reads the key', () => {
    const replica = claiming(false);
    replica.give(offer());
    expect(replica.writes).toEqual(['opening 4']);
    expect(claiming(false).give('hand-over')).toBe('left');
  });

  it('leaves, if it must, once another replica has claimed', () => {
    const replica = claiming(true);
    replica.give('hand-over', { mode: 'good' }, written({ gen: 4, owner: 'third' }));
    expect(replica.answer({ type: 'conflict' })).toBe('left');
    expect(current(replica)).toMatchObject({ gen: 4, owner: 'third' });
  });

  it('releases the key, if it must leave, once it finds that the claim was written', () => {
    const replica = claiming(true);
    replica.give('hand-over');
    overwrite(replica, replica.election.call!.key!);
    replica.mode = 'good';
    expect(replica.pass(1_000)).toContain('left');
    expect(current(replica)).toMatchObject({ phase: 'free', owner: '', gen: 4 });
  });
});

describe('an owner', () => {
  it('renews its key, and sends beats', () => {
    const replica = owner();
    const { length } = replica.writes;
    const beats = replica.pass(10_000).split(' ');
    expect(replica.writes).toHaveLength(length + 20);
    expect(beats.filter((type) => type === 'beat').length).toBeGreaterThanOrEqual(40);
    expect(current(replica)).toMatchObject({ phase: 'open', owner: 'me' });
  });

  it('sends no handshake in the last part of its lease, before a new write', () => {
    const replica = claimed();
    expect(replica.give({ mode: 'away' }, 1_800, 'handshake')).not.toContain('allow');
    expect(replica.give({ mode: 'good' }, 1_000)).toContain('allow');
  });

  it('sends no handshake after a jump of the wall clock, before a new write', () => {
    const replica = claimed();
    replica.wallShift = 60_000;
    expect(replica.give('handshake')).toContain('allow');
    expect(replica.writes).toEqual(['opening 4', 'opening 4']);
  });

  it('sends no handshake after its connection was lost, if the write of `open` had no result', () => {
    const replica = new DrivenElection();
    replica.give('start', 1_000, 'handshake', { mode: 'lost' });
    expect(replica.give('opened', { type: 'disconnected', isUnanswered: false }, 'handshake')).not.toContain('allow');
    expect(replica.give({ mode: 'good' }, 2_000)).toContain('allow');
    expect(replica.writes.at(-1)).toBe('opening 1');
  });

  it('keeps its connection while the engine is away, and its key afterwards', () => {
    const replica = owner();
    replica.give(engine(false));
    expect(replica.pass(60_000)).toBe('');
    expect(replica.give(engine(true))).not.toContain('close');
    expect(replica.state).toMatchObject({ name: 'open', gen: 1 });
  });

  it('reads its key at once when the engine is back, also if a write was under way', () => {
    const replica = owner();
    replica.give({ mode: 'away' }, 500);
    expect(replica.election.call).toMatchObject({ purpose: 'renew' });
    replica.give(engine(false), engine(true));
    expect(replica.election.call).toMatchObject({ purpose: 'confirm' });
  });

  it.each<[string, Change]>([
    ['the store was wiped', wiped],
    ['the store went back in time', ({ store }) => store.rollBack(4)],
    ['something has damaged it', damaged],
  ])('writes its key again after %s', (_, lose) => {
    const replica = owner();
    replica.give(3_000, lose, 600);
    expect(current(replica)).toMatchObject({ gen: 1, owner: 'me', phase: 'open' });
    expect(replica.state).toMatchObject({ name: 'open', gen: 1 });
  });

  it('claims again, with a credit, when it learns of a later owner whose key the store has lost: that may still open', () => {
    const replica = owner();
    expect(replica.give(asked(7, 'gone'))).toContain('answer');
    expect(current(replica)).toMatchObject({ gen: 8, owner: 'me', credits: [{ gen: 7, leftMs: 65_000 }] });
    replica.give(replaced);
    expect(replica.state).toMatchObject({ name: 'opening', gen: 8, credits: [] });
  });

  it('claims again in a higher generation when a replica knows of its release, which the store has lost', () => {
    const replica = owner();
    expect(replica.give(asked(1, ''))).toMatch(/^answer beat/);
    expect(current(replica)).toMatchObject({ gen: 2, owner: 'me' });
    expect(owner().give(asked(1, 'me'))).toBe('answer');
  });

  it('closes its connection soon after the next owner has opened one, or when its own has ended', () => {
    const replica = owner();
    expect(replica.give(heard({ gen: 2, phase: 'opening' }), heard({ gen: 2 }))).toBe('');
    expect(replica.pass(99)).not.toContain('close');
    expect(replica.pass(1)).toBe('close end');
    expect(owner().give(heard({ gen: 2, phase: 'opening' }), unanswered)).toBe('close end');
    const lonely = owner();
    lonely.give(heard({ gen: 2, phase: 'opening' }), { owner: reportOf({ gen: 2, phase: 'opening' }) });
    expect(lonely.pass(1_999)).not.toContain('close');
    expect(lonely.pass(1)).toContain('close end');
  });

  it.each([
    ['of a later one, whose key the store has lost', { gen: 3, owner: 'other' }, 4],
    ['of another owner of its generation', { gen: 1, owner: 'other' }, 2],
    ['of itself', { gen: 1, owner: 'me' }, 1],
  ])('claims again in a higher generation if it emits frames %s', (_, followed, gen) => {
    const replica = owner();
    replica.give({ followed }, 250);
    expect(replica.state).toMatchObject({ name: 'open', gen });
    expect(current(replica)).toMatchObject({ gen, owner: 'me' });
  });

  it('stops when the replica that asks knows a later generation, and does not overwrite the stop of that one', () => {
    const replica = owner();
    overwrite(replica, { gen: 2, owner: '', phase: 'stopped' });
    expect(replica.give(asked(2, 'third'))).toContain('fail');
    expect(current(replica)).toMatchObject({ gen: 2, phase: 'stopped' });
  });

  it('gives way to a later owner whose frames it would drop, and does not follow it', () => {
    const replica = owner();
    replica.give({ followed: { gen: 2, owner: 'dead' } }, heard({ gen: 2 }));
    expect(replica.state.name).toBe('following');
    expect(replica.election.known).toMatchObject({ gen: 1, owner: 'me' });
  });

  it.each([heard({ gen: 1 }), { type: 'stop-notice' } as const])(
    'reads its key, and keeps it, after $type',
    (input) => {
      const replica = owner();
      const { length } = replica.writes;
      expect(replica.give(input)).not.toContain('close');
      expect(replica.writes.slice(length)).toEqual(['open 1']);
      expect(replica.state).toMatchObject({ name: 'open', gen: 1 });
    },
  );

  it('sends no handshake after one that had no answer, before a write has its credit', () => {
    const replica = claimed();
    replica.give('handshake', { mode: 'away' });
    expect(replica.give(unanswered, 'handshake')).not.toContain('allow');
    expect(replica.give({ mode: 'good' }, 1_000)).toContain('allow');
    expect(current(replica)?.credits).toMatchObject([{ gen: 4 }]);
  });

  it('keeps the credit of a handshake that was sent, when its sender voids the one of its displacement', () => {
    const sent = { gen: 4, leftMs: 60_000 };
    const replica = joined({ phase: 'opening', credits: [sent], gen: 4 });
    replica.pass(4_000);
    const [ofHandshake] = replica.state.credits!;
    expect(replica.state.credits).toHaveLength(2);
    replica.give({ type: 'voided', gen: 4 });
    expect(replica.state.credits).toEqual([ofHandshake]);
  });
});

describe('an owner whose connection was replaced', () => {
  it('stops and notifies all replicas if there is no credit', () => {
    const replica = owner();
    expect(replica.give(replaced)).toBe('stop-notice close end fail');
    expect(current(replica)).toMatchObject({ phase: 'stopped', owner: '', stop: { by: 'me' } });
  });

  it('does not use a credit after 65 s', () => {
    const replica = ownerWithCredit();
    replica.pass(65_001);
    expect(replica.give(replaced)).toContain('fail');
  });

  it('stops at the fourth eviction in a minute, even with a credit', () => {
    const evictions = [50_000, 40_000, 30_000].map((leftMs) => ({ leftMs }));
    for (const [count, end] of [
      [3, 'fail'],
      [2, 'open'],
    ] as const) {
      const replica = ownerWithCredit();
      replica.give({ type: 'evicted', evictions: evictions.slice(0, count) });
      expect(replica.give(replaced)).toContain(end);
    }
  });

  it.each<[string, readonly Input[]]>([
    ['', []],
    [', also if it reads its own key again', [{ type: 'stop-notice' }]],
  ])('opens nothing while the store is away, and claims no sooner than a lease after that%s', (_, notice) => {
    const replica = owner();
    replica.owner = 'no-answer';
    expect(replica.give(engine(false), replaced)).toBe('');
    expect(replica.pass(60_000)).toBe('');
    replica.give(engine(true), ...notice);
    expect(current(replica)?.phase).toBe('open');
    expect(replica.state.name).toBe('following');
    const { length } = replica.writes;
    replica.pass(1_999);
    expect(replica.writes).toHaveLength(length);
  });

  it('claims no sooner than a lease after the engine is back, even if the key is lost', () => {
    const replica = owner();
    replica.give({ owner: 'no-answer' }, engine(false), replaced, 60_000, wiped, engine(true));
    const { length } = replica.writes;
    replica.pass(2_000 + spread - 1);
    expect(replica.writes).toHaveLength(length);
    replica.pass(1);
    expect(replica.writes.slice(length)).toEqual(['opening 2']);
  });

  it('follows once its lease is over, and reports the eviction to the next owner', () => {
    const replica = owner();
    replica.give({ mode: 'away' }, 2_100);
    expect(replica.give(replaced)).not.toContain('fail');
    replica.give({ mode: 'good' }, 500);
    expect(current(replica)?.phase).not.toBe('stopped');
    expect(replica.give(heard({ gen: 2 }))).toBe('evicted');
    expect(replica.effects).toMatchObject([{ evictions: [{ leftMs: expect.any(Number) }] }]);
  });
});

describe('a hand-over', () => {
  it('offers the ownership to the youngest standby first, then to the next', () => {
    const replica = owner();
    replica.pass(300);
    replica.give(standby('old', 1), standby('young', 3), standby('middle', 2), 'hand-over');
    const { revision } = replica.state;
    const { length } = replica.writes;
    expect(replica.effects).toMatchObject([{ type: 'offer', to: 'young', offer: { revision } }]);
    replica.pass(499);
    expect(replica.writes).toHaveLength(length);
    replica.pass(101);
    const next = { type: 'offer', to: 'middle', offer: { revision: replica.state.revision } };
    expect(replica.effects).toContainEqual(
      expect.objectContaining({ ...next, offer: expect.objectContaining(next.offer) }),
    );
    expect(replica.state.revision).not.toBe(revision);
  });

  it('ends when the standby has replaced the connection', () => {
    const replica = owner();
    expect(replica.give(standby('young'), 'hand-over', heard({ gen: 2, phase: 'opening' }))).toBe('offer');
    expect(replica.give(replaced)).toBe('close end left');
  });

  it('releases the key if there is no standby, or only one that is silent for 3 s', () => {
    for (const silent of [[], [standby('young')]]) {
      const replica = owner();
      replica.give(...silent);
      replica.pass(3_000);
      expect(replica.give('hand-over')).toBe('close end beat left');
      expect(current(replica)).toMatchObject({ phase: 'free', owner: '', gen: 1 });
    }
  });

  it.each<[string, Input]>([
    ['has ended', { type: 'disconnected', isUnanswered: false }],
    ['was replaced by a late handshake', replaced],
  ])('releases the key, and opens no other connection, if the connection %s', (_, end) => {
    const replica = ownerWithCredit();
    expect(replica.give(standby('young'), 'hand-over')).toBe('offer');
    expect(replica.give(end)).toMatch(/^(open )?close end beat left$/);
    expect(current(replica)).toMatchObject({ phase: 'free', owner: '' });
  });

  it('leaves after its deadline, and at once without the engine or without the ownership', () => {
    const replica = owner();
    replica.give({ mode: 'away' }, 'hand-over');
    expect(replica.pass(4_999)).not.toContain('left');
    expect(replica.pass(1)).toBe('close end left');
    expect(owner().give(engine(false), 'hand-over')).toBe('close end left');
    expect(joined().give('hand-over')).toBe('left');
  });
});

describe('a replica whose key the service refuses', () => {
  const barred = (...before: readonly Input[]) => {
    const replica = claimed();
    replica.give(...before);
    expect(replica.give(refused)).toBe('close end beat');
    return replica;
  };

  it('claims when the owner that opened a connection after it is gone, later than other candidates would', () => {
    const replica = barred(standby('other'));
    overwrite(replica, { gen: 5 });
    replica.give(heard({ gen: 5, revision: 4 }));
    replica.pass(600 + 150 + 599);
    expect(replica.writes).toEqual(['opening 4', 'free 4']);
    replica.pass(60);
    expect(replica.writes).toEqual(['opening 4', 'free 4', 'opening 6']);
    replica.give('handshake', 'opened');
    expect(replica.election.refusal).toBeUndefined();
  });

  it('accepts no offer, and does not announce itself', () => {
    const replica = barred(standby('other'));
    replica.give(heard({ gen: 5 }));
    replica.owner = reportOf({ gen: 5 });
    expect(replica.pass(5_000)).toBe('');
    expect(replica.give(offer({ gen: 5 }))).toBe('');
  });

  it.each<[string, (replica: DrivenElection, store: Store) => unknown, string]>([
    ['fails if it knows no other candidate', () => undefined, 'stopped'],
    [
      'follows if another replica has claimed meanwhile',
      (_, store) => store.write(keyOf({ gen: 5, owner: 'third' }), 3),
      'following',
    ],
    ['follows if another candidate reports itself meanwhile', (replica) => replica.give(standby('third')), 'following'],
  ])('%s', (_, before, name) => {
    const store = storeWith(free);
    let hasRead = false;
    const read: Store['read'] = () => {
      if (!hasRead && replica.election.call?.purpose === 'check-unowned') {
        hasRead = true;
        before(replica, store);
      }
      return store.read();
    };
    const replica = new DrivenElection({}, { ...store, read });
    replica.give('start', 50, refused);
    replica.passUntil(() => hasRead);
    expect(replica.state.name).toBe(name);
  });
});

describe('a replica whose account is used for another feed or service', () => {
  it.each([true, false])('fails when the owner answers, and names what the owner streams (canOwn: %s)', (canOwn) => {
    const replica = misfit({ canOwn }, { service: 'a#1' });
    replica.owner = reportOf();
    replica.pass(0);
    expect(replica.effects).toEqual([{ type: 'fail', isReplaced: false, other: { feed: 'market', service: 'a#1' } }]);
    expect(replica.writes).toEqual([]);
  });

  it('fails for another service of the same feed, even after a stop', () => {
    expect(misfit({ feed: 'market' }, { service: 'b#2', owner: '', phase: 'stopped' }).state.name).toBe('stopped');
  });

  it('follows an owner of the first versions, whose key names no service', () => {
    const replica = misfit({ feed: 'market' });
    replica.owner = reportOf();
    replica.pass(5_000);
    expect(replica.state).toMatchObject({ name: 'following', other: undefined });
  });

  it('claims a free key at once, and accepts no offer', () => {
    const replica = misfit({}, free);
    replica.pass(50);
    expect(current(replica)).toMatchObject({ gen: 4, feed: 'raw' });
    expect(misfit().give(offer())).toBe('');
  });

  const me = 'me-0123456789ab00000001';
  const other = 'other-0123456789ab00000002';
  it('fails as a follower when an owner of another feed has claimed', () => {
    const replica = joined({}, { replica: me });
    const report = { gen: 4, owner: other, revision: 2 };
    replica.give(written({ gen: 4, owner: other, feed: 'raw' }), { owner: reportOf(report) }, heard(report), 0);
    expect(replica.effects).toEqual([{ type: 'fail', isReplaced: false, other: { feed: 'raw' } }]);
  });

  it('is no standby for the owner', () => {
    const replica = new DrivenElection({ replica: me });
    replica.give(standby(other));
    expect(replica.election.standbys).toEqual([]);
  });
});

describe('a key that cannot be read', () => {
  it('is replaced by an owner that leaves', () => {
    const replica = owner();
    replica.give(damaged, 'hand-over');
    expect(current(replica)).toMatchObject({ phase: 'free' });
  });

  it('is not claimed by a replica that saw it free before: that one follows', () => {
    const replica = after(free, damaged, 50);
    expect(replica.writes).toEqual([]);
    expect(replica.state.name).toBe('following');
  });

  it('does not delay a replica that leaves', () => {
    expect(fresh(damaged).give('hand-over')).toBe('left');
  });
});

describe('the key', () => {
  it.each([
    ['no JSON', { feed: 'market', epoch: expect.any(Number), gen: 0 }],
    ['{"feed":"other","epoch":-1,"gen":"7"}', { feed: 'market', epoch: expect.any(Number), gen: 0 }],
    ['{"feed":"raw","epoch":5,"gen":7}', { feed: 'raw', epoch: 5, gen: 7 }],
  ])('keeps the numbers of a damaged text when it is repaired: %s', (text, kept) => {
    expect(repairedKey(text)).toMatchObject({ v: 1, ...kept });
  });

  it('is read as it was written', () => {
    const changes = [{ gen: 3, owner: 'other', since: 1, cause: 'silence' }] as const;
    const key = keyOf({ credits: [credit], evictions: [{ leftMs: 1 }], changes, stop: { by: 'x', at: 1 } });
    expect(readKey(writeKey(key))).toEqual(key);
  });

  it.each(['', 'null', '{}', '{"v":2}', writeKey(keyOf()).replace('"gen":3', '"gen":-1')])(
    'cannot be read if it is %j',
    (text) => {
      expect(readKey(text)).toBeUndefined();
    },
  );
});

describe('the changes of the owner', () => {
  const changesOf = (replica: DrivenElection) =>
    current(replica)?.changes.map((change) => [change.gen, change.owner, change.cause]);
  const before = { gen: 3, owner: 'other', since: 1, cause: 'first' } as const;
  const claimedAfter = (key: Partial<ClusterKey>, ...inputs: readonly Input[]) =>
    after({ changes: [before], ...key }, ...inputs, 3_000);

  it.each<[string, Partial<ClusterKey>, readonly Input[], string]>([
    ['an owner that did not answer', {}, [], 'silence'],
    ['an owner that gave the ownership away', free, [], 'released'],
    ['an operator that resumed the cluster', { ...free, stop: { by: 'other', at: 5 } }, [], 'resumed'],
  ])('name the cause: %s', (_, key, inputs, cause) => {
    const replica = claimedAfter(key, ...inputs);
    expect(changesOf(replica)).toEqual([
      [3, 'other', 'first'],
      [4, 'me', cause],
    ]);
    expect(current(replica)?.stop).toBeUndefined();
  });

  it('stay in the key while the owner renews it, after a wipe of the store, and after a stop', () => {
    const replica = claimedAfter({});
    const changes = changesOf(replica);
    replica.give('handshake', 'opened', wiped, 1_000);
    expect(current(replica)).toMatchObject({ phase: 'open', owner: 'me' });
    expect(changesOf(replica)).toEqual(changes);
    replica.give(replaced);
    const stopped = current(replica)!;
    expect(stopped.phase).toBe('stopped');
    expect(resumedKey(stopped)).toMatchObject({ phase: 'free', owner: '', stop: stopped.stop, changes: [{}, {}] });
  });

  it('are the last six', () => {
    const changes = Array.from({ length: 6 }, (_, gen) => ({ ...before, gen }));
    const replica = claimedAfter({ changes });
    expect(changesOf(replica)?.map(([gen]) => gen)).toEqual([1, 2, 3, 4, 5, 4]);
  });
});
