import type { Known, Report, Revision } from './election.js';
import { aged, type ClusterKey, evictionMs, type KeyPhase } from './cluster-key.js';
import { change, read, recent, setTimers, timing, type Turn } from './turn.js';

/** Makes this replica a follower: it waits for messages of the owner, and asks after a silence. */
export const follow = (turn: Turn): void => {
  const { now } = turn.clock;
  const { settings, isConnected } = turn.state;
  const { canOwn, suspectMs } = settings;
  change(turn, { role: isConnected ? 'following' : 'isolated', heardAt: now, unanswered: 0, ask: undefined });
  setTimers(turn, {
    ask: isConnected && canOwn ? now + suspectMs : undefined,
    presence: isConnected && canOwn ? now : undefined,
    ...{ 'ask-timeout': undefined, lease: undefined, claim: undefined, renew: undefined, beat: undefined },
    offer: undefined,
  });
};

/** Whether this replica may become the owner. */
export const mayOwn = ({ state }: Turn): boolean =>
  state.settings.canOwn && !state.isBarred && !state.isLeaving && state.isConnected && state.own === undefined;

/** Plans a claim, after a random time. A replica that has claimed often waits longer. */
export const planClaim = (turn: Turn): void => {
  if (!mayOwn(turn) || turn.state.timers.claim !== undefined) return;
  const { now, random } = turn.clock;
  const claims = recent(turn.state.claims, now).length;
  const waitMs =
    claims < timing.freeClaims
      ? 0
      : Math.min(timing.maxClaimWaitMs, turn.state.settings.leaseMs * 2 ** (claims - timing.freeClaims));
  change(turn, { role: 'claiming' });
  setTimers(turn, {
    claim: now + waitMs + random * timing.spreadMs,
    ...{ ask: undefined, 'ask-timeout': undefined, lease: undefined },
  });
};

/** Notes what is known of the owner. A new revision shows that it renewed its lease. */
export const note = (turn: Turn, seen: Omit<Known, 'revisionAt'>): void => {
  const { known, gen } = turn.state;
  const isSame = known.revision === seen.revision && known.gen === seen.gen;
  const revisionAt = isSame ? known.revisionAt : turn.clock.now;
  change(turn, { gen: Math.max(gen, seen.gen), known: { ...seen, revisionAt } });
};

/** Notes a key that was read. */
export const noteKey = (turn: Turn, { gen, owner, phase, epoch }: ClusterKey, revision: Revision | undefined): void => {
  note(turn, { gen, owner, phase, revision });
  change(turn, { epoch });
};

/**
 * Returns whether a report or a key is of an earlier generation than this replica has seen. A store that has lost data can use the number of a
 * generation again, for another owner, also after its release: the next owner has a higher one.
 */
export const isOutdated = (
  { state: { gen, known } }: Turn,
  seen: { readonly gen: number; readonly owner: string },
): boolean =>
  seen.gen < gen || (seen.gen === gen && known.gen === gen && seen.owner !== '' && known.owner !== seen.owner);

/** Handles a message of the owner in a replica that does not own. A message of an earlier generation changes nothing. */
export const heardOwner = (turn: Turn, report: Report): void => {
  const { state, clock } = turn;
  if (isOutdated(turn, report)) return;
  note(turn, report);
  reportEvictions(turn);
  if (state.draining !== undefined && report.gen > state.draining && report.phase === 'open')
    setTimers(turn, { drain: Math.min(state.timers.drain ?? Infinity, clock.now + timing.drainMs) });
  if (state.role === 'joining' || isClaimSent(turn)) return;
  const { canOwn, suspectMs } = state.settings;
  change(turn, { role: 'following', heardAt: clock.now, unanswered: 0, ask: undefined, wanted: undefined });
  setTimers(turn, {
    ask: canOwn ? clock.now + suspectMs : undefined,
    ...{ 'ask-timeout': undefined, lease: undefined, claim: undefined },
  });
  if (report.phase === 'free') planClaim(turn);
};

// The owner writes them into the key, so that all replicas count them.
const reportEvictions = (turn: Turn): void => {
  const evictions = unwrittenEvictions(turn);
  if (evictions.length > 0) turn.effects.push({ type: 'evicted', evictions });
  if (turn.state.evictions.length > 0) change(turn, { evictions: [] });
};

/** Returns the evictions of this replica that the key does not contain yet. */
export const unwrittenEvictions = ({ state, clock }: Turn): ClusterKey['evictions'] =>
  state.evictions.flatMap((at) => aged([{ leftMs: evictionMs }], clock.now - at));

const isClaimSent = ({ state: { call } }: Turn): boolean => call?.purpose === 'claim' && call.key !== undefined;

/** Asks the owner, because it is silent. Also reads the key: the owner may have written a revision that it could not report any more. */
export const askOwner = (turn: Turn): void => {
  const { state, clock } = turn;
  const { known, precedenceUntil, settings, timers } = state;
  const id = state.lastId + 1;
  change(turn, { lastId: id, ask: id });
  turn.effects.push({ type: 'ask', id, question: { gen: state.gen, owner: known.owner } });
  setTimers(turn, {
    ask: undefined,
    'ask-timeout': clock.now + timing.askMs,
    lease: timers.lease ?? Math.max(known.revisionAt + settings.leaseMs, precedenceUntil, clock.now),
  });
  if (timers.lease === undefined && state.call === undefined && mayOwn(turn)) read(turn, 'look');
};

/** Handles the result of a question that the owner did not answer. */
export const unanswered = (turn: Turn, isNoResponders: boolean): void => {
  const { state, clock } = turn;
  const count = isNoResponders ? state.unanswered + 1 : 0;
  change(turn, { ask: undefined, unanswered: count });
  setTimers(turn, { ask: clock.now + timing.askAgainMs, 'ask-timeout': undefined });
  // An owner that was opening may have sent a handshake, so its lease must end first.
  const isGone = count >= 2 && hasOpened(state.known.phase) && clock.now >= state.precedenceUntil;
  if (isGone) planClaim(turn);
};

const hasOpened = (phase: KeyPhase | undefined): boolean => phase !== 'opening';
