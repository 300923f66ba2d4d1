import type {
  ClusterLifecycleEvent,
  Disconnected,
  Gap,
  LifecycleEvent,
  Opened,
  Stopped,
  TicketIssued,
  Watermark,
} from './event.js';
import { type FailureCode, type Meaning, relayReports, subscribedAgain } from './failures/meanings.js';
import { createFailure, type TradeFeedError } from './failures/trade-feed-error.js';
import type { AnyFrame } from './frame.js';

/**
 * What happened to a feed so far. Status, statistics, gaps, windows, snapshots, logs and warnings all read this one
 * fold.
 *
 * Pure. While a connection is complete, frames change nothing, so each costs a single comparison.
 *
 * After `opened`, a connection settles: on the Free plan the service sends each frame 500 ms late (contract, section
 * 6), and a new connection starts empty. So it isn't complete at once, and the ticket doesn't name the plan: only the
 * first frame, or its absence, tells from when on it is. Until then, an outage goes on.
 */
export interface FeedState {
  /** What a late subscriber receives first. */
  readonly events: Snapshot;
  /** The open connection. `at`: when it opened, or the time of its first item if `opened` was filtered out. */
  readonly open: { readonly at: number; readonly connection: number } | undefined;
  readonly hasOpened: boolean;
  /** From when the connection misses nothing, in epoch ms; `undefined` while it settles or is down. */
  readonly completeFrom: number | undefined;
  /** How to find {@link FeedState.completeFrom}; `undefined` unless the connection settles. */
  readonly settling: Settling | undefined;
  /** The current outage, up to `completeFrom`; `undefined` before the first connection. */
  readonly outage: Outage | undefined;
  /** The gap that ended the last outage, if this fold created it. The source may still emit its own. */
  readonly found: Gap | undefined;
  /** The gaps that the last event revealed. */
  readonly gaps: readonly Gap[];
  readonly watermark: number | undefined;
  /** Failures since the last `opened`. */
  readonly failuresInRow: number;
  readonly totals: FeedTotals;
}

export type Snapshot = readonly LifecycleEvent[];

export interface Outage {
  /**
   * When the last open connection ended, in epoch ms; for a stalled one, when the last bytes arrived; for one to a
   * relay, the time of its last event. With `deliveryDelayMs`: the first frame after that, once it has arrived.
   */
  readonly from: number;
  readonly failure: TradeFeedError;
  /** Whether the feed's subscription ended during it. If so, the feed emits no `gap` after the next `opened`. */
  readonly hasStopped: boolean;
  /** Whether no event told when it began, so that a `gap` knows better. */
  readonly isGuessed?: true;
  /** Whether it began before the first event. */
  readonly isOlder?: true;
}

/** A connection that isn't known to be complete yet. All times are in epoch ms. */
export interface Settling {
  readonly openedAt: number;
  /** A frame before this time wasn't delayed. `-Infinity` if it's unknown when the handshake was sent. */
  readonly delayedFrom: number;
  /** When it's complete at the latest. */
  readonly until: number;
  /** Whether it isn't complete before `until`, whatever arrives: `deliveryDelayMs` is a number. */
  readonly isFixed: boolean;
}

export interface FeedTotals {
  readonly attempts: number;
  /** Reconnects, by the code of the failure before each. */
  readonly reconnects: Readonly<Partial<Record<FailureCode, number>>>;
  readonly gaps: number;
  /** The total length of the gaps, in ms. Time that two gaps cover counts once. */
  readonly lostMs: number;
  /** When the last gap ended, in epoch ms. */
  readonly lostUntil: number;
  /** How many frames a relay or a worker dropped. */
  readonly missed: number;
}

const none: readonly Gap[] = [];

export const noFeed: FeedState = {
  events: [],
  open: undefined,
  hasOpened: false,
  completeFrom: undefined,
  settling: undefined,
  outage: undefined,
  found: undefined,
  gaps: none,
  watermark: undefined,
  failuresInRow: 0,
  totals: { attempts: 0, reconnects: {}, gaps: 0, lostMs: 0, lostUntil: -Infinity, missed: 0 },
};

export const stoppedAt = (from: number, failure: TradeFeedError, hasOpened = true): FeedState => ({
  ...noFeed,
  hasOpened,
  outage: { from, failure, hasStopped: true },
});

/**
 * Folds an event into the state.
 *
 * An outage begins when an open connection ends, and lasts until the next one is complete. It has one gap: the `gap`
 * event that the source emits before the first frame. If the source emits none, as after resubscribing (`retry`,
 * `repeat`), this creates it. If only the connection to a relay was down, there's no gap: see {@link isOfRelay}.
 *
 * @param newestAt - the time of the newest frame or event before this one, in epoch ms: the start of an outage without
 *   any event
 */
export const afterEvent = (state: FeedState, event: ClusterLifecycleEvent, newestAt: number | undefined): FeedState => {
  const before = beforeEvent(state, event, newestAt);
  if (event.type === 'watermark') return { ...before, watermark: event.at };
  const { open, failuresInRow } = before;
  const { gaps, ...connection } = connectionAfter(before, event, newestAt);
  return {
    ...before,
    ...connection,
    gaps: [...before.gaps, ...gaps],
    events: eventsAfter(before.events, event, connection),
    open: openAfter(open, event),
    failuresInRow: event.type === 'opened' ? 0 : failuresInRow + (event.type === 'disconnected' ? 1 : 0),
    totals: totalsAfter(before.totals, event, gaps),
  };
};

/** Folds a frame into the state. It proves that a connection is open, even if the events were filtered out. */
export const afterFrame = (before: FeedState, at: number, frame?: AnyFrame): FeedState => {
  const { open, settling, outage } = before;
  if (open !== undefined) return settling === undefined ? withoutGaps(before) : afterFirstFrame(before, settling, at);
  const { connection = 1, feed, receivedAt = at } = frame ?? {};
  const events: Snapshot = feed === undefined ? [] : [{ type: 'opened', at: receivedAt, feed, connection }];
  return completed({ ...before, hasOpened: true, open: { at, connection }, events, failuresInRow: 0 }, at, outage);
};

/** Folds the time into the state, in epoch ms: no item or event before it follows. */
export const afterTime = (before: FeedState, at: number): FeedState => {
  const { settling, outage } = before;
  if (settling === undefined || (at < settling.until && !isDue(settling))) return withoutGaps(before);
  return completed(before, settling.until, outage);
};

/** Whether the connection was complete when it opened. Only the `gap` of the source may still follow. */
const isDue = ({ openedAt, until }: Settling): boolean => until <= openedAt;

const beforeEvent = (state: FeedState, event: ClusterLifecycleEvent, newestAt = -Infinity): FeedState => {
  if (event.type === 'gap') return withoutGaps(state);
  if (event.type === 'watermark') {
    // A relay may send one between an `opened` and its `gap`.
    return state.settling && isDue(state.settling) ? withoutGaps(state) : afterTime(state, event.at);
  }
  // For a new subscription, the clock proves nothing: the connection may have ended long ago.
  const hasEnded = event.type === 'disconnected' || event.type === 'stopped';
  return afterTime(state, hasEnded ? Math.min(event.failure.endedAt, event.at) : newestAt);
};

const withoutGaps = (state: FeedState): FeedState => (state.gaps.length === 0 ? state : { ...state, gaps: none });

const afterFirstFrame = (before: FeedState, settling: Settling, at: number): FeedState => {
  const { outage } = before;
  const { openedAt, delayedFrom, until, isFixed } = settling;
  if (at >= until || isDue(settling)) return completed(before, until, outage);
  if (!isFixed) return completed(before, at < delayedFrom ? openedAt : Math.max(at, openedAt), outage);
  // The gap before the first frame; another one follows at `until`.
  if (outage === undefined || outage.from >= openedAt) return withoutGaps(before);
  const gap = gapUntil(outage, at);
  return withGaps({ ...before, outage: { ...outage, from: at }, events: withFirstGap(before.events, gap) }, [gap]);
};

const completed = (before: FeedState, completeFrom: number, outage: Outage | undefined): FeedState => {
  const found = outage && gapUntil(outage, completeFrom);
  const events = settledSnapshot(before.events, completeFrom);
  const after = { ...before, completeFrom, settling: undefined, outage: undefined, found, events };
  return withGaps(after, found === undefined ? none : [found]);
};

const withGaps = (state: FeedState, gaps: readonly Gap[]): FeedState => ({
  ...state,
  gaps,
  totals: gaps.reduce(withGap, state.totals),
});

const openAfter = (open: FeedState['open'], event: ClusterLifecycleEvent): FeedState['open'] => {
  if (event.type === 'opened') return { at: event.at, connection: event.connection };
  return isOfAttempt(event) ? undefined : open;
};

const totalsAfter = (totals: FeedTotals, event: ClusterLifecycleEvent, gaps: readonly Gap[]): FeedTotals => {
  const after = gaps.reduce(withGap, totals);
  if (event.type === 'ticket-requested') return { ...after, attempts: after.attempts + 1 };
  if (event.type === 'gap' && event.missed !== undefined) return { ...after, missed: after.missed + event.missed };
  // A relay whose feed stopped emits it as well, and then waits for a restart.
  if (event.type !== 'disconnected' || event.failure.verdict === 'stop') return after;
  const { code } = event.failure;
  return { ...after, reconnects: { ...after.reconnects, [code]: (after.reconnects[code] ?? 0) + 1 } };
};

const withGap = (totals: FeedTotals, { from, to }: Gap): FeedTotals => ({
  ...totals,
  // The feed and the relay may both report the same outage.
  gaps: totals.gaps + (from >= totals.lostUntil ? 1 : 0),
  lostMs: totals.lostMs + newlyLostMs(totals, from, to),
  lostUntil: Math.max(totals.lostUntil, to),
});

/** Returns how long a gap lasted, in ms, minus what earlier gaps cover. */
export const newlyLostMs = ({ lostUntil }: FeedTotals, from: number, to: number): number =>
  Math.max(0, to - Math.max(from, lostUntil));

type Connection = Pick<FeedState, 'hasOpened' | 'completeFrom' | 'settling' | 'outage' | 'found'>;

const connectionAfter = (
  before: FeedState,
  event: Exclude<ClusterLifecycleEvent, Watermark>,
  newestAt: number | undefined,
): Connection & Pick<FeedState, 'gaps'> => {
  const { hasOpened, completeFrom, settling, outage, found } = before;
  const unchanged = { hasOpened, completeFrom, settling, outage, found, gaps: none };
  const down = { ...unchanged, completeFrom: undefined, settling: undefined, found: undefined };
  const isOnlyRelay = outage !== undefined && isOfRelay(outage);
  switch (event.type) {
    case 'engine-refused':
    case 'engine-recovered':
    case 'ticket-issued':
    case 'reconnecting':
      return unchanged;
    case 'owner-changed':
      return { ...down, outage: outage ?? resubscribed(before, newestAt) };
    case 'ticket-requested':
      // After the connection to a relay, the feed itself begins anew: the relay has restarted.
      return {
        ...down,
        outage: isOnlyRelay ? { ...outage, hasStopped: true } : (outage ?? resubscribed(before, newestAt)),
      };
    case 'disconnected': {
      if (event.failure.stage !== 'stream') return isOnlyRelay ? unchanged : down;
      const begun = hasOpened ? outageFrom(event) : { ...outageFrom(event), isOlder: true as const };
      if (isOfRelay(begun))
        return {
          ...(outage === undefined || isOnlyRelay ? unchanged : down),
          ...{ settling: undefined, hasOpened: true, outage: outage ?? begun },
        };
      // What the relay had while it was away is unknown, unless its `opened` came first.
      const from = Math.min(outage?.from ?? begun.from, begun.from);
      return { ...down, hasOpened: true, outage: isOnlyRelay ? { ...begun, from } : (outage ?? begun) };
    }
    case 'stopped': {
      const isBegin = hasOpened || event.failure.stage === 'stream';
      const begun = outage ?? (isBegin ? outageFrom(event) : undefined);
      return { ...down, hasOpened: isBegin, outage: begun && { ...begun, hasStopped: true } };
    }
    case 'opened': {
      const opened = { ...down, hasOpened: true };
      const begun = outage ?? resubscribed(before, newestAt);
      const settles = settlingOf(event, before);
      const isRelayBack = begun !== undefined && isOfRelay(begun);
      if (isDue(settles) && (begun === undefined || isRelayBack)) {
        // The relay's connection to the service is unchanged. A subscriber that joined during the outage may lack frames
        // of the ms in which it began.
        const since = begun && (completeFrom ?? Math.max(settles.until, begun.from + 1));
        return { ...opened, completeFrom: since ?? settles.until, outage: undefined };
      }
      // Otherwise the relay has restarted, because its connection settles.
      const isUnknown = isRelayBack && completeFrom === undefined;
      const ended = isUnknown ? undefined : isRelayBack ? { ...begun, hasStopped: true } : begun;
      return { ...opened, settling: settles, outage: ended };
    }
    case 'gap': {
      // Frames that a relay or a worker dropped prove nothing about the connection.
      if (settling !== undefined && !isDue(settling) && event.missed !== undefined)
        return { ...unchanged, gaps: [event] };
      const isKnown =
        found !== undefined && event.missed === undefined && found.from <= event.from && event.to <= found.to;
      // A gap that begins later misses the start of the outage, so the outage gets its own gap as well.
      const isGuess = outage?.isGuessed === true && event.missed === undefined;
      const isWhole = outage === undefined || outage.from >= event.from || isGuess;
      const uncovered = isWhole ? none : [gapUntil(outage, event.to)];
      const gaps = isKnown ? none : [...uncovered, event];
      if (settling?.isFixed === true && event.to < settling.until)
        return { ...unchanged, gaps, outage: outage && { ...outage, from: Math.max(outage.from, event.to) } };
      const from = settling === undefined ? (completeFrom ?? event.to) : event.to;
      return { ...down, hasOpened: true, completeFrom: from, outage: undefined, gaps };
    }
  }
};

const settlingOf = ({ at, completeFrom }: Opened, { events }: FeedState): Settling => {
  const issued = events.find(({ type }) => type === 'ticket-issued') as TicketIssued | undefined;
  const delayedFrom = issued === undefined ? -Infinity : issued.at + freeDelayMs - toleranceMs;
  return { openedAt: at, delayedFrom, until: completeFrom ?? at + freeDelayMs, isFixed: completeFrom !== undefined };
};

/** The delay of each frame on the Free plan, in ms (contract, section 8). */
export const freeDelayMs = 500;
/** Clocks and timers may differ by this much, in ms. */
const toleranceMs = 5;

// A page's connection to its relay ends at the time of the stream, because the relay may still hold frames from before
// `endedAt`.
const outageFrom = ({ at, failure }: Disconnected | Stopped): Outage => ({
  from: Math.min(failure.endedAt, at),
  failure,
  hasStopped: false,
});

/** Returns the outage between two subscriptions if the first just ended: `repeat`, `concat`, `switchMap`. */
const resubscribed = ({ hasOpened }: FeedState, newestAt: number | undefined): Outage | undefined => {
  if (!hasOpened || newestAt === undefined) return undefined;
  const failure = createFailure(subscribedAgain, { stage: 'stream', endedAt: newestAt });
  return { from: newestAt, failure, hasStopped: true, isGuessed: true };
};

export const failureIn = ({ events }: FeedState): TradeFeedError | undefined =>
  (events as readonly { readonly failure?: TradeFeedError }[]).flatMap(({ failure }) => failure ?? []).at(-1);

export const hasStopped = ({ events }: FeedState): boolean => events.at(-1)?.type === 'stopped';

/**
 * Returns whether only the connection to a relay, to the engine of a cluster, or the writer of a log, is down. Its
 * frames, or a `gap`, follow later.
 */
export const isOfRelay = ({ failure, hasStopped }: Pick<Outage, 'failure' | 'hasStopped'>): boolean =>
  !hasStopped && relayCodes.includes(failure.code);

const relayCodes: readonly FailureCode[] = [
  'relay-lost',
  'relay-stalled',
  'invalid-relay-data',
  'relay-closing',
  'relay-session-ended',
  'relay-replaced',
  'log-writer-gone',
  'cluster-away',
  'cluster-behind',
];

export interface Missed {
  readonly from: number;
  readonly to: number;
  /** How many frames; `undefined` if unknown. */
  readonly frames: number | undefined;
}

/** Creates a gap between two times, in epoch ms. Its length is never negative, even if the clock was set back. */
export const createGap = (begin: number, to: number, failure: TradeFeedError): Gap => {
  const from = Math.min(begin, to);
  return { type: 'gap', from, to, durationMs: to - from, failure };
};

export const gapUntil = ({ from, failure }: Outage, to: number): Gap => createGap(from, to, failure);

export const gapOfMissed = ({ from, to, frames }: Missed, meaning: Meaning): Gap => {
  const gap = createGap(from, to, createFailure(meaning, { stage: 'stream', endedAt: Math.min(from, to) }));
  return frames === undefined ? gap : { ...gap, missed: frames };
};

export const relayGap = (missed: Missed): Gap => gapOfMissed(missed, relayReports.behind);

/** A value in a relay's log. */
export interface LoggedValue {
  readonly type: 'value';
  readonly at: number;
  readonly json: string;
}

const eventsAfter = (
  events: Snapshot,
  event: ClusterLifecycleEvent,
  { completeFrom, outage, settling }: Connection,
): Snapshot => {
  if (event.type === 'stopped') return [event];
  if (event.type === 'opened') {
    if (completeFrom !== undefined) return settledSnapshot([event], completeFrom);
    if (outage === undefined) return [event];
    // While it settles, the outage goes on.
    const { from, failure } = outage;
    return [events[0]?.type === 'disconnected' ? events[0] : { type: 'disconnected', at: from, failure }, event];
  }
  // Dropped frames are missing only for who received the others, so no later subscriber gets that gap.
  const isFirstGap = event.type === 'gap' && event.missed === undefined && settling?.isFixed === true;
  if (isFirstGap && outage !== undefined) return withFirstGap(events, event);
  if (!isOfAttempt(event)) return completeFrom === undefined ? events : settledSnapshot(events, completeFrom);
  // Keeps the first `disconnected`: its failure began the outage. The one before a first gap is over.
  const isOver = events.some(({ type }) => type === 'gap');
  const stays = (known: LifecycleEvent, n: number): boolean =>
    (n === 0 && known.type === 'disconnected' && !isOver) || (ranks[known.type] ?? Infinity) < (ranks[event.type] ?? 0);
  return [...events.filter(stays), event];
};

// An event replaces those of the same or a higher rank.
const ranks: Readonly<Partial<Record<ClusterLifecycleEvent['type'], number>>> = {
  stopped: 1,
  disconnected: 1,
  reconnecting: 2,
  'ticket-requested': 3,
  'ticket-issued': 4,
};

const isOfAttempt = (event: ClusterLifecycleEvent): event is Exclude<LifecycleEvent, Opened | Gap | Watermark> =>
  ranks[event.type] !== undefined;

/** Adds the first gap of an outage whose connection settles for a fixed time: only the second one follows. */
const withFirstGap = (events: Snapshot, gap: Gap): Snapshot => [...events.filter(({ type }) => type !== 'gap'), gap];

/** Keeps only `opened`, which says from when the connection is complete. */
const settledSnapshot = (snapshot: Snapshot, completeFrom: number): Snapshot => {
  const opened = snapshot.find((event) => event.type === 'opened');
  if (opened === undefined || (snapshot.length === 1 && opened.completeFrom !== undefined)) return snapshot;
  return [{ ...opened, completeFrom }];
};

export const stateOf = (snapshot: Snapshot): FeedState =>
  snapshot.reduce<FeedState>((state, event) => afterEvent(state, event, undefined), noFeed);

/** Returns the events for a subscriber that goes on at `at`, in epoch ms. */
export const snapshotAt = (state: FeedState, at: number): Snapshot => {
  const { events, outage } = afterTime(state, at);
  // The subscriber lacks the frames before `at`, so for it the feed opens then, or later if the feed opened later.
  const opensLater = (event: LifecycleEvent): boolean => event.type === 'opened' && outage === undefined;
  return events.map((event) => (opensLater(event) ? notBefore(event, at) : event));
};

export const snapshotOfNew = (state: FeedState, at: number): Snapshot => withoutMs(snapshotAt(state, at), at);

/** Returns the events for a subscriber that may lack frames of the ms `at`: for it the feed is complete after that. */
const withoutMs = (events: Snapshot, at: number): Snapshot =>
  events.map((event) =>
    event.type === 'opened' && event.completeFrom === at ? { ...event, completeFrom: at + 1 } : event,
  );

/** Returns the events for a client that has reached `at`, in epoch ms. */
export const snapshotNotBefore = (state: FeedState, at: number): Snapshot =>
  eventsNotBefore(afterTime(state, at).events, at);

/** Moves events that are earlier than `at`, in epoch ms. A ticket goes: its time would be a wrong one of the handshake. */
export const eventsNotBefore = (events: Snapshot, at: number): Snapshot =>
  events.flatMap((event) => (event.type === 'ticket-issued' && event.at < at ? [] : notBefore(event, at)));

/** Returns the events for a client that missed frames: its status, and the gap right after `opened`. */
export const snapshotAfterGap = (state: FeedState, gap: Gap): Snapshot =>
  withGapIn(withoutMs(snapshotNotBefore(state, gap.to), gap.to), gap);

/** Adds a gap to the status after it. It directly follows `opened`, unless the connection still settles. */
export const withGapIn = (status: Snapshot, ...gaps: readonly Gap[]): Snapshot => {
  const [first] = status;
  const isComplete = first?.type === 'opened' && first.completeFrom !== undefined;
  return isComplete ? [...status, ...gaps] : [...gaps, ...status];
};

export const notBefore = (event: LifecycleEvent, at: number): LifecycleEvent => {
  if (event.type === 'gap') return event.to >= at ? event : { ...event, to: at, durationMs: at - event.from };
  return event.at >= at ? event : withTime(event, at);
};

export const withTime = <E extends Exclude<LifecycleEvent, Gap>>(event: E, at: number): E => {
  // Adjusts the delay so that the next attempt stays at the same time.
  if (event.type === 'reconnecting') return { ...event, at, delayMs: Math.max(0, event.at + event.delayMs - at) };
  if (event.type !== 'opened' || event.completeFrom === undefined) return { ...event, at };
  return { ...event, at, completeFrom: Math.max(event.completeFrom, at) };
};
