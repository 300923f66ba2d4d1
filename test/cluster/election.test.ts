import { describe, expect, it } from '@jest/globals';
import { repairedKey, type ClusterKey, readKey, resumedKey, writeKey } from '../../src/cluster/election/cluster-key.js';
import type { ElectionSettings, Input } from '../../src/cluster/election/election.js';
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
  const replica = new DrivenElection({ source: 'raw from a#1', ...settings }, storeWith(key));
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

  it.each<[string, number, afterMs: number, () => DrivenElection]>([
    ['a key that does not exist, after two questions without a responder', 1, 150, () => fresh()],
    ['later if it has heard the owner meanwhile', 4, 750, () => after({}, 300, heard())],
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
    ['when another owner of a generation that was used again does not answer', 4, 125, foundOther],
    ['for another feed later than replicas that fit, if the owner does not answer', 4, 5_000, () => misfit()],
    ['a key that was damaged, when it is repaired', 4, 500, repaired],
  ])('%s', (_, gen, afterMs, start) => {
    const replica = start();
    replica.pass(afterMs + spread - 1);
    expect(replica.writes).toEqual([]);
    replica.pass(1);
    expect(replica.writes).toEqual([`opening ${gen}`]);
    expect(current(replica)).toMatchObject({ owner: 'me', credits: [] });
  });
});

describe('a replica that joins', () => {
  it('announces itself before the store has answered, and accepts an offer, or only follows with `canOwn: false`', () => {
    const join = (canOwn: boolean) => {
      const replica = new DrivenElection({ canOwn }, storeWith());
      replica.mode = 'away';
      replica.give('start');
      return replica;
    };
    const follower = join(false);
    expect(follower.give({ mode: 'good' }, 0, heard(), heard({ owner: '', phase: 'free' }), 60_000)).toBe('');
    expect([...follower.questions, ...follower.writes]).toEqual([]);
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

it.each<[string, readonly Step[], (replica: DrivenElection) => unknown]>([
  [
    'an owner of an earlier generation answers',
    [heard({ gen: 5, owner: 'newest' }), { owner: reportOf() }, 1_999],
    ({ questions }) => questions.length > 5,
  ],
  ['the service has refused its key, whenever that is reported', [refused, 20_000], () => true],
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

  it('leaves, if it must: at once while it only reads the key, or else once another replica has claimed', () => {
    expect(claiming(false).give('hand-over')).toBe('left');
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
  it('renews its key, sends beats, and keeps its connection and its key while the engine is away', () => {
    const replica = owner();
    const { length } = replica.writes;
    const beats = replica.pass(10_000).split(' ');
    expect(replica.writes).toHaveLength(length + 20);
    expect(beats.filter((type) => type === 'beat').length).toBeGreaterThanOrEqual(40);
    replica.give({ mode: 'away' }, 500);
    expect(replica.election.call).toMatchObject({ purpose: 'renew' });
    replica.give(engine(false), engine(true));
    expect(replica.election.call).toMatchObject({ purpose: 'confirm' });
    replica.give(engine(false));
    expect(replica.pass(60_000)).toBe('');
    expect(replica.give(engine(true))).not.toContain('close');
    expect(replica.state).toMatchObject({ name: 'open', gen: 1 });
  });

  it.each<[string, readonly Step[], number]>([
    ['in the last part of its lease', [{ mode: 'away' }, 1_800], 0],
    ['after a jump of the wall clock', [{ wallShift: 60_000 }, { mode: 'away' }], 0],
    ['after one that had no answer', ['handshake', { mode: 'away' }, unanswered], 1],
  ])('sends no handshake %s, before a new write', (_, steps, credits) => {
    const replica = claimed();
    replica.give(...steps);
    expect(replica.give('handshake')).not.toContain('allow');
    expect(replica.give({ mode: 'good' }, 1_000)).toContain('allow');
    expect(current(replica)?.credits).toHaveLength(credits);
  });

  it('claims again above what the store has lost: a later owner, with a credit because that may still open, or its own release', () => {
    const replica = owner();
    expect(replica.give(asked(7, 'gone'))).toContain('answer');
    expect(current(replica)).toMatchObject({ gen: 8, owner: 'me', credits: [{ gen: 7, leftMs: 65_000 }] });
    replica.give(replaced);
    expect(replica.state).toMatchObject({ name: 'opening', gen: 8, credits: [] });
    const released = owner();
    expect(released.give(asked(1, ''))).toMatch(/^answer beat/);
    expect(current(released)).toMatchObject({ gen: 2, owner: 'me' });
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

  it('claims again above a generation that only the store of the line knows', () => {
    const replica = owner();
    replica.give({ type: 'fenced', gen: 1 });
    expect(current(replica)).toMatchObject({ gen: 1, owner: 'me' });
    replica.give({ type: 'fenced', gen: 3 });
    expect(current(replica)).toMatchObject({ gen: 4, owner: 'me', credits: [{ gen: 3, leftMs: 65_000 }] });
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

  it('keeps the credit of a handshake that was sent, when its sender voids the one of its displacement', () => {
    const sent = { gen: 4, leftMs: 60_000 };
    const replica = joined({ phase: 'opening', credits: [sent], gen: 4 });
    replica.pass(4_000);
    const [ofHandshake] = replica.state.credits!;
    expect(replica.state.credits).toHaveLength(2);
    replica.give({ type: 'voided', gen: 4 });
    expect(replica.state.credits).toEqual([ofHandshake]);
  });

  it('voids no credit while an earlier handshake, after which a connection has opened and ended, can still arrive', () => {
    const ended: Input = { type: 'disconnected', isUnanswered: false };
    expect(owner().give(ended, heard({ gen: 2 }))).toContain('voided');
    expect(ownerWithCredit().give(ended, heard({ gen: 2 }))).not.toContain('voided');
  });
});

describe('an owner whose connection was replaced', () => {
  it('stops and notifies all replicas if there is no credit', () => {
    const replica = owner();
    expect(replica.give(replaced)).toBe('stop-notice close end fail');
    expect(current(replica)).toMatchObject({ phase: 'stopped', owner: '', stop: { by: 'me' } });
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

  it('opens nothing while the store is away, and claims no sooner than a lease after it has read its own key again', () => {
    const replica = owner();
    replica.owner = 'no-answer';
    expect(replica.give(engine(false), replaced, 60_000)).toBe('');
    replica.give(engine(true), { type: 'stop-notice' });
    expect(current(replica)?.phase).toBe('open');
    expect(replica.state.name).toBe('following');
    const { length } = replica.writes;
    replica.pass(1_999);
    expect(replica.writes).toHaveLength(length);
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
  it('offers the ownership to the youngest standby first, then to the next, but to none that was silent for 3 s', () => {
    const replica = owner();
    replica.give(300, standby('silent', 4), 3_000);
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

describe('a hand-over that an operator requests', () => {
  const request: Input = { type: 'hand-over', rejoins: true };

  it('lets the replica follow the next owner, and claim again if there is none', () => {
    const replica = owner();
    expect(replica.give(standby('young'), request, heard({ gen: 2, phase: 'opening' }), replaced)).toBe(
      'offer close end',
    );
    expect(replica.state.name).toBe('following');
    const lonely = owner();
    lonely.give(request, 60_000);
    expect(lonely.state).toMatchObject({ name: 'opening', gen: 2 });
  });

  it('lets it join when the engine is back, if that is away', () => {
    const replica = owner();
    expect(replica.give(engine(false), request)).toBe('close end');
    expect(replica.state.name).toBe('joining');
    replica.give(engine(true));
    expect(replica.state.name).toBe('following');
  });

  it('does not bring a replica back that leaves for good, nor one that has to before', () => {
    expect(owner().give({ mode: 'away' }, 'hand-over', request, 5_000)).toMatch(/ left$/);
    expect(owner().give({ mode: 'away' }, request, 'hand-over', 5_000)).toMatch(/ left$/);
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

  it.each<[string, Step]>([
    ['another replica has claimed meanwhile', written({ gen: 5, owner: 'third' })],
    ['another candidate reports itself meanwhile', standby('third')],
  ])('reads the key again after 3 s, and follows if %s', (_, meanwhile) => {
    const replica = claimed();
    replica.give(refused, { mode: 'away' });
    replica.passUntil(() => replica.election.call?.purpose === 'check-unowned');
    expect(replica.now).toBeGreaterThan(3_000);
    replica.give(meanwhile);
    replica.answer();
    expect(replica.state.name).toBe('following');
  });
});

describe('a replica whose account is used for another feed or service', () => {
  it('fails for another service of the same feed after a stop, and says what the others stream', () => {
    const replica = misfit({ source: 'market from b#2' }, { owner: '', phase: 'stopped' });
    expect(replica.state.name).toBe('stopped');
    expect(replica.effects.at(-1)).toEqual({ type: 'fail', isReplaced: false, other: 'market from a#1' });
  });

  it('claims a free key at once, and accepts no offer', () => {
    const replica = misfit({}, free);
    replica.pass(50);
    expect(current(replica)).toMatchObject({ gen: 4, source: 'raw from a#1' });
    expect(misfit().give(offer())).toBe('');
  });

  it('fails as a follower when an owner of another feed has claimed, which is no standby for it before', () => {
    const other = 'other-0123456789ab00000002';
    const replica = joined({}, { replica: 'me-0123456789ab00000001' });
    replica.give(standby(other));
    expect(replica.election.standbys).toEqual([]);
    const report = { gen: 4, owner: other, revision: 2 };
    replica.give(
      written({ gen: 4, owner: other, source: 'raw from a#1' }),
      { owner: reportOf(report) },
      heard(report),
      0,
    );
    expect(replica.effects).toEqual([{ type: 'fail', isReplaced: false, other: 'raw from a#1' }]);
  });
});

describe('the key', () => {
  it('is replaced by an owner that leaves, and not claimed by a replica that saw it free before, if it cannot be read', () => {
    const replica = owner();
    replica.give(damaged, 'hand-over');
    expect(current(replica)).toMatchObject({ phase: 'free' });
    const follower = after(free, damaged, 50);
    expect(follower.writes).toEqual([]);
    expect(follower.state.name).toBe('following');
  });

  it.each([
    ['no JSON', 0],
    ['{"gen":"7"}', 0],
    ['{"gen":7}', 7],
  ])('keeps the generation of a damaged text when it is repaired: %s', (text, gen) => {
    expect(repairedKey(text)).toMatchObject({ v: 1, gen });
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
  const changes = Array.from({ length: 6 }, (_, gen) => ({ gen, owner: 'other', since: 1, cause: 'first' }) as const);

  it.each<[string, Partial<ClusterKey>, string]>([
    ['an owner that did not answer', {}, 'silence'],
    ['an owner that gave the ownership away', free, 'released'],
    ['an operator that resumed the cluster', { ...free, stop: { by: 'other', at: 5 } }, 'resumed'],
  ])('are the last six, and name the cause: %s', (_, key, cause) => {
    const replica = after({ changes, ...key }, 3_000);
    const claim = { gen: 4, owner: 'me', since: expect.any(Number), cause };
    expect(current(replica)?.changes).toEqual([...changes.slice(1), claim]);
    expect(current(replica)?.stop).toBeUndefined();
  });

  it('stay, with the stop as the reason of the next claim, when an operator allows the key again', () => {
    const stop = { by: 'other', at: 5 };
    const stopped = keyOf({ owner: '', phase: 'stopped', stop, changes, credits: [credit] });
    expect(resumedKey(stopped)).toEqual({ ...stopped, gen: 4, phase: 'free', credits: [] });
  });
});
