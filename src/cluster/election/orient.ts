import type { ClusterKey } from './cluster-key.js';
import type { Revision } from './election.js';
import { follow, isOutdated, note, noteKey, planClaim } from './follow.js';
import { fail, leave } from './leave.js';
import { own, release } from './own.js';
import { change, setTimers, type Turn } from './turn.js';

/** Decides what this replica does, from the key that it has read. */
export const orient = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  orientBy(turn, key, revision);
  const { isLeaving, own: owner, draining, role } = turn.state;
  if (isLeaving && owner === undefined && draining === undefined && role !== 'stopped') leave(turn);
};

/** Notes the key of an owner that is silent. Its lease begins again if it has written the key. */
export const looked = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  const { role, known, settings, timers } = turn.state;
  if (role !== 'following' || key === undefined || isOutdated(turn, key)) return;
  if (key.gen !== known.gen || key.owner === '') return orient(turn, key, revision);
  noteKey(turn, key, revision);
  if (timers.lease === undefined) return;
  setTimers(turn, { lease: Math.max(timers.lease, turn.state.known.revisionAt + settings.leaseMs) });
};

const orientBy = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  const { state, clock } = turn;
  if (key === undefined || isOutdated(turn, key)) {
    // The store has no key, or has lost writes. An owner that still answers writes its key again.
    follow(turn);
    if (state.gen === 0) note(turn, { gen: 0, owner: '', phase: undefined, revision });
    setTimers(turn, { ask: state.settings.canOwn ? clock.now : undefined });
    return;
  }
  noteKey(turn, key, revision);
  if (key.phase === 'stopped') return fail(turn, true);
  // A write whose result was lost has made this replica the owner.
  if (key.owner === state.settings.replica && key.gen > state.lastOwned) return adopt(turn, key, revision);
  const { heardAt } = state;
  follow(turn);
  if (state.role !== 'joining') change(turn, { heardAt });
  if (key.phase === 'free') planClaim(turn);
};

const adopt = (turn: Turn, key: ClusterKey, revision: Revision | undefined): void => {
  own(turn, { key, revision, call: undefined });
  if (turn.state.isLeaving || turn.state.isBarred) release(turn);
};
