import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import type { CallResult } from '../../../src/cluster/election/election.js';

interface Version {
  /** `'damaged'`: something has overwritten the key. */
  readonly key: ClusterKey | 'damaged' | undefined;
  readonly revision: number;
}

export type Store = ReturnType<typeof createStore>;

/** The store of the engine, with its faults: it can lose all data, or the newest writes. */
export const createStore = () => {
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
    read: (): CallResult => {
      const { key, revision } = newest();
      if (key === 'damaged') return { type: 'unreadable', revision };
      return { type: 'entry', key, revision: revisionOf(newest()) };
    },
    write: (key: ClusterKey, expected: number | undefined): CallResult => {
      if (revisionOf(newest()) !== expected) return { type: 'conflict' };
      const revision = newest().revision + 1;
      versions.push({ key, revision });
      if (key.gen < highest) continued.add(key.gen);
      highest = Math.max(highest, key.gen);
      return { type: 'written', revision };
    },
    wipe: (): void => keep(1),
    /** Damages the key. Returns a function that returns whether it is still damaged. */
    damage: (): (() => boolean) => {
      noteLost(newest().key);
      const version: Version = { key: 'damaged', revision: newest().revision + 1 };
      versions.push(version);
      return () => newest() === version;
    },
    /** Removes the newest writes. The next writes have the same revisions again. */
    rollBack: (writes: number): void => keep(versions.length - writes),
    rollBackTo: (revision: number): void => keep(versions.filter((each) => each.revision <= revision).length),
    /** The highest generation the store has ever had, lost writes included. */
    highest: (): number => highest,
    /** Whether it has lost that the owner of this generation was opening, and still had that it was open. The next claim issues no credit. */
    hasHiddenOpening: (gen = 0): boolean => hiddenOpenings.has(gen),
    /**
     * Whether it has lost what explains a handshake of this generation: the claim that ended the generation before its owner wrote again. For a
     * slow or late handshake also the write with its credit, or the one that says that the owner was opening.
     */
    hasLostReason: (gen = 0, isSlow: boolean): boolean => continued.has(gen) || (isSlow && lostReasons.has(gen)),
    current: (): ClusterKey | undefined => {
      const { key } = newest();
      return key === 'damaged' ? undefined : key;
    },
  };
};
