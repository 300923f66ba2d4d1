import { type ChangeCause, type ClusterKey, creditsAfter, withChange } from './cluster-key.js';
import type { Call, Offer, Revision } from './election.js';
import { isOutdated, mayOwn, noteKey, unwrittenEvictions } from './follow.js';
import { orient } from './orient.js';
import { own, release } from './own.js';
import { change, read, recent, setTimers, type Turn, write } from './turn.js';

/** Reads the key for a claim that is due. */
export const startClaim = (turn: Turn): void => {
  setTimers(turn, { claim: undefined });
  if (turn.state.call) return change(turn, { wanted: 'claim' });
  read(turn, 'claim');
};

/** Claims the key that was read, unless another replica has written it since the claim was planned. */
export const claimRead = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  const { state } = turn;
  const { known } = state;
  if (state.role !== 'claiming' || !mayOwn(turn)) return orient(turn, key, revision);
  const isUnchanged = key?.gen === known.gen && revision === known.revision;
  const isLost = key === undefined || isOutdated(turn, key);
  if (isLost && key !== undefined && known.phase === 'free') return askAfterLoss(turn, key, revision);
  if (!isLost && (key.phase === 'stopped' || (!isUnchanged && key.phase !== 'free')))
    return orient(turn, key, revision);
  if (!isLost) noteKey(turn, key, revision);
  const displaced = isLost ? known : key;
  claim(turn, { key, revision, displaced, cause: isLost ? causeOfLost(turn) : causeOf(key) });
};

/** Asks the owner of a key that a store shows after it has lost a release. Only without an answer the claim is planned again. */
const askAfterLoss = (turn: Turn, key: ClusterKey, revision: Revision | undefined): void => {
  change(turn, { known: { ...turn.state.known, phase: undefined } });
  orient(turn, key, revision);
};

const causeOf = ({ phase, stop }: ClusterKey): ChangeCause => {
  if (phase !== 'free') return 'silence';
  return stop === undefined ? 'released' : 'resumed';
};

const causeOfLost = ({ state }: Turn): ChangeCause => (state.gen === 0 ? 'first' : 'silence');

/** Accepts the ownership that the owner offers. */
export const accept = (turn: Turn, { key, revision }: Offer): void => {
  const { state } = turn;
  const isBusy = state.call?.purpose === 'claim' && state.call.key !== undefined;
  if (!mayOwn(turn) || isBusy || key.gen < state.gen) return;
  noteKey(turn, key, revision);
  change(turn, { role: 'claiming', wanted: undefined });
  setTimers(turn, { ask: undefined, 'ask-timeout': undefined, lease: undefined, claim: undefined });
  claim(turn, { key, revision, displaced: key, cause: 'hand-over' });
};

interface Claimable {
  readonly key: ClusterKey | undefined;
  readonly revision: Revision | undefined;
  readonly displaced: { readonly gen: number; readonly phase: ClusterKey['phase'] | undefined };
  readonly cause: ChangeCause;
}

const claim = (turn: Turn, { key, revision, displaced, cause }: Claimable): void => {
  const { state, clock } = turn;
  const { settings } = state;
  change(turn, { claims: [...recent(state.claims, clock.now), clock.now] });
  // After a loss of data the election can know less than the follower, which would drop the frames of an earlier generation.
  const gen = Math.max(state.gen, clock.followed) + 1;
  const owner = settings.replica;
  const since = clock.wall;
  const claimed: ClusterKey = {
    v: 1,
    feed: settings.feed,
    epoch: state.epoch === 0 ? (key?.epoch ?? newEpoch(clock.random)) : state.epoch,
    gen,
    owner,
    phase: 'opening',
    since,
    credits: creditsAfter(key?.credits ?? [], displaced),
    evictions: [...(key?.evictions ?? []), ...unwrittenEvictions(turn)],
    changes: withChange(key?.changes ?? [], { gen, owner, since, cause }),
  };
  write(turn, 'claim', claimed, revision);
};

const newEpoch = (random: number): number => 1 + Math.floor(random * (Number.MAX_SAFE_INTEGER - 1));

/** Handles a claim that was written. */
export const claimed = (turn: Turn, call: Call & { readonly key: ClusterKey }, revision: Revision): void => {
  own(turn, { key: call.key, revision, call });
  if (turn.state.isLeaving) release(turn);
};
