import { aged, type ClusterKey, type Credit, evictionMs, maxEvictions, withCredit } from './cluster-key.js';
import type { Call, Own, Presence, Report, Revision } from './election.js';
import { follow, note } from './follow.js';
import { endFeed, fail, leave } from './leave.js';
import { change, changeOwn, read, recent, reportOf, setTimers, timing, type Turn, write } from './turn.js';

/** What a new owner knows of its key. */
interface Claimed {
  readonly key: ClusterKey;
  readonly revision: Revision | undefined;
  /** The access that wrote the key; `undefined` if the key was found in the store. */
  readonly call: Call | undefined;
}

/** Makes this replica the owner. It opens the feed; the handshake waits for a confirmed write. */
export const own = (turn: Turn, { key, revision, call }: Claimed): void => {
  const { now } = turn.clock;
  const { gen, epoch, since, credits, evictions, changes } = key;
  if (turn.state.draining !== undefined) endFeed(turn);
  const owner: Own = {
    ...{ gen, epoch, since, credits, evictions, changes, revision, agedAt: now },
    phase: 'opening',
    written: call && { phase: key.phase, at: call.sentAt, wall: call.sentWall },
    ...{ isDirty: call === undefined, mustRead: false, isWaiting: false, isSent: false, isEvicted: false },
    ...{ isReleasing: false, offered: undefined, isOffering: false, later: undefined },
  };
  change(turn, { role: 'owning', gen, epoch, own: owner, lastOwned: gen, evictions: [] });
  change(turn, { wanted: undefined, ask: undefined, unanswered: 0 });
  setTimers(turn, {
    ...{ ask: undefined, 'ask-timeout': undefined, lease: undefined, claim: undefined, presence: undefined },
    drain: undefined,
    renew: (call?.sentAt ?? now) + turn.state.settings.renewMs,
  });
  beat(turn);
  turn.effects.push({ type: 'open' });
  pump(turn);
};

/** Publishes the state of the owner. */
export const beat = (turn: Turn): void => {
  const { own: owner } = turn.state;
  if (owner === undefined || owner.isEvicted || owner.isReleasing) return;
  if (turn.state.isConnected) turn.effects.push({ type: 'beat', report: reportOf(turn.state, owner) });
  setTimers(turn, { beat: turn.clock.now + timing.beatMs });
};

/** Starts the access to the store that the owner needs next, if no other one is in progress. */
export const pump = (turn: Turn): void => {
  const { state } = turn;
  const { own: owner, call, isConnected, timers } = state;
  if (owner === undefined || call !== undefined || !isConnected || timers.retry !== undefined) return;
  if (owner.mustRead) return read(turn, 'confirm');
  if (owner.isReleasing) return write(turn, 'free', keyOf(turn, owner, { owner: '', phase: 'free' }), owner.revision);
  if (owner.isEvicted) return explain(turn, owner);
  // An owner that leaves does not open again: its late handshake could replace the connection of the next owner.
  if (owner.offered !== undefined && owner.phase !== 'open') return release(turn);
  if (owner.isDirty) return renew(turn, owner);
  if (owner.offered !== undefined && !owner.isOffering) offerNext(turn, owner, owner.offered);
};

const renew = (turn: Turn, owner: Own): void => {
  changeOwn(turn, { isDirty: false });
  write(turn, 'renew', keyOf(turn, owner, {}), owner.revision);
};

const keyOf = (turn: Turn, owner: Own, fields: Partial<ClusterKey>): ClusterKey => {
  const { settings } = turn.state;
  const { gen, epoch, since, phase, changes } = owner;
  const credits = creditsOf(turn, owner);
  const evictions = evictionsOf(turn, owner);
  return {
    v: 1,
    feed: settings.feed,
    epoch,
    gen,
    owner: settings.replica,
    phase,
    since,
    credits,
    evictions,
    changes,
    ...fields,
  };
};

/** Returns the credits of an owner that are still valid. */
const creditsOf = ({ clock }: Turn, { credits, agedAt }: Own): readonly Credit[] => aged(credits, clock.now - agedAt);

const evictionsOf = ({ clock }: Turn, { evictions, agedAt }: Own): ClusterKey['evictions'] =>
  aged(evictions, clock.now - agedAt);

/**
 * Writes why the connection was replaced. If this write succeeds, no other replica had claimed. Then the reason was a late handshake, for which
 * there is a credit, or another client.
 */
const explain = (turn: Turn, owner: Own): void => {
  const { state, clock } = turn;
  // Without a lease other replicas may have claimed, and a store that has lost data would not show it.
  if (owner.written === undefined || clock.now - owner.written.at >= state.settings.leaseMs) return abandon(turn);
  const [credit, ...credits] = creditsOf(turn, owner);
  const isExplained = credit !== undefined && evictionsOf(turn, owner).length <= maxEvictions;
  const key = isExplained
    ? keyOf(turn, owner, { phase: 'opening', credits })
    : keyOf(turn, owner, {
        ...{ owner: '', phase: 'stopped', credits: [] },
        stop: { by: state.settings.replica, at: clock.wall },
      });
  write(turn, 'evicted', key, owner.revision);
};

// The next claim is made as if this replica had failed, and counts the eviction.
const abandon = (turn: Turn): void => {
  change(turn, { evictions: [...recent(turn.state.evictions, turn.clock.now), turn.clock.now] });
  displaced(turn, undefined);
};

/** Handles the result of a write of the owner. */
export const written = (turn: Turn, call: Call & { readonly key: ClusterKey }, revision: Revision): void => {
  const { key, sentAt, sentWall, purpose } = call;
  if (purpose === 'free') return released(turn, key, revision);
  if (key.phase === 'stopped') {
    turn.effects.push({ type: 'stop-notice' });
    return fail(turn, true);
  }
  changeOwn(turn, { revision, written: { phase: key.phase, at: sentAt, wall: sentWall } });
  if (purpose === 'evicted') {
    changeOwn(turn, { isEvicted: false, credits: key.credits, evictions: key.evictions, agedAt: sentAt });
    turn.effects.push({ type: 'open' });
  }
  setTimers(turn, { renew: sentAt + turn.state.settings.renewMs });
  beat(turn);
  allow(turn);
  pump(turn);
};

/** Handles the key that an owner has read, because it could not write. */
export const confirmed = (turn: Turn, key: ClusterKey | undefined, revision: Revision | undefined): void => {
  const { own: owner, settings, gen } = turn.state;
  const storedRevision = revision ?? 0;
  if (owner === undefined) return;
  changeOwn(turn, { mustRead: false, later: undefined });
  const isMine = key?.owner === settings.replica;
  if (key !== undefined && key.gen >= owner.gen && key.phase === 'stopped') return fail(turn, true);
  if (key !== undefined && key.gen >= owner.gen && !isMine)
    return displaced(turn, { ...key, revision: storedRevision });
  const isOlder = key === undefined || key.gen < owner.gen || storedRevision < (owner.revision ?? 0);
  // The store has lost data, so it cannot explain an eviction.
  if (owner.isEvicted && (isOlder || gen > owner.gen || owner.later !== undefined)) return abandon(turn);
  changeOwn(turn, { revision, isDirty: true });
  if (owner.later !== undefined) return claimAfter(turn, owner, owner.later);
  pump(turn);
};

// Followers drop messages of an earlier generation than the one that the store has lost. Its owner may not know of the loss yet, and open.
const claimAfter = (turn: Turn, owner: Own, gen: number): void => {
  change(turn, { gen: gen + 1, lastOwned: gen + 1 });
  addCredit(turn, owner, gen);
  changeOwn(turn, { gen: gen + 1, isDirty: true });
  beat(turn);
  pump(turn);
};

/**
 * Reads the key, because another replica knows this generation or a later one of another owner: either the key has that owner, or the store has
 * lost it.
 */
export const suspectLater = (turn: Turn, gen: number): void => {
  changeOwn(turn, { later: Math.max(gen, turn.state.own?.later ?? 0), mustRead: true });
  pump(turn);
};

/** Publishes the state of the owner when it is due. */
export const beatAgain = (turn: Turn): void => {
  const { own: owner } = turn.state;
  const { followed } = turn.clock;
  beat(turn);
  // This replica emits the frames of a later generation.
  if (owner && !owner.isEvicted && !owner.isReleasing && followed > owner.gen) suspectLater(turn, followed);
};

/** Handles a message of a replica that calls itself the owner. */
export const heardRival = (turn: Turn, report: Report): void => {
  const { own: owner } = turn.state;
  if (owner === undefined || report.gen < owner.gen) return;
  if (report.gen > owner.gen) return displaced(turn, report);
  changeOwn(turn, { mustRead: true });
  pump(turn);
};

/**
 * Ends the ownership, because another replica has claimed. An open connection continues until the new one replaces it, so that no frame is
 * lost.
 */
export const displaced = (turn: Turn, by: Report | undefined): void => {
  const { state, clock } = turn;
  const { own: owner, settings } = state;
  if (owner === undefined) return;
  const isOpen = owner.phase === 'open' && !owner.isEvicted;
  if (!isOpen) endFeed(turn);
  if (!isOpen && !owner.isSent) turn.effects.push({ type: 'voided', gen: owner.gen });
  change(turn, { own: undefined, call: undefined, draining: isOpen ? owner.gen : undefined });
  follow(turn);
  if (by && by.gen > owner.gen) note(turn, { gen: by.gen, owner: by.owner, phase: by.phase, revision: by.revision });
  else if (state.gen === owner.gen) noteOwn(turn, owner);
  setTimers(turn, { call: undefined, drain: isOpen ? clock.now + settings.leaseMs : undefined });
  if (state.isLeaving && !isOpen) leave(turn);
};

// A store that has lost data can use the number of a generation again. The follower of this replica would drop the messages of that owner, so
// its generation must count as outdated.
const noteOwn = (turn: Turn, { gen }: Own): void =>
  change(turn, { known: { ...turn.state.known, gen, owner: turn.state.settings.replica } });

/** Ends the feed of a displaced owner. */
export const drained = (turn: Turn): void => {
  endFeed(turn);
  setTimers(turn, { drain: undefined });
  if (turn.state.isLeaving) leave(turn);
};

/** Sends the handshake that waits, if a write that is recent enough has confirmed the ownership. */
export const allow = (turn: Turn): void => {
  const { own: owner } = turn.state;
  if (!owner?.isWaiting || owner.isEvicted || owner.isReleasing) return;
  if (!isLeased(turn, owner)) {
    changeOwn(turn, { isDirty: true });
    return;
  }
  changeOwn(turn, { isWaiting: false, isSent: true });
  turn.effects.push({ type: 'allow' });
};

const isLeased = ({ clock, state }: Turn, { written: last }: Own): boolean => {
  if (last?.phase !== 'opening') return false;
  const { leaseMs, marginMs } = state.settings;
  const passedMs = clock.now - last.at;
  // The monotonic clock of some machines stops while the machine is suspended. The wall clock then shows the difference.
  const jumpMs = Math.abs(clock.wall - last.wall - passedMs);
  return passedMs < leaseMs - marginMs && jumpMs <= marginMs;
};

/** Handles the end of an open connection, or of an attempt. The next handshake needs a new confirmation. */
export const reopening = (turn: Turn, isUnanswered: boolean): void => {
  const { own: owner } = turn.state;
  if (owner === undefined) return;
  changeOwn(turn, { phase: 'opening', isSent: owner.phase === 'opening' && owner.isSent && isUnanswered });
  if (isUnanswered) addCredit(turn, owner);
  // An earlier write permits no handshake: it has not the new credit, and a write of `open` can have happened although its result was lost.
  changeOwn(turn, { isDirty: true, isWaiting: false, written: owner.written && { ...owner.written, phase: 'open' } });
  pump(turn);
};

// A handshake without an answer can still arrive and replace the next connection, whoever owns it then.
const addCredit = (turn: Turn, owner: Own, gen = owner.gen): void =>
  changeOwn(turn, {
    credits: withCredit(creditsOf(turn, owner), gen),
    evictions: evictionsOf(turn, owner),
    agedAt: turn.clock.now,
  });

/** Handles an open connection. */
export const opened = (turn: Turn): void => {
  changeOwn(turn, { phase: 'open', isDirty: true, isWaiting: false });
  beat(turn);
  pump(turn);
};

/** Handles a close with 4001: see "4001" in docs/replicas.md. */
export const evicted = (turn: Turn): void => {
  const { state, clock } = turn;
  const { own: owner } = state;
  if (owner === undefined) return;
  changeOwn(turn, {
    ...{ isEvicted: true, phase: 'opening', isWaiting: false, isDirty: false, agedAt: clock.now },
    credits: creditsOf(turn, owner),
    evictions: [...evictionsOf(turn, owner), { leftMs: evictionMs }],
  });
  setTimers(turn, { beat: undefined, renew: undefined, offer: undefined });
  if (state.gen > owner.gen) return displaced(turn, undefined);
  pump(turn);
};

/** Gives the ownership away without a successor. */
export const release = (turn: Turn): void => {
  const { own: owner } = turn.state;
  if (owner === undefined) return;
  endFeed(turn);
  if (owner.phase === 'opening' && owner.isSent && !owner.isEvicted) addCredit(turn, owner);
  changeOwn(turn, { isReleasing: true, isWaiting: false, isEvicted: false, phase: 'opening' });
  setTimers(turn, { beat: undefined, renew: undefined, offer: undefined });
  pump(turn);
};

const released = (turn: Turn, { gen, phase }: ClusterKey, revision: Revision): void => {
  turn.effects.push({ type: 'beat', report: { gen, phase, revision, owner: '' } });
  change(turn, { own: undefined });
  if (turn.state.isLeaving) return leave(turn);
  note(turn, { gen, phase, revision, owner: '' });
  follow(turn);
};

/** Starts a hand-over: offers the ownership to the standbys, one after the other. Without one, releases the key. */
export const handOver = (turn: Turn): void => {
  const { own: owner } = turn.state;
  if (owner?.phase !== 'open' || owner.isEvicted) return release(turn);
  changeOwn(turn, { offered: owner.offered ?? [] });
  pump(turn);
};

const offerNext = (turn: Turn, owner: Own, offered: readonly string[]): void => {
  const { revision } = owner;
  const standby = standbysOf(turn).find(({ replica }) => !offered.includes(replica));
  if (standby === undefined || revision === undefined) return release(turn);
  changeOwn(turn, { offered: [...offered, standby.replica], isOffering: true });
  turn.effects.push({ type: 'offer', to: standby.replica, offer: { key: keyOf(turn, owner, {}), revision } });
  setTimers(turn, { offer: turn.clock.now + timing.offerMs, renew: undefined });
};

/** Ends an offer that the standby did not accept. Renews first, so that the next offer has a revision that is valid. */
export const offerEnded = (turn: Turn): void => {
  changeOwn(turn, { isOffering: false, isDirty: true });
  pump(turn);
};

// The youngest first: in a rolling deployment it is the one that stays.
const standbysOf = ({ state, clock }: Turn): readonly Presence[] =>
  state.standbys
    .filter(({ at }) => clock.now - at < timing.standbyMs)
    .toSorted((one, other) => other.since - one.since);
