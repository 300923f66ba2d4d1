import type { EngineRefused } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Election, ownerOf, type Role, roleOf } from './election/election.js';

/** The status of a replica. */
export interface ClusterStatus {
  /**
   * What this replica does: `following`, `claiming` or `owning` the connection; `isolated`: it cannot reach the engine,
   * or was replaced and does not know by whom; `stopped`: another client replaced the connection; `left`: it gave the
   * ownership away. Without a subscriber: `left`.
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
  /**
   * What the engine refuses now, as last reported; `undefined` if nothing. For an operator: the message is text of
   * other code.
   */
  readonly refused: EngineRefused | undefined;
  /**
   * Why this replica could not own the connection when it tried last, for example `invalid-api-key`; `undefined`
   * otherwise. It follows, and tries again at the next election: the function `apiKey` is called again.
   */
  readonly cannotOwn: TradeFeedError | undefined;
}

/** Returns the status without a subscriber. */
export const leftStatus = (replica: string, before?: ClusterStatus): ClusterStatus => {
  const nothing = { owner: undefined, refused: undefined, cannotOwn: undefined };
  return { replica, generation: 0, since: Date.now(), ...before, role: 'left', ...nothing };
};

/**
 * Returns the same object as `before` if nothing has changed.
 *
 * @param failure - the last error of its feed that no reconnect can help
 */
export const statusOf = (
  election: Election,
  failure: unknown,
  refused: EngineRefused | undefined,
  before: ClusterStatus | undefined,
): ClusterStatus => {
  const { settings, gen, known, refusal } = election;
  const { replica } = settings;
  const own = ownerOf(election);
  const owner = own ? replica : known.owner || undefined;
  const generation = own?.gen ?? gen;
  const since = before?.owner === owner && before?.generation === generation ? before.since : Date.now();
  const cannotOwn = refusal && failure instanceof TradeFeedError ? failure : undefined;
  const next: ClusterStatus = { role: roleOf(election), replica, owner, generation, since, refused, cannotOwn };
  const isSame = Object.entries(next).every(([name, value]) => before?.[name as keyof ClusterStatus] === value);
  return before && isSame ? before : next;
};
