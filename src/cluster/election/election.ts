import * as t from 'io-ts';
import { ClusterKey, Eviction, KeyPhase, lasting } from './cluster-key.js';
import type { timingDefaults } from './timing.js';

/** What a replica does: see the states in docs/replicas.md. */
export type Role = 'joining' | 'following' | 'claiming' | 'owning' | 'isolated' | 'stopped' | 'left';

/** Settings of an election, including the times that an application can set, in ms. */
export interface ElectionSettings extends Presence, Readonly<typeof timingDefaults> {
  /** What this replica streams: see {@link ClusterKey}. */
  readonly source: string;
  readonly canOwn: boolean;
}

/** The number of a version of the key. Grows with each write; `undefined` if there's no key. */
export type Revision = number | undefined;

/** An owner and its generation. The owner is empty if there's none, and generation 0 means there has been none. */
export const Ownership = t.readonly(t.type({ gen: t.number, owner: t.string }));
export type Ownership = t.TypeOf<typeof Ownership>;

/** What an owner reports about itself, in a beat or in an answer. */
export const Report = t.readonly(t.type({ gen: t.number, owner: t.string, phase: KeyPhase, revision: t.number }));
export type Report = t.TypeOf<typeof Report>;

/**
 * What a potential owner reports: the unique id of its run, and since when it runs, in epoch ms. The youngest standby
 * gets the first offer.
 */
export const Presence = t.readonly(t.type({ replica: t.string, since: t.number }));
export type Presence = t.TypeOf<typeof Presence>;

/** Offers the ownership to a standby: the key, and the revision it may replace. */
export const Offer = t.readonly(t.type({ key: ClusterKey, revision: t.number }));
export type Offer = t.TypeOf<typeof Offer>;

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
  /** The newest owner whose frames this replica emits or will. After a loss of data the election may know less. */
  readonly followed: Ownership;
}

/** How a call to the store ended. A write whose result is unknown may still happen later. */
export type CallResult =
  | ({ readonly type: 'entry' } & Entry)
  /** The value isn't a key of this version. */
  | { readonly type: 'unreadable' | 'written'; readonly revision: number }
  | { readonly type: 'conflict' | 'unknown' };

/**
 * What a replica tells all others. `voided`: no handshake of this generation was sent, so its credit isn't needed.
 * `evicted`: evictions that the key doesn't contain yet. `stop-notice`: another client has replaced the connection.
 */
export const Notice = t.readonly(
  t.union([
    t.type({ type: t.literal('voided'), gen: t.number }),
    t.type({ type: t.literal('evicted'), evictions: t.readonlyArray(Eviction) }),
    t.type({ type: t.literal('stop-notice') }),
  ]),
);
export type Notice = t.TypeOf<typeof Notice>;

export type Input =
  | Notice
  | { readonly type: 'start'; readonly isConnected?: boolean }
  | { readonly type: 'tick' }
  /** `rejoins`: the replica then follows, as an operator wants it. Otherwise it has left. */
  | { readonly type: 'hand-over'; readonly rejoins?: boolean }
  | { readonly type: 'engine'; readonly isConnected: boolean }
  | { readonly type: 'call'; readonly id: number; readonly result: CallResult }
  /** The outcome of asking the owner. */
  | { readonly type: 'ask'; readonly id: number; readonly result: Report | 'no-responders' | 'no-answer' }
  | { readonly type: 'heard'; readonly report: Report }
  | { readonly type: 'asked'; readonly question: Ownership }
  /** The store of the line has messages of this generation, and takes none of an earlier one. */
  | { readonly type: 'fenced'; readonly gen: number }
  | { readonly type: 'standby'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly offer: Offer }
  /** `handshake`: the feed has a ticket, and waits for permission to send its handshake. */
  | { readonly type: 'handshake' | 'opened' }
  /**
   * The connection ended, or an attempt failed, and the feed retries. `isUnanswered`: the handshake was sent but not
   * answered, so it can still arrive.
   */
  | { readonly type: 'disconnected'; readonly isUnanswered: boolean }
  /** The feed ended: it was replaced (4001), or it can't work in this replica. */
  | { readonly type: 'failed'; readonly isReplaced: boolean };

export type EffectOf<Type extends Effect['type']> = Extract<Effect, { readonly type: Type }>;

export type Effect =
  | Notice
  | { readonly type: 'read'; readonly id: number }
  | { readonly type: 'write'; readonly id: number; readonly key: ClusterKey; readonly expected: Revision }
  /** Ask a silent owner whether it's there, and report the newest owner this replica knows. */
  | { readonly type: 'ask'; readonly id: number; readonly question: Ownership }
  /** `answer`: replies to the question of this step. */
  | { readonly type: 'answer' | 'beat'; readonly report: Report }
  | { readonly type: 'presence'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly to: string; readonly offer: Offer }
  /** `open`: start the feed with its tickets, handshakes and frames. `allow`: send the waiting handshake. */
  | { readonly type: 'open' | 'allow' | 'close' | 'left' }
  /** No more messages of this generation follow. */
  | { readonly type: 'end'; readonly gen: number }
  /**
   * The cluster has ended for this replica: another client replaced the connection, or the feed can't work in any
   * candidate. `other`: the replicas of this account stream something else.
   */
  | { readonly type: 'fail'; readonly isReplaced: boolean; readonly other?: string };

export interface Call {
  readonly id: number;
  readonly purpose: 'orient' | 'look' | 'claim' | 'check-unowned' | 'confirm' | 'renew' | 'evicted' | 'free';
  /** When it was sent, by both clocks. */
  readonly at: number;
  readonly wall: number;
  /** The key, for a write. */
  readonly key: ClusterKey | undefined;
}

export class Following {
  /** `isolated`: the engine is unreachable. */
  name: 'joining' | 'following' | 'claiming' | 'isolated';
  /** When the owner's last message arrived. */
  heardAt = 0;
  /** The id of the unanswered question, and how many in a row had no responder. */
  ask: number | undefined;
  unanswered = 0;
  /** What to read from the store once the current call has ended. */
  nextRead: 'orient' | 'claim' | undefined;
  /** What the owner streams, if it differs from what this replica streams. */
  other: string | undefined;
  isUnreadable = false;
  /** The generation of a connection kept open although another replica owns the key. */
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
   * reason isn't known yet. `releasing`: it gives the key away, with no successor.
   */
  name: 'opening' | 'waiting' | 'sent' | 'open' | 'offering' | 'evicted' | 'releasing' = 'opening';
  gen: number;
  readonly since: number;
  readonly changes: ClusterKey['changes'];
  revision: Revision;
  /** When the last confirmed write was sent, and its phase: `opening` permits a handshake. */
  lease: { readonly phase: KeyPhase; readonly at: number; readonly wall: number };
  /** What the store needs: nothing, a write before the next renewal, or first a read. */
  sync: 'done' | 'write' | 'read';
  /** The highest generation, from this one on, in which another replica knows another owner; 0 if there's none. */
  later = 0;
  credits: readonly { readonly gen: number; readonly until: number }[];
  evictions: readonly { readonly until: number }[];
  /** Whether this ownership has sent a handshake that may still arrive while there's no connection. */
  isSent = false;
  /** The standbys that have received an offer. */
  offered: readonly string[] = [];

  /** @param call - the access that wrote the key; `undefined` if this replica found itself in it */
  constructor(key: ClusterKey, revision: Revision, { now, wall }: Clock, call?: Call) {
    const { at, wall: atWall } = call ?? { at: now, wall };
    this.gen = key.gen;
    this.since = key.since;
    this.changes = key.changes;
    this.revision = revision;
    this.lease = { phase: call ? key.phase : 'free', at, wall: atWall };
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

/** When each timer is due, in monotonic ms; `Infinity` if it isn't set. */
export type Timers = Record<TimerName, number>;

// All names are always present: objects of one shape copy several times faster.
export const noTimers = Object.freeze(Object.fromEntries(timerNames.map((name) => [name, Infinity])) as Timers);

/** An election: its state, and what it remembers across states. Plain data that only the copying step changes. */
export class Election {
  readonly settings: ElectionSettings;
  state: Following | Owning | { name: 'stopped' | 'left' } = new Following('joining');
  isConnected: boolean;
  isLeaving = false;
  /** Whether it joins again once it has left. */
  rejoins = false;
  /**
   * The generation in which this replica's feed couldn't work, for example because of its API key. Keys rotate, so it
   * may claim again, but only after another replica has opened a connection (`isPast`) and the ownership is free again.
   */
  refusal: { readonly gen: number; readonly isPast: boolean } | undefined;
  /** The highest known generation, and the last one that this replica owned. */
  gen = 0;
  lastOwned = 0;
  /** What this replica knows of the owner (no phase if there's no key), and when it first read this revision. */
  known: Known = { gen: 0, owner: '', phase: undefined, revision: undefined, revisionAt: 0 };
  /** Until then an owner without responders may be about to reconnect. */
  precedenceUntil = 0;
  call: Call | undefined;
  lastId = 0;
  /** When this replica claimed, in the last minute. */
  claims: readonly number[] = [];
  /** Evictions of this replica that the key doesn't contain yet. */
  evictions: Owning['evictions'] = [];
  /** Other replicas that could own the connection. */
  standbys: readonly (Presence & { readonly at: number })[] = [];
  timers = noTimers;

  constructor(settings: ElectionSettings, isConnected = false) {
    this.settings = settings;
    this.isConnected = isConnected;
  }
}

interface Known extends Ownership {
  readonly phase: KeyPhase | undefined;
  readonly revision: Revision;
  readonly revisionAt: number;
}

export const ownerOf = ({ state }: Election): Owning | undefined => ('lease' in state ? state : undefined);

export const followerOf = ({ state }: Election): Following | undefined => ('heardAt' in state ? state : undefined);

/** A replica whose connection was replaced doesn't know by whom, so it's isolated. */
export const roleOf = ({ state }: Election): Role => {
  if (state.name === 'evicted') return 'isolated';
  return 'lease' in state ? 'owning' : state.name;
};

/** Whether this replica owns, and knows of no other owner. */
export const isServing = (election: Election): boolean =>
  !['evicted', 'releasing', undefined].includes(ownerOf(election)?.name);

export const hasFeed = (election: Election): boolean =>
  ownerOf(election) !== undefined || followerOf(election)?.draining !== undefined;

export const phaseOf = ({ name }: Owning): 'open' | 'opening' =>
  name === 'open' || name === 'offering' ? 'open' : 'opening';

export const reportOf = (election: Election): Report | undefined => {
  const state = ownerOf(election);
  const owner = election.settings.replica;
  return state && { gen: state.gen, owner, phase: phaseOf(state), revision: state.revision ?? 0 };
};

/** Returns the timer that's due first. Of two with the same time, the one listed first. */
export const firstTimer = ({ timers }: Election): TimerName =>
  timerNames.reduce((first, name) => (timers[name] < timers[first] ? name : first));

/** Returns when the election needs its next `tick`, in monotonic ms; `Infinity` if never. */
export const nextTick = (election: Election): number => election.timers[firstTimer(election)];
