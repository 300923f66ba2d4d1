import type { LineExtent } from '../log/line-store.js';
import type { EngineRefused } from '../protocol/event.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Election, ownerOf, type Role, roleOf } from './election/election.js';

/** The status of a replica. */
export interface ClusterStatus {
  /**
   * What this replica does: `joining`: it hasn't had a subscriber yet, or doesn't know the owner yet; `following`,
   * `claiming` or `owning` the connection; `isolated`: it can't reach the engine, or was replaced and doesn't know by
   * whom; `stopped`: another client replaced the connection; `left`: it gave the ownership away, or has no subscriber
   * anymore.
   */
  readonly role: Role;
  /** The id of this replica. */
  readonly replica: string;
  /** The id of the owner; `undefined` if there is none, or it isn't known. */
  readonly owner: string | undefined;
  /** The number of the ownership. Grows with each change of the owner. */
  readonly generation: number;
  /** Since when this replica has known this owner, in epoch ms. */
  readonly since: number;
  /**
   * What the engine currently refuses, as last reported; `undefined` if nothing. For an operator: the message is text
   * of other code.
   */
  readonly refused: EngineRefused | undefined;
  /**
   * Why this replica couldn't own the connection when it last tried, for example `invalid-api-key`; `undefined`
   * otherwise. It follows, and retries at the next election, calling the function `apiKey` again.
   */
  readonly cannotOwn: TradeFeedError | undefined;
  /**
   * What the engine's store holds of the last minute, asked every 5 s; `undefined` if the engine has none, or if that isn't
   * known. `status$` doesn't emit when only this or one of the next two changes.
   */
  readonly line: LineExtent | undefined;
  /** How many records this replica has read from the store because it had missed them. Never decreases. */
  readonly fetched: number;
  /**
   * How many records of an owner this replica has emitted that the next owner doesn't know: the store had refused them,
   * and the owner has gone. The gap of the next owner counts them as missing. Never decreases.
   */
  readonly surplus: number;
}

/** The status, without what no event changes. */
export type ElectionStatus = Omit<ClusterStatus, 'line' | 'fetched' | 'surplus'>;

const nothing = { owner: undefined, refused: undefined, cannotOwn: undefined };

/** Returns the status before the first subscriber. */
export const firstStatus = (replica: string): ElectionStatus => {
  return { role: 'joining', replica, generation: 0, since: Date.now(), ...nothing };
};

/** Returns the status after the last subscriber. */
export const leftStatus = (before: ElectionStatus): ElectionStatus => ({ ...before, role: 'left', ...nothing });

/**
 * Returns the new status, or `before` itself if nothing has changed.
 *
 * @param failure - the feed's last error that reconnecting can't fix
 */
export const statusOf = (
  election: Election,
  failure: unknown,
  refused: EngineRefused | undefined,
  before: ElectionStatus | undefined,
): ElectionStatus => {
  const { settings, gen, known, refusal } = election;
  const { replica } = settings;
  const ownership = ownerOf(election);
  const owner = ownership ? replica : known.owner || undefined;
  const generation = ownership?.gen ?? gen;
  const since = before?.owner === owner && before?.generation === generation ? before.since : Date.now();
  const cannotOwn = refusal && failure instanceof TradeFeedError ? failure : undefined;
  const next: ElectionStatus = { role: roleOf(election), replica, owner, generation, since, refused, cannotOwn };
  const isSame = Object.entries(next).every(([name, value]) => before?.[name as keyof ElectionStatus] === value);
  return before && isSame ? before : next;
};
