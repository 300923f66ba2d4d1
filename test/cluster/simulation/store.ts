import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import type { CallResult } from '../../../src/cluster/election/election.js';

interface Version {
  readonly key: ClusterKey | undefined;
  readonly revision: number;
}

/** The store of the engine, with its faults: it can lose all data, or the newest writes. */
export interface Store {
  readonly read: () => CallResult;
  readonly write: (key: ClusterKey, expected: number | undefined) => CallResult;
  readonly wipe: () => void;
  /** Removes the newest writes. The next writes have the same revisions again. */
  readonly rollBack: (writes: number) => void;
  readonly current: () => ClusterKey | undefined;
}

/** Creates an empty store. */
export const createStore = (): Store => {
  let versions: Version[] = [{ key: undefined, revision: 0 }];
  const newest = (): Version => versions.at(-1)!;
  const revisionOf = ({ key, revision }: Version) => (key === undefined ? undefined : revision);
  return {
    read: () => ({ type: 'entry', key: newest().key, revision: revisionOf(newest()) }),
    write: (key, expected) => {
      if (revisionOf(newest()) !== expected) return { type: 'conflict' };
      const revision = newest().revision + 1;
      versions.push({ key, revision });
      return { type: 'written', revision };
    },
    wipe: () => {
      versions = [{ key: undefined, revision: 0 }];
    },
    rollBack: (writes) => {
      versions = versions.slice(0, Math.max(1, versions.length - writes));
    },
    current: () => newest().key,
  };
};
