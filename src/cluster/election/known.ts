import { type ClusterKey, isSameSource, remaining } from './cluster-key.js';
import type { Draft } from './draft.js';
import type { Election, Following, Ownership, Report, Revision } from './election.js';
import { timing } from './timing.js';

/** Notes what is known of the owner. A new revision shows that it renewed its lease. */
export const note = (
  { election, now }: Draft,
  { gen, owner, phase, revision }: Omit<Election['known'], 'revisionAt'>,
): void => {
  const { known, refusal } = election;
  const revisionAt = known.revision === revision && known.gen === gen ? known.revisionAt : now;
  election.gen = Math.max(election.gen, gen);
  election.known = { gen, owner, phase, revision, revisionAt };
  if (refusal !== undefined && phase === 'open' && gen > refusal.gen) election.refusal = { ...refusal, isPast: true };
};

export const noteKey = (draft: Draft, me: Following, key: ClusterKey, revision: Revision): void => {
  const { election, settings } = draft;
  note(draft, { ...key, revision });
  election.epoch = key.epoch;
  if (key.owner === '' || isSameSource(settings, key)) me.other = undefined;
};

/**
 * Returns whether a report or a key is of an earlier generation than this replica has seen. A store that has lost data
 * can use the number of a generation again, for another owner, also after its release: the next owner has a higher one.
 */
export const isOutdated = ({ election: { gen, known }, clock: { followed } }: Draft, seen: Ownership): boolean => {
  if (seen.gen < Math.max(gen, followed.gen)) return true;
  const isOther = (one: Ownership): boolean => one.gen === seen.gen && one.owner !== seen.owner;
  return seen.owner !== '' && ((known.gen === gen && isOther(known)) || isOther(followed));
};

/** Notes a message of the owner. Returns whether it is not of an earlier generation, which changes nothing. */
export const noteOwner = (draft: Draft, me: Following, report: Report): boolean => {
  const { election, effects, now, settings, timers } = draft;
  if (report.owner === settings.replica || isOutdated(draft, report)) return false;
  note(draft, report);
  // The owner writes them into the key, so that all replicas count them.
  const evictions = remaining(election.evictions, now);
  if (evictions.length > 0) effects.push({ type: 'evicted', evictions });
  election.evictions = [];
  if (me.draining !== undefined && report.gen > me.draining && report.phase === 'open')
    timers['drain-over'] = Math.min(timers['drain-over'], now + timing.drainMs);
  me.heardAt = now;
  return true;
};

/**
 * Returns the newest owner that this replica knows. With two of one generation it is neither: the one that answers
 * needs a higher number.
 */
export const newestOf = ({ election: { gen, known }, clock: { followed } }: Draft): Ownership => {
  if (followed.gen > gen) return followed;
  return { gen, owner: followed.gen < gen || followed.owner === known.owner ? known.owner : '' };
};
