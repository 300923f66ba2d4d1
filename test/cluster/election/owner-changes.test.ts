import { describe, expect, it } from '@jest/globals';
import { type ClusterKey, resumedKey } from '../../../src/cluster/election/cluster-key.js';
import type { Input } from '../../../src/cluster/election/election.js';
import type { Store } from '../simulation/store.js';
import { driveElection, driveOwner } from './driven-election.js';
import { keyOf, storeWith } from './keys.js';

describe('the changes of the owner', () => {
  const changesOf = (store: Store) => store.current()?.changes.map(({ gen, owner, cause }) => [gen, owner, cause]);
  const before = { gen: 3, owner: 'other', since: 1, cause: 'first' } as const;
  const claimed = (key: Partial<ClusterKey>, ...inputs: readonly Input[]) => {
    const election = driveElection({}, storeWith({ changes: [before], ...key }));
    election.give({ type: 'start' });
    for (const each of inputs) election.give(each);
    election.pass(3_000);
    return election;
  };
  const stop = { by: 'other', at: 5 };

  it('begin with the first owner', () => {
    const { store } = driveOwner();
    expect(store.current()?.changes).toEqual([{ gen: 1, owner: 'me', since: store.current()?.since, cause: 'first' }]);
  });

  it.each<[string, Partial<ClusterKey>, readonly Input[], string]>([
    ['an owner that did not answer', {}, [], 'silence'],
    ['an owner that gave the ownership away', { owner: '', phase: 'free' }, [], 'released'],
    ['an operator that resumed the cluster', { owner: '', phase: 'free', stop }, [], 'resumed'],
    [
      'an offer of the owner',
      {},
      [{ type: 'offer', offer: { key: keyOf({ changes: [before] }), revision: 1 } }],
      'hand-over',
    ],
  ])('name the cause: %s', (_, key, inputs, cause) => {
    const { store } = claimed(key, ...inputs);
    expect(changesOf(store)).toEqual([
      [3, 'other', 'first'],
      [4, 'me', cause],
    ]);
    expect(store.current()?.stop).toBeUndefined();
  });

  it('do not call an owner the first one if the store has lost its key', () => {
    const election = driveElection({}, storeWith());
    election.give({ type: 'start' });
    election.store.wipe();
    election.pass(3_000);
    expect(changesOf(election.store)).toEqual([[4, 'me', 'silence']]);
  });

  it('stay in the key while the owner renews it, after a wipe of the store, and after a stop', () => {
    const election = claimed({});
    const changes = changesOf(election.store);
    election.give({ type: 'handshake' });
    election.give({ type: 'opened' });
    election.store.wipe();
    election.pass(1_000);
    expect(election.store.current()).toMatchObject({ phase: 'open', owner: 'me' });
    expect(changesOf(election.store)).toEqual(changes);
    election.give({ type: 'failed', isReplaced: true });
    const stopped = election.store.current()!;
    expect(stopped.phase).toBe('stopped');
    expect(resumedKey(stopped)).toMatchObject({ phase: 'free', owner: '', stop: stopped.stop, changes: [{}, {}] });
  });

  it('are the last six', () => {
    const changes = Array.from({ length: 6 }, (_, n) => ({ ...before, gen: n }));
    const { store } = claimed({ changes });
    expect(store.current()?.changes).toHaveLength(6);
    expect(store.current()?.changes.slice(0, 5)).toEqual(changes.slice(1));
    expect(store.current()?.changes.at(-1)).toMatchObject({ gen: 4, cause: 'silence' });
  });
});
