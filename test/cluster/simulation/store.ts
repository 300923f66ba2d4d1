import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import type { CallResult } from '../../../src/cluster/election/election.js';

interface Version {
  /** A value that is not a key: something has damaged it. */
  readonly key: ClusterKey | 'damaged' | undefined;
  readonly revision: number;
}

/** The store of the engine, with its faults: it can lose all data, or the newest writes. */
export interface Store {
  readonly read: () => CallResult;
  readonly write: (key: ClusterKey, expected: number | undefined) => CallResult;
  readonly wipe: () => void;
  /** Replaces the value with one that is not a key. Returns a function that returns whether the store has it since then. */
  readonly damage: () => () => boolean;
  /** Removes the newest writes. The next writes have the same revisions again. */
  readonly rollBack: (writes: number) => void;
  /** Removes the writes after a revision. */
  readonly rollBackTo: (revision: number) => void;
  readonly current: () => ClusterKey | undefined;
  /** The highest generation that the store has had, also in writes that it has lost. */
  readonly highest: () => number;
  /**
   * Whether the store has lost what explains a handshake of this generation: the claim that ended the generation before its owner wrote again. For
   * a slow or late handshake also the write with its credit, or the one that says that the owner was opening.
   */
  readonly hasLostReason: (gen: number | undefined, isSlow: boolean) => boolean;
  /** Whether the store has lost that the owner of this generation was opening, and still had that it was open. The next claim issues no credit. */
  readonly hasHiddenOpening: (gen: number | undefined) => boolean;
}

/** Creates an empty store. */
export const createStore = (): Store => {
  const versions: Version[] = [{ key: undefined, revision: 0 }];
  const lostReasons = new Set<number>();
  const hiddenOpenings = new Set<number>();
  const continued = new Set<number>();
  let highest = 0;
  const newest = (): Version => versions.at(-1)!;
  const revisionOf = ({ key, revision }: Version) => (key === undefined ? undefined : revision);
  const keep = (count: number): void => {
    const lost = versions.splice(Math.max(1, count));
    for (const { key } of lost) noteLost(key);
    const { key: left, revision } = newest();
    if (left === 'damaged') versions[versions.length - 1] = { key: left, revision };
    else if (left?.phase === 'open' && lost.some(({ key }) => isOpening(key, left.gen))) hiddenOpenings.add(left.gen);
  };
  const isOpening = (key: Version['key'], gen: number): boolean =>
    key !== 'damaged' && key?.gen === gen && key.phase === 'opening';
  const noteLost = (key: Version['key']): void => {
    if (key === 'damaged') return;
    // A claim after an owner that was opening issues a credit.
    if (key?.phase === 'opening') lostReasons.add(key.gen);
    for (const { gen } of key?.credits ?? []) lostReasons.add(gen);
  };
  return {
    read: () => {
      const { key, revision } = newest();
      if (key === 'damaged') return { type: 'unreadable', revision };
      return { type: 'entry', key, revision: revisionOf(newest()) };
    },
    write: (key, expected) => {
      if (revisionOf(newest()) !== expected) return { type: 'conflict' };
      const revision = newest().revision + 1;
      versions.push({ key, revision });
      if (key.gen < highest) continued.add(key.gen);
      highest = Math.max(highest, key.gen);
      return { type: 'written', revision };
    },
    wipe: () => keep(1),
    damage: () => {
      noteLost(newest().key);
      const version: Version = { key: 'damaged', revision: newest().revision + 1 };
      versions.push(version);
      return () => newest() === version;
    },
    rollBack: (writes) => keep(versions.length - writes),
    rollBackTo: (revision) => keep(versions.filter((each) => each.revision <= revision).length),
    highest: () => highest,
    hasHiddenOpening: (gen = 0) => hiddenOpenings.has(gen),
    hasLostReason: (gen = 0, isSlow) => continued.has(gen) || (isSlow && lostReasons.has(gen)),
    current: () => {
      const { key } = newest();
      return key === 'damaged' ? undefined : key;
    },
  };
};
