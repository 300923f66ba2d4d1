import type { ClusterKey, Source } from './cluster-key.js';
import {
  type Call,
  type CallResult,
  type Clock,
  type Effect,
  type Election,
  type ElectionSettings,
  followerOf,
  type Input,
  noTimers,
  ownerOf,
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
