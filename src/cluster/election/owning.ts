import { type ClusterKey, lasting, remaining } from './cluster-key.js';
import type { Draft, Rules } from './draft.js';
import {
  type Call,
  type Entry,
  Following,
  isServing,
  type Owning,
  phaseOf,
  type Report,
  reportOf,
} from './election.js';
import { timing } from './timing.js';

const owner: Rules<Owning> = {
  start: (draft, state) => {
    const { election } = draft;
    draft.setStateTimers({ 'renew-due': state.lease.at + draft.settings.renewMs });
    beat(draft);
    draft.effects.push({ type: 'open' });
    if (election.isLeaving || election.refusal?.isPast === false) release(draft, state);
  },
  engine: (draft, state, { isConnected }) => {
    if (isConnected) beat(draft);
    state.sync = 'read';
  },
  result: (draft, state, { call, result }) => {
    if (result.type === 'written' && call.key) return written(draft, state, call, call.key, result.revision);
    if (result.type === 'entry') return confirmed(draft, state, result);
    // Only the owner may replace it.
    if (result.type === 'unreadable') return confirmed(draft, state, { key: undefined, revision: result.revision });
    state.sync = 'read';
  },
  heard: (draft, state, { report }) => {
    if (report.gen < state.gen || report.owner === draft.settings.replica) return;
    if (report.gen > state.gen) return displaced(draft, state, draft.isOutdated(report) ? undefined : report);
    state.sync = 'read';
  },
  'stop-notice': (_, state) => {
    state.sync = 'read';
  },
  fenced: (_, state, { gen }) => {
    if (gen > state.gen) suspectLater(state, gen);
  },
  // A replica claimed this generation, and gave up before it sent a handshake. The credit of that claim, the newest one,
  // is free again; older credits of the generation belong to handshakes that were sent.
  voided: (_, state, { gen }) => {
    const unused = state.credits.findLast((credit) => credit.gen === gen);
    state.credits = state.credits.filter((credit) => credit !== unused);
  },
  evicted: ({ now }, state, { evictions }) => {
    state.evictions = [...state.evictions, ...lasting(evictions, now)];
  },
  'hand-over': (draft, state) => release(draft, state),
  'renew-due': (draft, state) => {
    draft.set('renew-due', draft.settings.renewMs);
    mustWrite(state);
  },
  idle: (draft, state) => callNext(draft, state),
};

/** Rules of an owner that knows of no later one. */
const serving: Rules<Owning> = {
  ...owner,
  asked: (draft, state, { question: { gen, owner } }) => {
    const report = reportOf(draft.election);
    if (report) draft.effects.push({ type: 'answer', report });
    const isNewest = gen < state.gen || (gen === state.gen && owner === draft.settings.replica);
    if (!isNewest) suspectLater(state, gen);
  },
  'beat-due': (draft, state) => {
    const { gen, owner } = draft.clock.followed;
    beat(draft);
    // This replica emits another owner's frames, and drops its own.
    const isOther = gen === state.gen && owner !== draft.settings.replica;
    if (gen > state.gen || isOther) suspectLater(state, gen);
  },
  disconnected: (draft, state, { isUnanswered }) => {
    // A later attempt doesn't stop an earlier, unanswered handshake from arriving, even if it has had a connection.
    const canArrive = isUnanswered || remaining(state.credits, draft.now).some(({ gen }) => gen === state.gen);
    state.isSent &&= canArrive;
    state.name = 'opening';
    // A leaving owner opens nothing: its late handshake could replace the next owner's connection.
    if (draft.election.isLeaving) return release(draft, state);
    if (isUnanswered) addCredit(draft, state);
    // Don't reuse an earlier write: it lacks the new credit, and a write of `open` may have succeeded although its
    // result was lost.
    state.lease = { ...state.lease, phase: 'open' };
    mustWrite(state);
  },
  failed: (draft, state, { isReplaced }) => {
    if (!isReplaced) {
      draft.election.refusal = { gen: state.gen, isPast: false };
      return release(draft, state);
    }
    state.name = 'evicted';
    state.evictions = [...state.evictions, { until: draft.now + timing.evictionMs }];
    draft.stop('beat-due', 'renew-due', 'offer-over');
  },
};

/** An owner that is leaving makes its offers when the store is idle. */
const connected: Rules<Owning> = { ...serving, 'hand-over': undefined };

export const owning: Readonly<Record<Owning['name'], Rules<Owning>>> = {
  opening: {
    ...serving,
    handshake: (draft, state) => {
      state.name = 'waiting';
      allow(draft, state);
    },
  },
  waiting: serving,
  sent: {
    ...serving,
    opened: (draft, state) => {
      draft.election.refusal = undefined;
      state.name = 'open';
      beat(draft);
      mustWrite(state);
    },
  },
  open: connected,
  offering: {
    ...connected,
    // The standby didn't accept. The next offer needs a valid revision.
    'offer-over': (_, state) => {
      state.name = 'open';
      mustWrite(state);
    },
  },
  evicted: owner,
  releasing: { ...owner, 'hand-over': undefined, fenced: undefined },
};

const callNext = (draft: Draft, state: Owning): void => {
  if (state.sync === 'read') return draft.read('confirm');
  if (state.name === 'releasing')
    return draft.write('free', keyOf(draft, state, { owner: '', phase: 'free' }), state.revision);
  if (state.name === 'evicted') return explain(draft, state);
  if (state.sync === 'write') {
    state.sync = 'done';
    return draft.write('renew', keyOf(draft, state), state.revision);
  }
  if (state.name === 'open' && draft.election.isLeaving) offerNext(draft, state);
};

const mustWrite = (state: Owning): void => {
  if (state.sync === 'done') state.sync = 'write';
};

const keyOf = ({ now, settings }: Draft, state: Owning, fields: Partial<ClusterKey> = {}): ClusterKey => ({
  v: 1,
  source: settings.source,
  gen: state.gen,
  owner: settings.replica,
  phase: phaseOf(state),
  since: state.since,
  credits: remaining(state.credits, now),
  evictions: remaining(state.evictions, now),
  changes: state.changes,
  ...fields,
});

/** An unanswered handshake can still arrive and replace the next connection, whoever owns it then. */
const addCredit = ({ now }: Draft, state: Owning, gen = state.gen): void => {
  const left = state.credits.filter(({ until }) => until > now);
  state.credits = [...left, { gen, until: now + timing.creditMs }].slice(-timing.maxCredits);
};

const beat = (draft: Draft): void => {
  const { election } = draft;
  const report = reportOf(election);
  if (report === undefined || !isServing(election)) return;
  if (election.isConnected) draft.effects.push({ type: 'beat', report });
  draft.set('beat-due', timing.beatMs);
};

const written = (draft: Draft, state: Owning, call: Call, key: ClusterKey, revision: number): void => {
  const { election, effects, settings, timers } = draft;
  if (call.purpose === 'free') return released(draft, key, revision);
  if (key.phase === 'stopped') {
    effects.push({ type: 'stop-notice' });
    return draft.fail(true);
  }
  state.revision = revision;
  state.lease = { phase: key.phase, at: call.at, wall: call.wall };
  timers['renew-due'] = call.at + settings.renewMs;
  if (call.purpose === 'evicted' && state.name === 'evicted') {
    state.name = 'opening';
    state.credits = lasting(key.credits, call.at);
    effects.push({ type: 'open' });
    // The handshake of a leaving owner could replace the next owner's connection.
    if (election.isLeaving) return release(draft, state);
  }
  beat(draft);
  allow(draft, state);
};

const confirmed = (draft: Draft, state: Owning, { key, revision }: Entry): void => {
  const { later } = state;
  state.later = 0;
  state.sync = 'write';
  const isCurrent = key !== undefined && key.gen >= state.gen;
  if (isCurrent && key.phase === 'stopped') return draft.fail(true);
  if (isCurrent && key.owner !== draft.settings.replica)
    return displaced(draft, state, { ...key, revision: revision ?? 0 });
  const hasLostData = !isCurrent || (revision ?? 0) < (state.revision ?? 0);
  // A store that has lost data can't explain an eviction.
  if (state.name === 'evicted' && (hasLostData || later > 0)) return abandon(draft, state);
  state.revision = revision;
  if (later > 0) claimAfter(draft, state, later);
};

// Followers drop messages of generations before the one the store has lost. The owner of that one may not know of the
// loss yet, and open.
const claimAfter = (draft: Draft, state: Owning, gen: number): void => {
  addCredit(draft, state, gen);
  state.gen = gen + 1;
  Object.assign(draft.election, { gen: state.gen, lastOwned: state.gen });
  beat(draft);
};

/**
 * Reads the key, because another replica knows a different owner of this generation or a later one. Either the key
 * names that owner, or the store has lost it.
 */
const suspectLater = (state: Owning, gen: number): void => {
  state.later = Math.max(gen, state.later);
  state.sync = 'read';
};

/**
 * Ends the ownership, because another replica has claimed. Keeps an open connection until the new one replaces it, so
 * that no frame is lost.
 */
const displaced = (draft: Draft, state: Owning, by: Report | undefined): void => {
  const { election, settings } = draft;
  const { isLeaving, gen, known } = election;
  const isOpen = phaseOf(state) === 'open';
  if (!isOpen) draft.endFeed();
  if (!isOpen && !state.isSent) draft.effects.push({ type: 'voided', gen: state.gen });
  draft.endCall();
  election.state = new Following('following', isOpen ? state.gen : undefined);
  if (isOpen) draft.set('drain-over', settings.leaseMs);
  if (by && by.gen > state.gen) draft.note(by);
  // A store that has lost data can reuse the number of a generation. This replica's follower would drop that owner's
  // messages, so its generation must count as outdated.
  else if (gen === state.gen) election.known = { ...known, gen, owner: settings.replica };
  if (isLeaving && !isOpen) draft.leave();
};

/** Permits a waiting handshake, if a recent enough write has confirmed the lease. */
const allow = (draft: Draft, state: Owning): void => {
  if (state.name !== 'waiting') return;
  if (!isLeased(draft, state)) return mustWrite(state);
  state.name = 'sent';
  state.isSent = true;
  draft.effects.push({ type: 'allow' });
};

const isLeased = ({ clock, now, settings: { leaseMs, marginMs } }: Draft, { lease }: Owning): boolean => {
  const passedMs = now - lease.at;
  // The monotonic clock of some machines stops during suspend. The wall clock then shows the difference.
  const jumpMs = Math.abs(clock.wall - lease.wall - passedMs);
  return lease.phase === 'opening' && passedMs < leaseMs - marginMs && jumpMs <= marginMs;
};

/**
 * Writes why the connection was replaced. If the write succeeds, no other replica had claimed: the reason was a late
 * handshake, for which there's a credit, or another client.
 */
const explain = (draft: Draft, state: Owning): void => {
  const { clock, now, settings } = draft;
  const { leaseMs, replica } = settings;
  // Once its lease is over, other replicas may have claimed, and a store that lost data wouldn't show it.
  if (now - state.lease.at >= leaseMs) return abandon(draft, state);
  const [credit, ...credits] = remaining(state.credits, now);
  const isExplained = credit !== undefined && remaining(state.evictions, now).length <= timing.maxEvictions;
  const stopped = { owner: '', phase: 'stopped', credits: [], stop: { by: replica, at: clock.wall } } as const;
  draft.write('evicted', keyOf(draft, state, isExplained ? { credits } : stopped), state.revision);
};

// The next claim is made as if this replica had failed, and counts the eviction.
const abandon = (draft: Draft, state: Owning): void => {
  draft.election.evictions = [{ until: draft.now + timing.evictionMs }];
  displaced(draft, state, undefined);
};

const release = (draft: Draft, state: Owning): void => {
  draft.endFeed();
  if (state.name !== 'evicted' && phaseOf(state) === 'opening' && state.isSent) addCredit(draft, state);
  state.name = 'releasing';
  draft.stop('beat-due', 'renew-due', 'offer-over');
};

const released = (draft: Draft, { gen, phase }: ClusterKey, revision: number): void => {
  const report = { gen, phase, revision, owner: '' };
  draft.effects.push({ type: 'beat', report });
  draft.election.state = new Following('following');
  if (draft.election.isLeaving) return draft.leave();
  draft.note(report);
};

/** Offers the ownership to one standby after another. If there's none, releases the key. */
const offerNext = (draft: Draft, state: Owning): void => {
  // The youngest first: in a rolling deployment it's the one that stays.
  const [standby] = draft.election.standbys
    .filter(({ replica, at }) => draft.now - at < timing.standbyMs && !state.offered.includes(replica))
    .toSorted((one, other) => other.since - one.since);
  if (standby === undefined || state.revision === undefined) return release(draft, state);
  state.name = 'offering';
  state.offered = [...state.offered, standby.replica];
  draft.effects.push({
    type: 'offer',
    to: standby.replica,
    offer: { key: keyOf(draft, state), revision: state.revision },
  });
  draft.stop('renew-due');
  draft.set('offer-over', timing.offerMs);
};
