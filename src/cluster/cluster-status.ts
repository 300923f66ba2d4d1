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

/** Returns the status of a state. It is the previous one if nothing but the time has changed. @param now - in epoch ms */
export const nextStatus = (
  before: ClusterStatus | undefined,
  { role, settings, own, gen, known }: Election,
  now: number,
): ClusterStatus => {
  const owner = own ? settings.replica : known.owner || undefined;
  const generation = own?.gen ?? gen;
  const isSameOwner = before?.owner === owner && before?.generation === generation;
  const since = before && isSameOwner ? before.since : now;
  const next = {
    role: own?.isEvicted ? 'isolated' : role,
    replica: settings.replica,
    owner,
    generation,
    since,
  } as const;
  return before && isSameOwner && before.role === next.role && before.replica === next.replica ? before : next;
};
