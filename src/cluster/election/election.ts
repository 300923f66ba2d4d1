import { type ClusterKey, type Eviction, type KeyPhase, lasting, type Source } from './cluster-key.js';
import type { timingDefaults } from './timing.js';

/** What a replica does: see the states in docs/replicas.md. */
export type Role = 'joining' | 'following' | 'claiming' | 'owning' | 'isolated' | 'stopped' | 'left';

/** The settings of an election: also the times that an application can set, in ms. */
export interface ElectionSettings extends Source, Presence, Readonly<typeof timingDefaults> {
  readonly canOwn: boolean;
}

/** The number of a version of the key. It grows with each write; `undefined` if there is no key. */
export type Revision = number | undefined;

/** An owner and its generation. Without an owner it is empty; generation 0 without any. */
export interface Ownership {
  readonly gen: number;
  readonly owner: string;
}

/** What an owner reports about itself: in a beat, and in the answer to a question. */
export interface Report extends Ownership {
  readonly phase: KeyPhase;
  readonly revision: number;
}

/** What a replica that could own reports: the id of its run, which no other run has, and since when it runs. */
export interface Presence {
  readonly replica: string;
  /** In epoch ms: the youngest standby is offered the ownership first. */
  readonly since: number;
}

/** Offers the ownership to a standby: the key, and the revision that it may replace. */
export interface Offer {
  readonly key: ClusterKey;
  readonly revision: number;
}

/** A version of the key that a replica has read. */
export interface Entry {
  readonly key: ClusterKey | undefined;
  readonly revision: Revision;
}

export interface Clock {
  /** Monotonic time in ms. */
  readonly now: number;
  /** In epoch ms. */
  readonly wall: number;
  /** From 0 up to 1. */
  readonly random: number;
  /** The newest owner whose frames this replica emits, or will emit. After a loss of data the election can know less. */
  readonly followed: Ownership;
}

/** The result of an access to the store. A write without a result may still happen later. */
export type CallResult =
  | ({ readonly type: 'entry' } & Entry)
  /** The value is not a key of this version. */
  | { readonly type: 'unreadable' | 'written'; readonly revision: number }
  | { readonly type: 'conflict' | 'unknown' };

/** What a replica tells all others. */
type Notice =
  /** No handshake of this generation was sent, so its credit is not needed. */
  | { readonly type: 'voided'; readonly gen: number }
  /** Evictions that the key does not contain. */
  | { readonly type: 'evicted'; readonly evictions: readonly Eviction[] }
  | { readonly type: 'stop-notice' };

export type Input =
  | Notice
  | { readonly type: 'start' | 'tick' | 'hand-over' }
  | { readonly type: 'engine'; readonly isConnected: boolean }
  | { readonly type: 'call'; readonly id: number; readonly result: CallResult }
  /** The reaction to a question to the owner. */
  | { readonly type: 'ask'; readonly id: number; readonly result: Report | 'no-responders' | 'no-answer' }
  | { readonly type: 'heard'; readonly report: Report }
  | { readonly type: 'asked'; readonly question: Ownership }
  | { readonly type: 'standby'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly offer: Offer }
  /** `handshake`: the feed has a ticket, and waits for the permission to send its handshake. */
  | { readonly type: 'handshake' | 'opened' }
  /**
   * The connection ended, or an attempt failed. The feed makes another attempt. `isUnanswered`: the handshake was sent
   * and had no answer, so it can still arrive.
   */
  | { readonly type: 'disconnected'; readonly isUnanswered: boolean }
  /** The feed ended: it was replaced (4001), or it cannot work in this replica. */
  | { readonly type: 'failed'; readonly isReplaced: boolean };

export type Effect =
  | Notice
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'write'; readonly id: number; readonly key: ClusterKey; readonly expected: Revision }
  /** Ask an owner that is silent whether it is there, and report the newest owner that this replica knows. */
  | { readonly type: 'ask'; readonly id: number; readonly question: Ownership }
  /** `answer`: the question of this step. */
  | { readonly type: 'answer' | 'beat'; readonly report: Report }
  | { readonly type: 'presence'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly to: string; readonly offer: Offer }
  /** `open`: start the feed with its tickets, handshakes and frames. `allow`: send the handshake that waits. */
  | { readonly type: 'open' | 'allow' | 'close' | 'left' }
  /** No message of this generation follows. */
  | { readonly type: 'end'; readonly gen: number }
  /**
   * The cluster has ended for this replica: another client replaced the connection, or the feed cannot work in any
   * candidate. `other`: the replicas of this account stream something else.
   */
  | { readonly type: 'fail'; readonly isReplaced: boolean; readonly other?: Source };

/** An access to the store that has no result yet. */
export interface Call {
  readonly id: number;
  readonly purpose: 'orient' | 'look' | 'claim' | 'alone' | 'confirm' | 'renew' | 'evicted' | 'free';
  readonly sentAt: number;
  readonly sentWall: number;
  /** The key, if it is a write. */
  readonly key: ClusterKey | undefined;
}

/** A replica that does not own. */
export class Following {
  /** `isolated`: the engine is away. */
  name: 'joining' | 'following' | 'claiming' | 'isolated';
  /** When a message of the owner arrived last. */
  heardAt = 0;
  /** The id of the question that has no answer yet, and how many in a row had no responder. */
  ask: number | undefined;
  unanswered = 0;
  /** Which access to the store follows the current one. */
  wanted: 'orient' | 'claim' | undefined;
  /** What the owner streams, if it is not what this replica streams. */
  other: Source | undefined;
  isUnreadable = false;
  /** The generation of a connection that is still open although another replica owns the key. */
  draining: number | undefined;

  constructor(name: Following['name'], draining?: number) {
    this.name = name;
    this.draining = draining;
  }
}

export class Owning {
  /**
   * `opening`: the feed requests a ticket. `waiting`: its handshake waits for a confirmed lease. `offering`: `open`,
   * and a standby has an offer, for which the revision must not change. `evicted`: the connection was replaced, and the
   * reason is not known yet. `releasing`: it gives the key away without a successor.
   */
  name: 'opening' | 'waiting' | 'sent' | 'open' | 'offering' | 'evicted' | 'releasing' = 'opening';
  gen: number;
  readonly since: number;
  readonly changes: ClusterKey['changes'];
  revision: Revision;
  /** When the last confirmed write was sent, and its phase: `opening` permits a handshake. */
  lease: { readonly phase: KeyPhase; readonly at: number; readonly wall: number };
  /** What the store needs: nothing; the key as it is now, before the next renewal; or first a read of the key. */
  sync: 'done' | 'write' | 'read';
  /** The highest generation, this one or a later one, that another replica knows of another owner; 0 without. */
  later = 0;
  credits: readonly { readonly gen: number; readonly until: number }[];
  evictions: readonly { readonly until: number }[];
  /** Whether a handshake of this ownership was sent, and may arrive later if there is no connection. */
  isSent = false;
  /** The standbys that have received an offer. */
  offered: readonly string[] = [];

  /** @param call - the access that wrote the key; without it, the key was found */
  constructor(key: ClusterKey, revision: Revision, { now, wall }: Clock, call?: Call) {
    this.gen = key.gen;
    this.since = key.since;
    this.changes = key.changes;
    this.revision = revision;
    this.lease = call ? leaseOf(call, key) : { phase: 'free', at: now, wall };
    this.sync = call ? 'done' : 'write';
    this.credits = lasting(key.credits, now);
    this.evictions = lasting(key.evictions, now);
  }
}

const timerNames = [
  ...(['ask-due', 'lease-over', 'claim-due', 'call-over', 'renew-due', 'beat-due', 'presence-due'] as const),
  ...(['offer-over', 'drain-over', 'leave-over', 'retry-due'] as const),
];
export type TimerName = (typeof timerNames)[number];

/** When each timer is due, in monotonic ms; `Infinity` if it is not set. */
export type Timers = Record<TimerName, number>;

// All names are always there, because a copy of an object with a fixed shape is several times faster.
export const noTimers = Object.freeze(Object.fromEntries(timerNames.map((name) => [name, Infinity])) as Timers);

/** An election: its state, and what it remembers in every state. Plain data, which only the step that copied it changes. */
export class Election {
  readonly settings: ElectionSettings;
  state: Following | Owning | { name: 'stopped' | 'left' } = new Following('joining');
  isConnected: boolean;
  isLeaving = false;
  /**
   * The generation in which the feed could not work in this replica, for example because of its API key. It follows,
   * and claims only if another replica has opened a connection since then (`isPast`) and nobody owns one any more: keys
   * rotate.
   */
  refusal: { readonly gen: number; readonly isPast: boolean } | undefined;
  /** The highest generation that this replica has seen, and the last one that it owned. */
  gen = 0;
  lastOwned = 0;
  epoch = 0;
  /** The owner as far as this replica knows, without a phase if there is no key, and when this revision was seen first. */
  known: Known = { gen: 0, owner: '', phase: undefined, revision: undefined, revisionAt: 0 };
  /** Until then an owner without responders may be about to reconnect. */
  precedenceUntil = 0;
  call: Call | undefined;
  lastId = 0;
  /** When this replica claimed, in the last minute. */
  claims: readonly number[] = [];
  /** The evictions of this replica that the key does not contain yet. */
  evictions: Owning['evictions'] = [];
  /** Other replicas that could own. */
  standbys: readonly (Presence & { readonly at: number })[] = [];
  timers = noTimers;

  constructor(settings: ElectionSettings, isConnected: boolean) {
    this.settings = settings;
    this.isConnected = isConnected;
  }
}

interface Known extends Ownership {
  readonly phase: KeyPhase | undefined;
  readonly revision: Revision;
  readonly revisionAt: number;
}

export const leaseOf = ({ sentAt: at, sentWall: wall }: Call, { phase }: ClusterKey): Owning['lease'] => ({
  phase,
  at,
  wall,
});

export const ownerOf = ({ state }: Election): Owning | undefined => ('lease' in state ? state : undefined);

export const followerOf = ({ state }: Election): Following | undefined => ('heardAt' in state ? state : undefined);

/** One whose connection was replaced does not know by whom: it is isolated. */
export const roleOf = ({ state }: Election): Role => {
  if (state.name === 'evicted') return 'isolated';
  return 'lease' in state ? 'owning' : state.name;
};

/** Whether this replica owns, and no other one is known to. */
export const isServing = (election: Election): boolean =>
  !['evicted', 'releasing', undefined].includes(ownerOf(election)?.name);

/** Whether this replica has a connection, or opens one. */
export const hasFeed = (election: Election): boolean =>
  ownerOf(election) !== undefined || followerOf(election)?.draining !== undefined;

export const phaseOf = ({ name }: Owning): 'open' | 'opening' =>
  name === 'open' || name === 'offering' ? 'open' : 'opening';

/** Returns what an owner reports; `undefined` for a replica that does not own. */
export const reportOf = (election: Election): Report | undefined => {
  const own = ownerOf(election);
  const owner = election.settings.replica;
  return own && { gen: own.gen, owner, phase: phaseOf(own), revision: own.revision ?? 0 };
};

/** Returns the timer that is due first, and of two with the same time the one that is listed first. */
export const firstTimer = ({ timers }: Election): TimerName =>
  timerNames.reduce((first, name) => (timers[name] < timers[first] ? name : first));

/** Returns when the election needs its next `tick`, in monotonic ms; `Infinity` if it needs none. */
export const nextTick = (election: Election): number => election.timers[firstTimer(election)];
