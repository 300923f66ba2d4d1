import { type ClusterKey, isSameSource, remaining, type Source } from './cluster-key.js';
import {
  type Call,
  type CallResult,
  type Clock,
  type Effect,
  type Election,
  type ElectionSettings,
  followerOf,
  type Following,
  type Input,
  noTimers,
  type Ownership,
  ownerOf,
  type Report,
  type Revision,
  type TimerName,
  type Timers,
} from './election.js';
import { timing } from './timing.js';

/** A step while it is computed: a copy of the election, which the rules change, and the effects so far. */
export interface Draft {
  readonly election: Election;
  readonly effects: Effect[];
  readonly clock: Clock;
  readonly now: number;
  readonly settings: ElectionSettings;
  readonly timers: Timers;
}

/** What happens to a replica: an input, the end of a timer, or the end of an access to the store. */
export type Happening =
  Input | { readonly type: TimerName } | { readonly type: 'result'; readonly call: Call; readonly result: CallResult };

/** A row for each thing that changes something in a state. */
export type Rules<State> = {
  readonly [Type in Happening['type']]?:
    ((draft: Draft, state: State, happening: Extract<Happening, { readonly type: Type }>) => void) | undefined;
};

/** Replaces the timers of a state. Those of every state go on. */
export const setStateTimers = ({ timers }: Draft, set: Partial<Timers>): void => {
  const { 'call-over': call, 'leave-over': leave, 'retry-due': retry } = timers;
  Object.assign(timers, noTimers, { 'call-over': call, 'leave-over': leave, 'retry-due': retry }, set);
};

export const stop = ({ timers }: Draft, ...names: readonly TimerName[]): void => {
  for (const name of names) timers[name] = Infinity;
};

export const read = (draft: Draft, purpose: Call['purpose']): void => {
  const id = startCall(draft, purpose);
  draft.effects.push({ type: 'read', id });
};

export const write = (draft: Draft, purpose: Call['purpose'], key: ClusterKey, expected: Revision): void => {
  const id = startCall(draft, purpose, key);
  draft.effects.push({ type: 'write', id, key, expected });
};

export const endCall = (draft: Draft): void => {
  draft.election.call = undefined;
  stop(draft, 'call-over');
};

const startCall = ({ election, clock, timers }: Draft, purpose: Call['purpose'], key?: ClusterKey): number => {
  const id = election.lastId + 1;
  election.lastId = id;
  election.call = { id, purpose, sentAt: clock.now, sentWall: clock.wall, key };
  timers['call-over'] = clock.now + timing.callMs;
  return id;
};

/** Closes the feed, if there is one, and reports the end of its generation. */
export const endFeed = ({ election, effects }: Draft): void => {
  const follower = followerOf(election);
  const gen = follower ? follower.draining : ownerOf(election)?.gen;
  if (gen === undefined) return;
  effects.push({ type: 'close' }, { type: 'end', gen });
  if (follower) follower.draining = undefined;
};

/** Ends the election of this replica with an error. `other`: what the owner streams, if this replica does not fit. */
export const fail = (draft: Draft, isReplaced: boolean, other?: Source): void => {
  endFeed(draft);
  draft.effects.push({ type: 'fail', isReplaced, ...(other && { other }) });
  end(draft, 'stopped');
};

/** Ends the election of this replica, because it shuts down. */
export const leave = (draft: Draft): void => {
  endFeed(draft);
  draft.effects.push({ type: 'left' });
  end(draft, 'left');
};

const end = ({ election, timers }: Draft, name: 'stopped' | 'left'): void => {
  Object.assign(election, { state: { name }, call: undefined });
  Object.assign(timers, noTimers);
};

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
