import type { Feed } from '../../protocol/feed.js';
import type { ClusterKey, Credit, KeyPhase, OwnerPhase } from './cluster-key.js';

/** What a replica does: see the states in docs/replicas.md. */
export type Role = 'joining' | 'following' | 'claiming' | 'owning' | 'isolated' | 'stopped' | 'left';

/** The settings of an election. Durations in ms. */
export interface ElectionSettings {
  /** The id of this run of a replica. No other run has the same id. */
  readonly replica: string;
  /** When this run started, in epoch ms: the youngest standby is offered the ownership first. */
  readonly since: number;
  readonly feed: Feed;
  readonly canOwn: boolean;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly marginMs: number;
  readonly suspectMs: number;
  readonly handOverMs: number;
}

/** The number of a version of the key. It grows with each write. */
export type Revision = number;

/** The time of a step, and its random number. */
export interface Clock {
  /** Monotonic time in ms. */
  readonly now: number;
  /** Wall clock in epoch ms. */
  readonly wall: number;
  /** From 0 up to 1. */
  readonly random: number;
  /** The highest generation of the frames that this replica emits, or will emit; 0 without any. */
  readonly followed: number;
}

/** What an owner reports about itself: in a beat, and in the answer to a question. */
export interface Report {
  readonly gen: number;
  readonly owner: string;
  readonly phase: KeyPhase;
  readonly revision: Revision;
}

/** What a replica asks an owner that is silent: whether it is there. Reports the newest owner that the replica knows. */
export interface Question {
  readonly gen: number;
  readonly owner: string;
}

/** What a replica reports to standbys: that it could own, and since when it runs. */
export interface Presence {
  readonly replica: string;
  readonly since: number;
}

/** Offers the ownership to a standby: the key, and the revision that it may replace. */
export interface Offer {
  readonly key: ClusterKey;
  readonly revision: Revision;
}

/** The result of an access to the store. A write without a result may still happen later. */
export type CallResult =
  | { readonly type: 'entry'; readonly key: ClusterKey | undefined; readonly revision: Revision | undefined }
  | { readonly type: 'written'; readonly revision: Revision }
  | { readonly type: 'conflict' }
  | { readonly type: 'unknown' };

/** The reaction to a question to the owner. */
export type AskResult =
  | { readonly type: 'answer'; readonly report: Report }
  | { readonly type: 'no-responders' }
  | { readonly type: 'no-answer' };

/** Everything that an election can observe. */
export type Input =
  | { readonly type: 'start' | 'tick' }
  | { readonly type: 'engine'; readonly isConnected: boolean }
  | { readonly type: 'call'; readonly id: number; readonly result: CallResult }
  | { readonly type: 'ask'; readonly id: number; readonly result: AskResult }
  | { readonly type: 'heard'; readonly report: Report }
  | { readonly type: 'asked'; readonly question: Question }
  | { readonly type: 'standby'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly offer: Offer }
  | { readonly type: 'voided'; readonly gen: number }
  | { readonly type: 'evicted'; readonly evictions: ClusterKey['evictions'] }
  | { readonly type: 'stop-notice' }
  /** The feed has a ticket, and waits for the permission to send its handshake. */
  | { readonly type: 'handshake' }
  | { readonly type: 'opened' }
  /**
   * The connection ended, or an attempt failed. The feed makes another attempt. `isUnanswered`: the handshake was sent and had no answer, so it
   * can still arrive.
   */
  | { readonly type: 'disconnected'; readonly isUnanswered: boolean }
  /** The feed ended: it was replaced (4001), or it cannot work in this replica. */
  | { readonly type: 'failed'; readonly isReplaced: boolean }
  | { readonly type: 'hand-over' };

/** Everything that an election can demand. */
export type Effect =
  | { readonly type: 'read'; readonly id: number }
  | {
      readonly type: 'write';
      readonly id: number;
      readonly key: ClusterKey;
      readonly expected: Revision | undefined;
    }
  | { readonly type: 'ask'; readonly id: number; readonly question: Question }
  /** Answer the question of this step. */
  | { readonly type: 'answer'; readonly report: Report }
  | { readonly type: 'beat'; readonly report: Report }
  | { readonly type: 'presence'; readonly presence: Presence }
  | { readonly type: 'offer'; readonly to: string; readonly offer: Offer }
  /** No handshake of this generation was sent, so its credit is not needed. */
  | { readonly type: 'voided'; readonly gen: number }
  /** Report evictions that the key does not contain. */
  | { readonly type: 'evicted'; readonly evictions: ClusterKey['evictions'] }
  | { readonly type: 'stop-notice' }
  /** Start the feed: tickets, handshakes, frames. */
  | { readonly type: 'open' }
  /** Send the handshake that waits. */
  | { readonly type: 'allow' }
  | { readonly type: 'close' }
  /** No message of this generation follows. */
  | { readonly type: 'end'; readonly gen: number }
  /** The cluster has ended for this replica: another client replaced the connection, or the feed cannot work in any candidate. */
  | { readonly type: 'fail'; readonly isReplaced: boolean }
  | { readonly type: 'left' };

/** The owner as far as this replica knows. */
export interface Known {
  readonly gen: number;
  readonly owner: string;
  /** `undefined`: there is no key. */
  readonly phase: KeyPhase | undefined;
  readonly revision: Revision | undefined;
  /** When this revision was observed first. */
  readonly revisionAt: number;
}

/** Why the store is accessed. */
export type Purpose = 'orient' | 'look' | 'claim' | 'alone' | 'confirm' | 'renew' | 'evicted' | 'free';

/** An access to the store that has no result yet. */
export interface Call {
  readonly id: number;
  readonly purpose: Purpose;
  readonly sentAt: number;
  readonly sentWall: number;
  /** The key, if it is a write. */
  readonly key: ClusterKey | undefined;
}

/** The state of an owner. */
export interface Own {
  readonly gen: number;
  readonly epoch: number;
  readonly since: number;
  readonly phase: OwnerPhase;
  readonly revision: Revision | undefined;
  /** The phase of the last confirmed write, and when that write was sent. */
  readonly written: { readonly phase: KeyPhase; readonly at: number; readonly wall: number } | undefined;
  readonly credits: readonly Credit[];
  readonly evictions: ClusterKey['evictions'];
  readonly changes: ClusterKey['changes'];
  /** When the remaining times of credits and evictions were right. */
  readonly agedAt: number;
  /** Whether the key must be written without waiting for the next renewal. */
  readonly isDirty: boolean;
  /** Whether the key must be read before it is written. */
  readonly mustRead: boolean;
  /** The highest generation, this one or a later one, that another replica knows of another owner; `undefined` if there is none. */
  readonly later: number | undefined;
  /** Whether a handshake waits for the permission. */
  readonly isWaiting: boolean;
  /** Whether a handshake may have been sent since the claim. */
  readonly isSent: boolean;
  /** Whether a connection was replaced and the reason is not known yet. */
  readonly isEvicted: boolean;
  readonly isReleasing: boolean;
  /** The standbys that received an offer; `undefined` if the owner does not leave. */
  readonly offered: readonly string[] | undefined;
  /** Whether an offer may be accepted at the moment: the revision must not change. */
  readonly isOffering: boolean;
}

// All names are always there, because a copy of an object with a fixed shape is several times faster.
const noTimers = Object.freeze({
  ask: undefined,
  'ask-timeout': undefined,
  lease: undefined,
  claim: undefined,
  call: undefined,
  renew: undefined,
  beat: undefined,
  presence: undefined,
  offer: undefined,
  drain: undefined,
  leave: undefined,
  retry: undefined,
});

/** Names of the timers. */
export type TimerName = keyof typeof noTimers;

/** When each timer is due, in monotonic ms; `undefined` if it is not set. */
export type Timers = Readonly<Record<TimerName, number | undefined>>;

/** The state of an election. Plain data: it can be copied, compared and printed. */
export interface Election {
  readonly settings: ElectionSettings;
  readonly role: Role;
  readonly isConnected: boolean;
  readonly isLeaving: boolean;
  /** Whether the feed cannot work in this replica: it follows, and never claims. */
  readonly isBarred: boolean;
  /** The highest generation that this replica has seen. */
  readonly gen: number;
  readonly epoch: number;
  readonly known: Known;
  /** When a message of the owner arrived last. */
  readonly heardAt: number;
  /** How many questions in a row had no responder. */
  readonly unanswered: number;
  /** Until then an owner without responders may be about to reconnect. */
  readonly precedenceUntil: number;
  readonly ask: number | undefined;
  readonly call: Call | undefined;
  /** Which access follows the current one, if this replica does not own. */
  readonly wanted: 'orient' | 'claim' | undefined;
  readonly lastId: number;
  /** When this replica claimed, in the last minute. */
  readonly claims: readonly number[];
  /** When connections of this replica were replaced, if the key does not contain it yet. */
  readonly evictions: readonly number[];
  /** The last generation that this replica owned. */
  readonly lastOwned: number;
  /** Other replicas that could own. */
  readonly standbys: readonly (Presence & { readonly at: number })[];
  readonly own: Own | undefined;
  /** The generation of a connection that is still open although another replica owns the key. */
  readonly draining: number | undefined;
  readonly timers: Timers;
}

/** Creates the state of a replica before its `start`. */
export const createElection = (settings: ElectionSettings, isConnected: boolean): Election => ({
  settings,
  role: 'joining',
  isConnected,
  isLeaving: false,
  isBarred: false,
  gen: 0,
  epoch: 0,
  known: { gen: 0, owner: '', phase: undefined, revision: undefined, revisionAt: 0 },
  heardAt: 0,
  unanswered: 0,
  precedenceUntil: 0,
  ask: undefined,
  call: undefined,
  wanted: undefined,
  lastId: 0,
  claims: [],
  evictions: [],
  lastOwned: 0,
  standbys: [],
  own: undefined,
  draining: undefined,
  timers: noTimers,
});

/** Returns the name of the timer that is due first; `undefined` if none is set. Of two with the same time it is the one that is listed first. */
export const firstTimer = ({ timers }: Election): TimerName | undefined => {
  let first: TimerName | undefined;
  let firstAt = Infinity;
  for (const name of timerNames) {
    const at = timers[name];
    if (at === undefined || at >= firstAt) continue;
    [first, firstAt] = [name, at];
  }
  return first;
};

const timerNames = Object.keys(noTimers) as readonly TimerName[];

/** Returns when the election needs its next `tick`, in monotonic ms; `Infinity` if it needs none. */
export const nextTick = (election: Election): number => {
  const first = firstTimer(election);
  return first === undefined ? Infinity : (election.timers[first] ?? Infinity);
};

/** Returns an election that has ended: it has no timer, and waits for nothing. */
export const endElection = (election: Election, role: 'stopped' | 'left'): Election => ({
  ...election,
  ...{ role, own: undefined, call: undefined, ask: undefined, wanted: undefined, timers: noTimers },
});
