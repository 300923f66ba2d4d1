import type { Election, Role } from './election/election.js';

/** The status of a replica. */
export interface ClusterStatus {
  /**
   * What this replica does: `following`, `claiming` or `owning` the connection; `isolated`: it cannot reach the engine, or was replaced and does
   * not know by whom; `stopped`: another client replaced the connection; `left`: it gave the ownership away. Without a subscriber: `left`.
   */
  readonly role: Role;
  /** The id of this replica. */
  readonly replica: string;
  /** The id of the owner; `undefined` if there is none, or if it is not known. */
  readonly owner: string | undefined;
  /** The number of the ownership. It grows with each change of the owner. */
  readonly generation: number;
  /** Since when this replica knows this owner, in epoch ms. */
  readonly since: number;
}

/** Returns the status of a state, without `since`. */
export const statusOf = ({ role, settings, own, gen, known }: Election): Omit<ClusterStatus, 'since'> => ({
  role: own?.isEvicted ? 'isolated' : role,
  replica: settings.replica,
  owner: own ? settings.replica : known.owner || undefined,
  generation: own?.gen ?? gen,
});

/** Returns whether two statuses differ in more than `since`. */
export const isChanged = (one: Omit<ClusterStatus, 'since'>, other: Omit<ClusterStatus, 'since'>): boolean =>
  one.role !== other.role ||
  one.owner !== other.owner ||
  one.generation !== other.generation ||
  one.replica !== other.replica;
