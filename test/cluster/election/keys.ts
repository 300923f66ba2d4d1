import type { ClusterKey } from '../../../src/cluster/election/cluster-key.js';
import type { Input, Report } from '../../../src/cluster/election/election.js';
import { createStore, type Store } from '../simulation/store.js';

/** Creates a key of another replica, which is the open owner of generation 3. */
export const keyOf = (fields: Partial<ClusterKey> = {}): ClusterKey => ({
  ...{ v: 1, feed: 'market', epoch: 9, gen: 3, owner: 'other', phase: 'open', since: 0 },
  ...{ credits: [], evictions: [], changes: [] },
  ...fields,
});

/** Creates a store with such a key. */
export const storeWith = (fields: Partial<ClusterKey> = {}): Store => {
  const store = createStore();
  store.write(keyOf(fields), undefined);
  return store;
};

/** Creates a message of that owner. */
export const heard = (fields: Partial<Report> = {}): Input => ({
  type: 'heard',
  report: { gen: 3, owner: 'other', phase: 'open', revision: 1, ...fields },
});
