import { areOfDifferentSources, type ChangeCause, type ClusterKey, remaining } from './cluster-key.js';
import type { Draft, Rules } from './draft.js';
import {
  type Call,
  type Election,
  type Entry,
  followerOf,
  type Following,
  Owning,
  type Report,
  type Revision,
} from './election.js';
import { timing } from './timing.js';

const follower: Rules<Following> = {
  start: (draft, state) => follow(draft, state),
  engine: (draft, state, { isConnected }) => {
    if (state.name !== 'joining') follow(draft, state);
    if (isConnected) return join(draft);
    state.nextRead = undefined;
    state.ask = undefined;
  },
  heard: (draft, state, { report }) => heardOwner(draft, state, report),
  'ask-due': (draft, state) => (state.ask === undefined ? askOwner(draft, state) : unanswered(draft, state, false)),
  ask: (draft, state, { id, result }) => {
    if (state.ask !== id) return;
    draft.stop('ask-due');
    if (typeof result === 'string') return unanswered(draft, state, result === 'no-responders');
    // The question shows an owner of an earlier generation that there was a later one, so it claims again.
    if (draft.isOutdated(result)) return unanswered(draft, state, false);
    heardOwner(draft, state, result);
  },
  'lease-over': (draft, state) => planClaim(draft, state),
  'claim-due': (_, state) => {
    state.nextRead = 'claim';
  },
  'stop-notice': (_, state) => {
    state.nextRead = 'orient';
  },
  result: (draft, state, { call, result }) => {
    if (result.type === 'written' && call.key) return becomeOwner(draft, call.key, result.revision, call);
    if (result.type === 'entry') entryRead(draft, state, call.purpose, result);
    else if (result.type === 'unreadable') waitForRepair(draft, state);
    else if (call.purpose !== 'look') state.nextRead = 'orient';
  },
  idle: (draft, state) => {
    if (state.nextRead) draft.read(state.nextRead);
    state.nextRead = undefined;
  },
  offer: (draft, state, { offer: { key, revision } }) => {
    const { gen, refusal } = draft.election;
    const isFit = refusal === undefined && key.gen >= gen && key.source === draft.settings.source;
    if (!isFit || !mayOwn(draft) || isClaimSent(draft)) return;
    draft.noteKey(state, key, revision);
    state.name = 'claiming';
    state.nextRead = undefined;
    draft.stop('ask-due', 'lease-over', 'claim-due');
    claim(draft, { key, revision }, key, 'hand-over');
  },
  'presence-due': (draft, state) => {
    const { election } = draft;
    const { replica, since } = draft.settings;
    draft.set('presence-due', timing.presenceMs);
    if (election.refusal === undefined) draft.effects.push({ type: 'presence', presence: { replica, since } });
    // A refused replica that may not claim again checks whether any other replica can own.
    if (election.refusal?.isPast !== false || election.call !== undefined) return;
    const isSilent = draft.now - Math.max(state.heardAt, election.known.revisionAt) >= timing.standbyMs;
    if (isSilent && hasNoStandby(draft)) draft.read('check-unowned');
  },
  'drain-over': (draft) => drained(draft),
  disconnected: (draft, state) => {
    if (state.draining !== undefined) drained(draft);
  },
  failed: (draft, state, { isReplaced }) => {
    if (state.draining !== undefined) return drained(draft);
    if (!isReplaced) draft.election.refusal = { gen: 0, isPast: false };
  },
  'hand-over': (draft, state) => {
    if (!isClaimSent(draft)) leaveIfDone(draft, state);
  },
};

export const following: Readonly<Record<Following['name'], Rules<Following>>> = {
  joining: {
    ...follower,
    start: (draft) => {
      if (draft.election.isConnected) join(draft);
    },
    heard: (draft, state, { report }) => void draft.noteOwner(state, report),
  },
  following: follower,
  claiming: follower,
  isolated: follower,
};

/** Announces this replica before it reads the key, so that an owner that's just leaving can choose it. */
const join = (draft: Draft): void => {
  const { election } = draft;
  // An owner that isn't in the key gets a full lease to answer.
  election.known = { ...election.known, revisionAt: draft.now };
  if (draft.settings.canOwn) draft.set('presence-due', 0);
  draft.read('orient');
};

const follow = (draft: Draft, state: Following, heardAt = draft.now): void => {
  const { now, settings, timers } = draft;
  const { isConnected } = draft.election;
  const isCandidate = isConnected && settings.canOwn;
  Object.assign(state, { name: isConnected ? 'following' : 'isolated', heardAt, ask: undefined, unanswered: 0 });
  draft.setStateTimers({
    'ask-due': isCandidate ? now + settings.suspectMs : Infinity,
    'presence-due': isCandidate ? now : Infinity,
    'drain-over': timers['drain-over'],
  });
};

const drained = (draft: Draft): void => {
  draft.endFeed();
  draft.stop('drain-over');
  if (draft.election.isLeaving) draft.leave();
};

const heardOwner = (draft: Draft, state: Following, report: Report): void => {
  const { known } = draft.election;
  const { replica, canOwn, suspectMs } = draft.settings;
  const isKnown = report.gen === known.gen && report.owner === known.owner;
  if (!draft.noteOwner(state, report) || isClaimSent(draft)) return;
  if (state.other !== undefined && isKnown) return draft.fail(false, state.other);
  Object.assign(state, { name: 'following', ask: undefined, unanswered: 0, nextRead: undefined, isUnreadable: false });
  draft.stop('lease-over', 'claim-due');
  draft.set('ask-due', canOwn ? suspectMs : Infinity);
  if (state.other !== undefined || areOfDifferentSources(replica, report.owner)) state.nextRead = 'orient';
  else if (report.phase === 'free') planClaim(draft, state);
};

const isClaimSent = ({ election: { call } }: Draft): boolean => call?.purpose === 'claim' && call.key !== undefined;

const askOwner = (draft: Draft, state: Following): void => {
  const { election, now, settings, timers } = draft;
  const { known, precedenceUntil } = election;
  election.lastId += 1;
  state.ask = election.lastId;
  draft.effects.push({ type: 'ask', id: state.ask, question: draft.newest });
  draft.set('ask-due', timing.askMs);
  if (timers['lease-over'] !== Infinity) return;
  timers['lease-over'] = Math.max(known.revisionAt + settings.leaseMs, precedenceUntil, now);
  // The owner may have written a revision that it could no longer report.
  if (election.call === undefined && mayOwn(draft)) draft.read('look');
};

const unanswered = (draft: Draft, state: Following, isNoResponders: boolean): void => {
  const { known, precedenceUntil } = draft.election;
  state.ask = undefined;
  state.unanswered = isNoResponders ? state.unanswered + 1 : 0;
  draft.set('ask-due', state.other ? timing.presenceMs : timing.askAgainMs);
  if (state.unanswered < 2 || draft.now < precedenceUntil || state.other !== undefined) return;
  // An owner that was opening may have sent a handshake, so its lease must end first.
  if (known.phase !== 'opening') planClaim(draft, state);
};

const mayOwn = ({ election, settings }: Draft): boolean => {
  const { refusal, isLeaving, isConnected } = election;
  const isReadable = followerOf(election)?.isUnreadable === false;
  return settings.canOwn && refusal?.isPast !== false && isReadable && !isLeaving && isConnected;
};

/**
 * Plans a claim after a random time. A replica that has claimed often waits longer; a refused one gives the others a
 * head start.
 */
const planClaim = (draft: Draft, state: Following): void => {
  const { clock, settings } = draft;
  if (!mayOwn(draft) || draft.timers['claim-due'] !== Infinity) return;
  const surplus = recentClaims(draft).length - timing.freeClaims;
  const waitMs = surplus < 0 ? 0 : Math.min(timing.maxClaimWaitMs, settings.leaseMs * 2 ** surplus);
  const othersMs = draft.election.refusal === undefined ? 0 : settings.suspectMs;
  state.name = 'claiming';
  draft.stop('ask-due', 'lease-over');
  draft.set('claim-due', waitMs + othersMs + clock.random * timing.spreadMs);
};

const recentClaims = ({ election, now }: Draft): readonly number[] =>
  election.claims.filter((at) => now - at < timing.windowMs);

const entryRead = (draft: Draft, state: Following, purpose: Call['purpose'], entry: Entry): void => {
  state.isUnreadable = false;
  if (purpose === 'look') lookedAt(draft, state, entry);
  else if (purpose === 'claim') claimRead(draft, state, entry);
  else if (purpose === 'check-unowned' && isUnowned(draft, entry)) draft.fail(false);
  else orient(draft, state, entry);
};

const orient = (draft: Draft, state: Following, { key, revision }: Entry): void => {
  const { election, now, settings, timers } = draft;
  if (key === undefined || draft.isOutdated(key)) {
    // The store has no key, or has lost writes. An owner that still answers writes its key again.
    follow(draft, state);
    if (election.gen === 0) draft.note({ gen: 0, owner: '', phase: undefined, revision });
    timers['ask-due'] = settings.canOwn ? now : Infinity;
    return leaveIfDone(draft, state);
  }
  draft.noteKey(state, key, revision);
  const other = key.source === settings.source ? undefined : key.source;
  if (key.phase === 'stopped') return draft.fail(other === undefined, other);
  // A write whose result was lost has made this replica the owner.
  if (key.owner === settings.replica && key.gen > election.lastOwned) return becomeOwner(draft, key, revision);
  follow(draft, state, state.name === 'joining' ? now : state.heardAt);
  if (key.phase === 'free') planClaim(draft, state);
  if (other !== undefined && key.owner !== '') {
    // If that owner answers, this replica doesn't fit. Otherwise it claims later than replicas that do.
    state.other = other;
    draft.stop('presence-due');
    timers['ask-due'] = now;
    timers['lease-over'] = now + settings.leaseMs + timing.standbyMs;
  }
  leaveIfDone(draft, state);
};

const leaveIfDone = (draft: Draft, state: Following): void => {
  if (draft.election.isLeaving && state.draining === undefined) draft.leave();
};

/**
 * Waits while the key is unreadable. A healthy owner rewrites it with its next renewal. Other replicas mustn't replace
 * it: it may be the key of a newer version.
 */
const waitForRepair = (draft: Draft, state: Following): void => {
  state.nextRead = 'orient';
  state.isUnreadable = true;
  if (state.name === 'claiming') follow(draft, state, state.heardAt);
  draft.set('retry-due', draft.settings.renewMs);
  leaveIfDone(draft, state);
};

/** Records the key of a silent owner, whose lease restarts if it has written the key. */
const lookedAt = (draft: Draft, state: Following, entry: Entry): void => {
  const { election, settings, timers } = draft;
  const { key, revision } = entry;
  if (state.name !== 'following' || key === undefined || draft.isOutdated(key)) return;
  if (key.gen !== election.known.gen || key.owner === '') return orient(draft, state, entry);
  draft.noteKey(state, key, revision);
  if (timers['lease-over'] === Infinity) return;
  timers['lease-over'] = Math.max(timers['lease-over'], election.known.revisionAt + settings.leaseMs);
};

/** Whether no replica owns or could own, judging by the key and the standbys' messages. */
const isUnowned = (draft: Draft, { key, revision }: Entry): boolean =>
  hasNoStandby(draft) && (key === undefined || key.phase === 'free' || revision === draft.election.known.revision);

/** Standbys can be cut off from the engine for a while, so a replica that knows one waits longer. */
const hasNoStandby = ({ election, now }: Draft): boolean =>
  election.standbys.every(({ at }) => now - at >= timing.goneMs);

/** Claims the key it has read, unless another replica has written it since the claim was planned. */
const claimRead = (draft: Draft, state: Following, entry: Entry): void => {
  const { election } = draft;
  const { key, revision } = entry;
  const { known, gen } = election;
  if (state.name !== 'claiming' || !mayOwn(draft)) return orient(draft, state, entry);
  if (key === undefined || draft.isOutdated(key)) {
    if (key === undefined || known.phase !== 'free') return claim(draft, entry, known, gen === 0 ? 'first' : 'silence');
    // The store has lost a release. If the owner it shows doesn't answer, the claim is planned again.
    election.known = { ...known, phase: undefined };
    return orient(draft, state, entry);
  }
  const isUnchanged = key.gen === known.gen && revision === known.revision;
  if (key.phase === 'stopped' || (!isUnchanged && key.phase !== 'free')) return orient(draft, state, entry);
  draft.noteKey(state, key, revision);
  const released = key.stop === undefined ? 'released' : 'resumed';
  claim(draft, entry, key, key.phase === 'free' ? released : 'silence');
};

/** @param displaced - the owner whose place this replica takes */
const claim = (
  draft: Draft,
  { key, revision }: Entry,
  displaced: Pick<Election['known'], 'gen' | 'phase'>,
  cause: ChangeCause,
): void => {
  const { election, clock, now, settings } = draft;
  election.claims = [...recentClaims(draft), now];
  const ownership = {
    // The follower would drop the frames of an earlier generation.
    gen: Math.max(election.gen, clock.followed.gen) + 1,
    owner: settings.replica,
    since: clock.wall,
  };
  // An owner that was opening may have sent a handshake.
  const added = displaced.phase === 'opening' ? [{ gen: displaced.gen, leftMs: timing.creditMs }] : [];
  const claimed: ClusterKey = {
    v: 1,
    source: settings.source,
    ...ownership,
    phase: 'opening',
    credits: [...(key?.credits ?? []), ...added].slice(-timing.maxCredits),
    evictions: [...(key?.evictions ?? []), ...remaining(election.evictions, now)],
    changes: [...(key?.changes ?? []), { ...ownership, cause }].slice(-timing.maxChanges),
  };
  draft.write('claim', claimed, revision);
};

/** @param call - the call that wrote the key; `undefined` if the key was found */
const becomeOwner = (draft: Draft, key: ClusterKey, revision: Revision, call?: Call): void => {
  const { election } = draft;
  draft.endFeed();
  Object.assign(election, { gen: key.gen, lastOwned: key.gen, evictions: [] });
  election.state = new Owning(key, revision, draft.clock, call);
};
