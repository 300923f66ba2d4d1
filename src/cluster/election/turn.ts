import type { ClusterKey } from './cluster-key.js';
import type { Clock, Effect, Election, Own, Purpose, Report, Revision, Timers } from './election.js';

/** One step of an election while it is computed: the new state, which only this step can change, and its effects. */
export interface Turn {
  state: Election;
  readonly effects: Effect[];
  readonly clock: Clock;
}

/** Fixed times in ms, and limits. */
export const timing = Object.freeze({
  /** Time between two beats. */
  beatMs: 250,
  /** Time between two questions to an owner that is silent. */
  askAgainMs: 150,
  /** How long a question may take. */
  askMs: 300,
  /** How long an access to the store may take. */
  callMs: 500,
  /** The wait after an access to the store without a result. */
  retryMs: 100,
  /** Claims of different replicas are spread over this time. */
  spreadMs: 50,
  /** Time between two messages of a standby. */
  presenceMs: 1_000,
  /** How long a standby counts after its last message. */
  standbyMs: 3_000,
  /** How long a standby counts as possible, although it is silent. */
  goneMs: 30_000,
  /** How long a standby has to accept the ownership. */
  offerMs: 500,
  /** How long the old connection is kept after the new one is open. */
  drainMs: 100,
  /** The period of the limit for claims. */
  windowMs: 60_000,
  /** How many claims a replica makes in that period without a wait. */
  freeClaims: 3,
  /** The longest wait before a claim. */
  maxClaimWaitMs: 30_000,
});

/** Changes fields of the state. */
export const change = (turn: Turn, fields: Partial<Election>): void => {
  turn.state = { ...turn.state, ...fields };
};

/** Changes fields of the owner. Does nothing for a replica that is not the owner. */
export const changeOwn = (turn: Turn, fields: Partial<Own>): void => {
  if (turn.state.own) change(turn, { own: { ...turn.state.own, ...fields } });
};

/** Sets timers, in monotonic ms. `undefined` removes a timer. */
export const setTimers = (turn: Turn, changes: Partial<Timers>): void => {
  change(turn, { timers: { ...turn.state.timers, ...changes } });
};

/** Starts to read the key. */
export const read = (turn: Turn, purpose: Purpose): void => {
  const id = startCall(turn, purpose, undefined);
  turn.effects.push({ type: 'read', id });
};

/** Starts to replace a revision of the key. */
export const write = (turn: Turn, purpose: Purpose, key: ClusterKey, expected: Revision | undefined): void => {
  const id = startCall(turn, purpose, key);
  turn.effects.push({ type: 'write', id, key, expected });
};

const startCall = (turn: Turn, purpose: Purpose, key: ClusterKey | undefined): number => {
  const { now, wall } = turn.clock;
  const id = turn.state.lastId + 1;
  change(turn, { lastId: id, call: { id, purpose, sentAt: now, sentWall: wall, key } });
  setTimers(turn, { call: now + timing.callMs });
  return id;
};

/** Returns the times of the last minute. */
export const recent = (times: readonly number[], now: number): readonly number[] =>
  times.filter((at) => now - at < timing.windowMs);

/** Returns what this owner reports. */
export const reportOf = ({ settings }: Election, { gen, phase, revision = 0 }: Own): Report => ({
  gen,
  owner: settings.replica,
  phase,
  revision,
});
