import {
  areOfDifferentSources,
  type ChangeCause,
  type ClusterKey,
  isSameSource,
  newEpoch,
  remaining,
  sourceOf,
} from './cluster-key.js';
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
  start: (draft, me) => follow(draft, me),
  engine: (draft, me, { isConnected }) => {
    if (me.name !== 'joining') follow(draft, me);
    if (isConnected) return join(draft);
    me.wanted = undefined;
    me.ask = undefined;
  },
  heard: (draft, me, { report }) => heardOwner(draft, me, report),
  'ask-due': (draft, me) => (me.ask === undefined ? askOwner(draft, me) : unanswered(draft, me, false)),
  ask: (draft, me, { id, result }) => {
    if (me.ask !== id) return;
    draft.stop('ask-due');
    if (typeof result === 'string') return unanswered(draft, me, result === 'no-responders');
    // An owner of an earlier generation learns from the question that there was a later one, and claims again.
    if (draft.isOutdated(result)) return unanswered(draft, me, false);
    heardOwner(draft, me, result);
  },
  'lease-over': (draft, me) => planClaim(draft, me),
  'claim-due': (draft, me) => want(draft, me, 'claim'),
  'stop-notice': (draft, me) => want(draft, me, 'orient'),
  result: (draft, me, { call, result }) => {
    if (result.type === 'written' && call.key) return own(draft, call.key, result.revision, call);
    if (result.type === 'entry') entryRead(draft, me, call.purpose, result);
    else if (result.type === 'unreadable') waitForRepair(draft, me);
    else if (call.purpose !== 'look') me.wanted = 'orient';
    startWanted(draft);
  },
  'retry-due': (draft) => startWanted(draft),
  offer: (draft, me, { offer: { key, revision } }) => {
    const { gen, refusal } = draft.election;
    const isFit = refusal === undefined && key.gen >= gen && isSameSource(draft.settings, key);
    if (!isFit || !mayOwn(draft) || isClaimSent(draft)) return;
    draft.noteKey(me, key, revision);
    me.name = 'claiming';
    me.wanted = undefined;
    draft.stop('ask-due', 'lease-over', 'claim-due');
    claim(draft, { key, revision }, key, 'hand-over');
  },
  'presence-due': (draft, me) => {
    const { election } = draft;
    const { replica, since } = draft.settings;
    draft.set('presence-due', timing.presenceMs);
    if (election.refusal === undefined) draft.effects.push({ type: 'presence', presence: { replica, since } });
    // One that was refused, and may not claim again, looks whether anybody else can own.
    if (election.refusal?.isPast !== false || election.call !== undefined) return;
    const isSilent = draft.now - Math.max(me.heardAt, election.known.revisionAt) >= timing.standbyMs;
    if (isSilent && isAlone(draft)) draft.read('alone');
  },
  'drain-over': (draft) => drained(draft),
  disconnected: (draft, me) => {
    if (me.draining !== undefined) drained(draft);
  },
  failed: (draft, me, { isReplaced }) => {
    if (me.draining !== undefined) return drained(draft);
    if (!isReplaced) draft.election.refusal = { gen: 0, isPast: false };
  },
  'hand-over': (draft, me) => {
    if (!isClaimSent(draft) && me.draining === undefined) draft.leave();
  },
};

export const following: Readonly<Record<Following['name'], Rules<Following>>> = {
  joining: {
    ...follower,
    start: (draft) => {
      if (draft.election.isConnected) join(draft);
    },
    heard: (draft, me, { report }) => void draft.noteOwner(me, report),
  },
  following: follower,
  claiming: follower,
  isolated: follower,
};

/** Announces this replica before it has read the key, so that an owner that leaves at this moment can choose it. */
const join = (draft: Draft): void => {
  const { election } = draft;
  // An owner without a key has a full lease to answer.
  election.known = { ...election.known, revisionAt: draft.now };
  if (draft.settings.canOwn) draft.set('presence-due', 0);
  draft.read('orient');
};

const follow = (draft: Draft, me: Following, heardAt = draft.now): void => {
  const { now, settings, timers } = draft;
  const { isConnected } = draft.election;
  const isCandidate = isConnected && settings.canOwn;
  Object.assign(me, { name: isConnected ? 'following' : 'isolated', heardAt, ask: undefined, unanswered: 0 });
  draft.setStateTimers({
    'ask-due': isCandidate ? now + settings.suspectMs : Infinity,
    'presence-due': isCandidate ? now : Infinity,
    'drain-over': timers['drain-over'],
  });
};

/** Closes the connection that is still open although another replica owns the key. */
const drained = (draft: Draft): void => {
  draft.endFeed();
  draft.stop('drain-over');
  if (draft.election.isLeaving) draft.leave();
};

const heardOwner = (draft: Draft, me: Following, report: Report): void => {
  const { known } = draft.election;
  const { replica, canOwn, suspectMs } = draft.settings;
  const isKnown = report.gen === known.gen && report.owner === known.owner;
  if (!draft.noteOwner(me, report) || isClaimSent(draft)) return;
  if (me.other !== undefined && isKnown) return draft.fail(false, me.other);
  Object.assign(me, { name: 'following', ask: undefined, unanswered: 0, wanted: undefined, isUnreadable: false });
  draft.stop('lease-over', 'claim-due');
  draft.set('ask-due', canOwn ? suspectMs : Infinity);
  if (me.other !== undefined || areOfDifferentSources(replica, report.owner)) want(draft, me, 'orient');
  else if (report.phase === 'free') planClaim(draft, me);
};

const isClaimSent = ({ election: { call } }: Draft): boolean => call?.purpose === 'claim' && call.key !== undefined;

const askOwner = (draft: Draft, me: Following): void => {
  const { election, now, settings, timers } = draft;
  const { known, precedenceUntil } = election;
  election.lastId += 1;
  me.ask = election.lastId;
  draft.effects.push({ type: 'ask', id: me.ask, question: draft.newest });
  draft.set('ask-due', timing.askMs);
  if (timers['lease-over'] !== Infinity) return;
  timers['lease-over'] = Math.max(known.revisionAt + settings.leaseMs, precedenceUntil, now);
  // The owner may have written a revision that it could not report any more.
  if (election.call === undefined && mayOwn(draft)) draft.read('look');
};

const unanswered = (draft: Draft, me: Following, isNoResponders: boolean): void => {
  const { known, precedenceUntil } = draft.election;
  me.ask = undefined;
  me.unanswered = isNoResponders ? me.unanswered + 1 : 0;
  draft.set('ask-due', me.other ? timing.presenceMs : timing.askAgainMs);
  if (me.unanswered < 2 || draft.now < precedenceUntil || me.other !== undefined) return;
  // An owner that was opening may have sent a handshake, so its lease must end first.
  if (known.phase !== 'opening') planClaim(draft, me);
};

const mayOwn = ({ election, settings }: Draft): boolean => {
  const { refusal, isLeaving, isConnected } = election;
  const isReadable = followerOf(election)?.isUnreadable === false;
  return settings.canOwn && refusal?.isPast !== false && isReadable && !isLeaving && isConnected;
};

/**
 * Plans a claim, after a random time. A replica that has claimed often waits longer; one that was refused leaves it to
 * the others first.
 */
const planClaim = (draft: Draft, me: Following): void => {
  const { clock, settings } = draft;
  if (!mayOwn(draft) || draft.timers['claim-due'] !== Infinity) return;
  const surplus = recentClaims(draft).length - timing.freeClaims;
  const waitMs = surplus < 0 ? 0 : Math.min(timing.maxClaimWaitMs, settings.leaseMs * 2 ** surplus);
  const othersMs = draft.election.refusal === undefined ? 0 : settings.suspectMs;
  me.name = 'claiming';
  draft.stop('ask-due', 'lease-over');
  draft.set('claim-due', waitMs + othersMs + clock.random * timing.spreadMs);
};

const recentClaims = ({ election, now }: Draft): readonly number[] =>
  election.claims.filter((at) => now - at < timing.windowMs);

/** Reads the key, after the access that is in progress. */
const want = (draft: Draft, me: Following, purpose: 'orient' | 'claim'): void => {
  me.wanted = purpose;
  startWanted(draft);
};

const startWanted = (draft: Draft): void => {
  const me = followerOf(draft.election);
  if (me?.wanted === undefined || draft.isBusy) return;
  const { wanted } = me;
  me.wanted = undefined;
  draft.read(wanted);
};

const entryRead = (draft: Draft, me: Following, purpose: Call['purpose'], entry: Entry): void => {
  me.isUnreadable = false;
  if (purpose === 'look') lookedAt(draft, me, entry);
  else if (purpose === 'claim') claimRead(draft, me, entry);
  else if (purpose === 'alone' && isUnowned(draft, entry)) draft.fail(false);
  else orient(draft, me, entry);
};

const orient = (draft: Draft, me: Following, { key, revision }: Entry): void => {
  const { election, now, settings, timers } = draft;
  if (key === undefined || draft.isOutdated(key)) {
    // The store has no key, or has lost writes. An owner that still answers writes its key again.
    follow(draft, me);
    if (election.gen === 0) draft.note({ gen: 0, owner: '', phase: undefined, revision });
    timers['ask-due'] = settings.canOwn ? now : Infinity;
    return leaveIfDone(draft, me);
  }
  draft.noteKey(me, key, revision);
  const other = isSameSource(settings, key) ? undefined : sourceOf(key);
  if (key.phase === 'stopped') return draft.fail(other === undefined, other);
  // A write whose result was lost has made this replica the owner.
  if (key.owner === settings.replica && key.gen > election.lastOwned) return own(draft, key, revision);
  follow(draft, me, me.name === 'joining' ? now : me.heardAt);
  if (key.phase === 'free') planClaim(draft, me);
  if (other !== undefined && key.owner !== '') {
    // If that owner answers, this replica does not fit. Otherwise it claims later than the replicas that do.
    me.other = other;
    draft.stop('presence-due');
    timers['ask-due'] = now;
    timers['lease-over'] = now + settings.leaseMs + timing.standbyMs;
  }
  leaveIfDone(draft, me);
};

const leaveIfDone = (draft: Draft, me: Following): void => {
  if (draft.election.isLeaving && me.draining === undefined) draft.leave();
};

/**
 * Waits while the key cannot be read. A healthy owner writes its own again with its next renewal. Nobody else may
 * replace the value: it can be the key of a newer version.
 */
const waitForRepair = (draft: Draft, me: Following): void => {
  me.wanted = 'orient';
  me.isUnreadable = true;
  if (me.name === 'claiming') follow(draft, me, me.heardAt);
  draft.set('retry-due', draft.settings.renewMs);
  leaveIfDone(draft, me);
};

/** Notes the key of an owner that is silent. Its lease begins again if it has written the key. */
const lookedAt = (draft: Draft, me: Following, entry: Entry): void => {
  const { election, settings, timers } = draft;
  const { key, revision } = entry;
  if (me.name !== 'following' || key === undefined || draft.isOutdated(key)) return;
  if (key.gen !== election.known.gen || key.owner === '') return orient(draft, me, entry);
  draft.noteKey(me, key, revision);
  if (timers['lease-over'] === Infinity) return;
  timers['lease-over'] = Math.max(timers['lease-over'], election.known.revisionAt + settings.leaseMs);
};

/** Whether no replica owns, or could own, as far as the key and the messages of standbys show. */
const isUnowned = (draft: Draft, { key, revision }: Entry): boolean =>
  isAlone(draft) && (key === undefined || key.phase === 'free' || revision === draft.election.known.revision);

/** Standbys can be cut off from the engine for a while, so a replica that has heard of one waits longer. */
const isAlone = ({ election, now }: Draft): boolean => election.standbys.every(({ at }) => now - at >= timing.goneMs);

/** Claims the key that was read, unless another replica has written it since the claim was planned. */
const claimRead = (draft: Draft, me: Following, entry: Entry): void => {
  const { election } = draft;
  const { key, revision } = entry;
  const { known, gen } = election;
  if (me.name !== 'claiming' || !mayOwn(draft)) return orient(draft, me, entry);
  if (key === undefined || draft.isOutdated(key)) {
    if (key === undefined || known.phase !== 'free') return claim(draft, entry, known, gen === 0 ? 'first' : 'silence');
    // The store has lost a release. Without an answer of the owner that it shows, the claim is planned again.
    election.known = { ...known, phase: undefined };
    return orient(draft, me, entry);
  }
  const isUnchanged = key.gen === known.gen && revision === known.revision;
  if (key.phase === 'stopped' || (!isUnchanged && key.phase !== 'free')) return orient(draft, me, entry);
  draft.noteKey(me, key, revision);
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
  const { epoch } = election;
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
    ...sourceOf(settings),
    epoch: epoch === 0 ? (key?.epoch ?? newEpoch(clock.random)) : epoch,
    ...ownership,
    phase: 'opening',
    credits: [...(key?.credits ?? []), ...added].slice(-timing.maxCredits),
    evictions: [...(key?.evictions ?? []), ...remaining(election.evictions, now)],
    changes: [...(key?.changes ?? []), { ...ownership, cause }].slice(-timing.maxChanges),
  };
  draft.write('claim', claimed, revision);
};

/** Makes this replica the owner. @param call - the access that wrote the key; without it, the key was found */
const own = (draft: Draft, key: ClusterKey, revision: Revision, call?: Call): void => {
  const { election } = draft;
  draft.endFeed();
  Object.assign(election, { gen: key.gen, epoch: key.epoch, lastOwned: key.gen, evictions: [] });
  election.state = new Owning(key, revision, draft.clock, call);
};
