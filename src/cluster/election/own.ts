import { type ClusterKey, lasting, remaining, sourceOf } from './cluster-key.js';
import type { Draft, Rules } from './draft.js';
import {
  type Call,
  type Entry,
  isServing,
  leaseOf,
  Following,
  type Owning,
  phaseOf,
  type Report,
  reportOf,
} from './election.js';
import { timing } from './timing.js';

const owner: Rules<Owning> = {
  start: (draft, own) => {
    const { election } = draft;
    draft.setStateTimers({ 'renew-due': own.lease.at + draft.settings.renewMs });
    beat(draft);
    draft.effects.push({ type: 'open' });
    pump(draft, own);
    if (election.isLeaving || election.refusal?.isPast === false) release(draft, own);
  },
  engine: (draft, own, { isConnected }) => {
    if (isConnected) beat(draft);
    confirm(draft, own);
  },
  result: (draft, own, { call, result }) => {
    if (result.type === 'written' && call.key) return written(draft, own, call, call.key, result.revision);
    if (result.type === 'entry') return confirmed(draft, own, result);
    // Nobody but the owner may replace it.
    if (result.type === 'unreadable') return confirmed(draft, own, { key: undefined, revision: result.revision });
    confirm(draft, own);
  },
  heard: (draft, own, { report }) => {
    if (report.gen < own.gen || report.owner === draft.settings.replica) return;
    if (report.gen > own.gen) return displaced(draft, own, draft.isOutdated(report) ? undefined : report);
    confirm(draft, own);
  },
  'stop-notice': (draft, own) => confirm(draft, own),
  // The claim issued the newest credit of that generation. The others are for handshakes that were sent.
  voided: (_, own, { gen }) => {
    const voided = own.credits.findLast((credit) => credit.gen === gen);
    own.credits = own.credits.filter((credit) => credit !== voided);
  },
  evicted: ({ now }, own, { evictions }) => {
    own.evictions = [...own.evictions, ...lasting(evictions, now)];
  },
  'hand-over': (draft, own) => release(draft, own),
  'renew-due': (draft, own) => {
    draft.set('renew-due', draft.settings.renewMs);
    mustWrite(draft, own);
  },
  'retry-due': (draft, own) => pump(draft, own),
};

/** An owner of which no other replica may know better. */
const serving: Rules<Owning> = {
  ...owner,
  asked: (draft, own, { question: { gen, owner } }) => {
    const report = reportOf(draft.election);
    if (report) draft.effects.push({ type: 'answer', report });
    const isNewest = gen < own.gen || (gen === own.gen && owner === draft.settings.replica);
    if (!isNewest) suspectLater(draft, own, gen);
  },
  'beat-due': (draft, own) => {
    const { gen, owner } = draft.clock.followed;
    beat(draft);
    // This replica emits the frames of another owner, and drops its own.
    const isOther = gen === own.gen && owner !== draft.settings.replica;
    if (gen > own.gen || isOther) suspectLater(draft, own, gen);
  },
  disconnected: (draft, own, { isUnanswered }) => {
    // After a handshake without an answer, a later attempt that fails before its own does not change that the first
    // one can arrive.
    const canArrive = isUnanswered || remaining(own.credits, draft.now).some(({ gen }) => gen === own.gen);
    own.isSent = phaseOf(own) === 'opening' && own.isSent && canArrive;
    own.name = 'opening';
    // An owner that leaves opens nothing: its late handshake could replace the connection of the next owner.
    if (draft.election.isLeaving) return release(draft, own);
    if (isUnanswered) addCredit(draft, own);
    // An earlier write permits no handshake: it lacks the new credit, and a write of `open` can have happened although
    // its result was lost.
    own.lease = { ...own.lease, phase: 'open' };
    mustWrite(draft, own);
  },
  failed: (draft, own, { isReplaced }) => {
    if (!isReplaced) {
      draft.election.refusal = { gen: own.gen, isPast: false };
      return release(draft, own);
    }
    own.name = 'evicted';
    own.evictions = [...own.evictions, { until: draft.now + timing.evictionMs }];
    draft.stop('beat-due', 'renew-due', 'offer-over');
    pump(draft, own);
  },
};

const connected: Rules<Owning> = { ...serving, 'hand-over': (draft, own) => pump(draft, own) };

export const owning: Readonly<Record<Owning['name'], Rules<Owning>>> = {
  opening: {
    ...serving,
    handshake: (draft, own) => {
      own.name = 'waiting';
      allow(draft, own);
      pump(draft, own);
    },
  },
  waiting: serving,
  sent: {
    ...serving,
    opened: (draft, own) => {
      draft.election.refusal = undefined;
      own.name = 'open';
      beat(draft);
      mustWrite(draft, own);
    },
  },
  open: connected,
  offering: {
    ...connected,
    // The standby did not accept. The next offer needs a revision that is valid.
    'offer-over': (draft, own) => {
      own.name = 'open';
      mustWrite(draft, own);
    },
  },
  evicted: owner,
  releasing: { ...owner, 'hand-over': undefined },
};

/** Starts the access to the store that the owner needs next. */
const pump = (draft: Draft, own: Owning): void => {
  if (draft.isBusy) return;
  if (own.sync === 'read') return draft.read('confirm');
  if (own.name === 'releasing')
    return draft.write('free', keyOf(draft, own, { owner: '', phase: 'free' }), own.revision);
  if (own.name === 'evicted') return explain(draft, own);
  if (own.sync === 'write') {
    own.sync = 'done';
    return draft.write('renew', keyOf(draft, own), own.revision);
  }
  if (own.name === 'open' && draft.election.isLeaving) offerNext(draft, own);
};

/** The key must be written before the next renewal. */
const mustWrite = (draft: Draft, own: Owning): void => {
  if (own.sync === 'done') own.sync = 'write';
  pump(draft, own);
};

/** The key must be read before it is written. */
const confirm = (draft: Draft, own: Owning): void => {
  own.sync = 'read';
  pump(draft, own);
};

const keyOf = ({ election, now, settings }: Draft, own: Owning, fields: Partial<ClusterKey> = {}): ClusterKey => ({
  v: 1,
  ...sourceOf(settings),
  epoch: election.epoch,
  gen: own.gen,
  owner: settings.replica,
  phase: phaseOf(own),
  since: own.since,
  credits: remaining(own.credits, now),
  evictions: remaining(own.evictions, now),
  changes: own.changes,
  ...fields,
});

/** A handshake without an answer can still arrive and replace the next connection, whoever owns it then. */
const addCredit = ({ now }: Draft, own: Owning, gen = own.gen): void => {
  const left = own.credits.filter(({ until }) => until > now);
  own.credits = [...left, { gen, until: now + timing.creditMs }].slice(-timing.maxCredits);
};

const beat = (draft: Draft): void => {
  const { election } = draft;
  const report = reportOf(election);
  if (report === undefined || !isServing(election)) return;
  if (election.isConnected) draft.effects.push({ type: 'beat', report });
  draft.set('beat-due', timing.beatMs);
};

const written = (draft: Draft, own: Owning, call: Call, key: ClusterKey, revision: number): void => {
  const { election, effects, settings, timers } = draft;
  if (call.purpose === 'free') return released(draft, key, revision);
  if (key.phase === 'stopped') {
    effects.push({ type: 'stop-notice' });
    return draft.fail(true);
  }
  own.revision = revision;
  own.lease = leaseOf(call, key);
  timers['renew-due'] = call.sentAt + settings.renewMs;
  if (call.purpose === 'evicted' && own.name === 'evicted') {
    own.name = 'opening';
    own.credits = lasting(key.credits, call.sentAt);
    effects.push({ type: 'open' });
    // The handshake of an owner that leaves could replace the connection of the next owner.
    if (election.isLeaving) return release(draft, own);
  }
  beat(draft);
  allow(draft, own);
  pump(draft, own);
};

const confirmed = (draft: Draft, own: Owning, { key, revision }: Entry): void => {
  const { later } = own;
  own.later = 0;
  own.sync = 'write';
  const isCurrent = key !== undefined && key.gen >= own.gen;
  if (isCurrent && key.phase === 'stopped') return draft.fail(true);
  if (isCurrent && key.owner !== draft.settings.replica)
    return displaced(draft, own, { ...key, revision: revision ?? 0 });
  const hasLostData = !isCurrent || (revision ?? 0) < (own.revision ?? 0);
  // A store that has lost data cannot explain an eviction.
  if (own.name === 'evicted' && (hasLostData || later > 0)) return abandon(draft, own);
  own.revision = revision;
  if (later > 0) claimAfter(draft, own, later);
  pump(draft, own);
};

// Followers drop messages of an earlier generation than the one that the store has lost. Its owner may not know of the
// loss yet, and open.
const claimAfter = (draft: Draft, own: Owning, gen: number): void => {
  addCredit(draft, own, gen);
  own.gen = gen + 1;
  Object.assign(draft.election, { gen: own.gen, lastOwned: own.gen });
  beat(draft);
};

/**
 * Reads the key, because another replica knows this generation or a later one of another owner: either the key has that
 * owner, or the store has lost it.
 */
const suspectLater = (draft: Draft, own: Owning, gen: number): void => {
  own.later = Math.max(gen, own.later);
  confirm(draft, own);
};

/**
 * Ends the ownership, because another replica has claimed. An open connection continues until the new one replaces it,
 * so that no frame is lost.
 */
const displaced = (draft: Draft, own: Owning, by: Report | undefined): void => {
  const { election, settings } = draft;
  const { isLeaving, gen, known } = election;
  const isOpen = phaseOf(own) === 'open';
  if (!isOpen) draft.endFeed();
  if (!isOpen && !own.isSent) draft.effects.push({ type: 'voided', gen: own.gen });
  draft.endCall();
  election.state = new Following('following', isOpen ? own.gen : undefined);
  if (isOpen) draft.set('drain-over', settings.leaseMs);
  if (by && by.gen > own.gen) draft.note(by);
  // A store that has lost data can use the number of a generation again. The follower of this replica would drop the
  // messages of that owner, so its generation must count as outdated.
  else if (gen === own.gen) election.known = { ...known, gen, owner: settings.replica };
  if (isLeaving && !isOpen) draft.leave();
};

/** Gives a waiting handshake its permission, if a write that is recent enough has confirmed the lease. */
const allow = (draft: Draft, own: Owning): void => {
  if (own.name !== 'waiting') return;
  if (!isLeased(draft, own)) {
    own.sync = own.sync === 'read' ? 'read' : 'write';
    return;
  }
  own.name = 'sent';
  own.isSent = true;
  draft.effects.push({ type: 'allow' });
};

const isLeased = ({ clock, now, settings: { leaseMs, marginMs } }: Draft, { lease }: Owning): boolean => {
  const passedMs = now - lease.at;
  // The monotonic clock of some machines stops while the machine is suspended. The wall clock then shows the
  // difference.
  const jumpMs = Math.abs(clock.wall - lease.wall - passedMs);
  return lease.phase === 'opening' && passedMs < leaseMs - marginMs && jumpMs <= marginMs;
};

/**
 * Writes why the connection was replaced. If this write succeeds, no other replica had claimed. Then the reason was a
 * late handshake, for which there is a credit, or another client.
 */
const explain = (draft: Draft, own: Owning): void => {
  const { clock, now, settings } = draft;
  const { leaseMs, replica } = settings;
  // Without a lease other replicas may have claimed, and a store that has lost data would not show it.
  if (now - own.lease.at >= leaseMs) return abandon(draft, own);
  const [credit, ...credits] = remaining(own.credits, now);
  const isExplained = credit !== undefined && remaining(own.evictions, now).length <= timing.maxEvictions;
  const stopped = { owner: '', phase: 'stopped', credits: [], stop: { by: replica, at: clock.wall } } as const;
  draft.write('evicted', keyOf(draft, own, isExplained ? { credits } : stopped), own.revision);
};

// The next claim is made as if this replica had failed, and counts the eviction.
const abandon = (draft: Draft, own: Owning): void => {
  draft.election.evictions = [{ until: draft.now + timing.evictionMs }];
  displaced(draft, own, undefined);
};

/** Gives the ownership away without a successor. */
const release = (draft: Draft, own: Owning): void => {
  draft.endFeed();
  if (own.name !== 'evicted' && phaseOf(own) === 'opening' && own.isSent) addCredit(draft, own);
  own.name = 'releasing';
  draft.stop('beat-due', 'renew-due', 'offer-over');
  pump(draft, own);
};

const released = (draft: Draft, { gen, phase }: ClusterKey, revision: number): void => {
  const report = { gen, phase, revision, owner: '' };
  draft.effects.push({ type: 'beat', report });
  draft.election.state = new Following('following');
  if (draft.election.isLeaving) return draft.leave();
  draft.note(report);
};

/** Offers the ownership to the standbys, one after the other. Without one, releases the key. */
const offerNext = (draft: Draft, own: Owning): void => {
  // The youngest first: in a rolling deployment it is the one that stays.
  const [standby] = draft.election.standbys
    .filter(({ replica, at }) => draft.now - at < timing.standbyMs && !own.offered.includes(replica))
    .toSorted((one, other) => other.since - one.since);
  if (standby === undefined || own.revision === undefined) return release(draft, own);
  own.name = 'offering';
  own.offered = [...own.offered, standby.replica];
  draft.effects.push({ type: 'offer', to: standby.replica, offer: { key: keyOf(draft, own), revision: own.revision } });
  draft.stop('renew-due');
  draft.set('offer-over', timing.offerMs);
};
