import type {
  ClusterLifecycleEvent,
  Disconnected,
  Gap,
  LifecycleEvent,
  Opened,
  RelayedEvent,
  Stopped,
  Watermark,
} from './event.js';
import { type FailureCode, type Meaning, relayReports, subscribedAgain } from './failures/meanings.js';
import { createFailure, type TradeFeedError } from './failures/trade-feed-error.js';
import type { AnyFrame } from './frame.js';

/**
 * What happened to a feed so far. Status, statistics, gaps, windows, snapshots, logs and warnings all read this one
 * fold.
 *
 * Pure. While a connection is open, frames change nothing, so each costs a single comparison.
 */
export interface FeedState {
  /** What a late subscriber receives first. */
  readonly events: Snapshot;
  /** The open connection. `at`: when it opened, or the time of its first item if `opened` was filtered out. */
  readonly open: { readonly at: number; readonly connection: number } | undefined;
  /** Whether a connection has ever been open. */
  readonly hasOpened: boolean;
  /** The current outage; `undefined` while a connection is open, and before the first one. */
  readonly outage: Outage | undefined;
  /** Set by an `opened` that ends an outage: its gap, unless the source emits its own `gap` next, which replaces it. */
  readonly unconfirmed: Gap | undefined;
  /** The gaps that the last event revealed. */
  readonly gaps: readonly Gap[];
  /** The last watermark, in epoch ms. */
  readonly watermark: number | undefined;
  /** Failures since the last `opened`. */
  readonly failuresInRow: number;
  readonly totals: FeedTotals;
}

export type Snapshot = readonly LifecycleEvent[];

export interface Outage {
  /**
   * When the last open connection ended, in epoch ms; for a stalled one, when the last bytes arrived; for one to a
   * relay, the time of its last event.
   */
  readonly from: number;
  /** The failure that began it. */
  readonly failure: TradeFeedError;
  /** Whether the feed's subscription ended during it. If so, the feed emits no `gap` after the next `opened`. */
  readonly hasStopped: boolean;
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
  outage: undefined,
  unconfirmed: undefined,
  gaps: none,
  watermark: undefined,
  failuresInRow: 0,
  totals: { attempts: 0, reconnects: {}, gaps: 0, lostMs: 0, lostUntil: -Infinity, missed: 0 },
};

export const stoppedAt = (from: number, failure: TradeFeedError): FeedState => ({
  ...noFeed,
  hasOpened: true,
  outage: { from, failure, hasStopped: true },
});

/**
 * Folds an event into the state.
 *
 * An outage begins when an open connection ends, and lasts until the next `opened`. It has one gap: the `gap` event
 * that the source emits after `opened`. If the source emits none, as after resubscribing (`retry`, `repeat`), this
 * creates it. If only the connection to a relay was down, there's no gap: see {@link isOfRelay}.
 *
 * @param newestAt - the time of the newest frame or event before this one, in epoch ms: the start of an outage without
 *   any event
 */
export const afterEvent = (
  before: FeedState,
  event: ClusterLifecycleEvent,
  newestAt: number | undefined,
): FeedState => {
  // A relay may send a watermark between an `opened` and its `gap`, so it must not settle `unconfirmed`.
  if (event.type === 'watermark') return { ...before, gaps: none, watermark: event.at };
  const { unconfirmed, events, open, failuresInRow } = before;
  const outage = outageAfter(before, event, newestAt);
  const gaps = unconfirmed === undefined || event.type === 'gap' ? outage.gaps : [unconfirmed, ...outage.gaps];
  return {
    ...before,
    ...outage,
    gaps,
    events: eventsAfter(events, event),
    open: openAfter(open, event),
    failuresInRow: event.type === 'opened' ? 0 : failuresInRow + (event.type === 'disconnected' ? 1 : 0),
    totals: totalsAfter(before.totals, event, gaps),
  };
};

/** Folds an item into the state. It proves that a connection is open, even if the events were filtered out. */
export const afterItem = (before: FeedState, at: number, frame?: AnyFrame): FeedState => {
  const { open, outage, unconfirmed, gaps } = before;
  if (open !== undefined && unconfirmed === undefined && gaps.length === 0) return before;
  const gap = unconfirmed ?? (outage && gapUntil(outage, at));
  const known = gap === undefined ? none : [gap];
  return {
    ...before,
    hasOpened: true,
    outage: undefined,
    unconfirmed: undefined,
    gaps: known,
    ...(open === undefined && {
      open: { at, connection: frame?.connection ?? 1 },
      events: frame === undefined ? [] : openedBy(frame),
      failuresInRow: 0,
    }),
    totals: known.reduce(withGap, before.totals),
  };
};

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

type OutageState = Pick<FeedState, 'hasOpened' | 'outage' | 'unconfirmed' | 'gaps'>;

const outageAfter = (
  before: FeedState,
  event: Exclude<ClusterLifecycleEvent, Watermark>,
  newestAt: number | undefined,
): OutageState => {
  const { hasOpened, outage } = before;
  const unchanged: OutageState = { hasOpened, outage, unconfirmed: undefined, gaps: none };
  switch (event.type) {
    case 'ticket-issued':
    case 'reconnecting':
    case 'owner-changed':
    case 'engine-refused':
    case 'engine-recovered':
      return unchanged;
    case 'ticket-requested':
      return { ...unchanged, outage: outage ?? subscribedAgainAfter(before, newestAt) };
    case 'disconnected': {
      if (outage !== undefined || event.failure.stage !== 'stream') return unchanged;
      return { ...unchanged, hasOpened: true, outage: outageFrom(event) };
    }
    case 'stopped': {
      const isBegin = hasOpened || event.failure.stage === 'stream';
      const begun = outage ?? (isBegin ? outageFrom(event) : undefined);
      return { ...unchanged, hasOpened: isBegin, outage: begun && { ...begun, hasStopped: true } };
    }
    case 'opened': {
      const opened: OutageState = { ...unchanged, hasOpened: true, outage: undefined };
      const ended = outage ?? subscribedAgainAfter(before, newestAt);
      return ended === undefined || isOfRelay(ended) ? opened : { ...opened, unconfirmed: gapUntil(ended, event.at) };
    }
    case 'gap': {
      // A gap that begins later misses the start of the outage, so the outage gets its own gap as well.
      const uncovered = outage !== undefined && outage.from < event.from ? [gapUntil(outage, event.to)] : none;
      return { ...unchanged, hasOpened: true, outage: undefined, gaps: [...uncovered, event] };
    }
  }
};

// A page's connection to its relay ends at the time of the stream, because the relay may still hold frames from before
// `endedAt`.
const outageFrom = ({ at, failure }: Disconnected | Stopped): Outage => ({
  from: Math.min(failure.endedAt, at),
  failure,
  hasStopped: false,
});

/** Returns the outage between two subscriptions if the first just ended: `repeat`, `concat`, `switchMap`. */
const subscribedAgainAfter = ({ hasOpened }: FeedState, newestAt: number | undefined): Outage | undefined => {
  if (!hasOpened || newestAt === undefined) return undefined;
  const failure = createFailure(subscribedAgain, { stage: 'stream', endedAt: newestAt });
  return { from: newestAt, failure, hasStopped: true };
};

export const failureIn = ({ events }: FeedState): TradeFeedError | undefined =>
  (events as readonly { readonly failure?: TradeFeedError }[]).flatMap(({ failure }) => failure ?? []).at(-1);

export const hasStopped = ({ events }: FeedState): boolean => events.at(-1)?.type === 'stopped';

/**
 * Returns whether only the connection to a relay, or the writer of a log, is down. Its frames, or a `gap`, follow
 * later.
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

/** An event in a relay's log. If the feed stops, the relay logs `disconnected`, because its clients stay connected. */
export type LoggedEvent = Exclude<RelayedEvent, Stopped> | LoggedValue;

export interface LoggedValue {
  readonly type: 'value';
  /** In epoch ms. */
  readonly at: number;
  readonly json: string;
}

/** Folds a logged event into a snapshot. Returns the same list if nothing changes. */
export const nextSnapshot = (snapshot: Snapshot, event: LoggedEvent): Snapshot => {
  if (event.type === 'value') return snapshot;
  if (event.type !== 'frame') return eventsAfter(snapshot, event);
  return openedIn(snapshot) ? snapshot : openedBy(event);
};

const eventsAfter = (events: Snapshot, event: ClusterLifecycleEvent): Snapshot => {
  if (event.type === 'opened' || event.type === 'stopped') return [event];
  if (!isOfAttempt(event)) return events;
  // Keeps the first `disconnected`: its failure began the outage.
  const stays = (known: LifecycleEvent, n: number): boolean =>
    (n === 0 && known.type === 'disconnected') || (ranks[known.type] ?? Infinity) < (ranks[event.type] ?? 0);
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

const openedBy = ({ feed, connection, receivedAt }: AnyFrame): Snapshot => [
  { type: 'opened', at: receivedAt, feed, connection },
];

export const openedIn = ([first]: Snapshot): Opened | undefined => (first?.type === 'opened' ? first : undefined);

export const hasBeenOpen = (snapshot: Snapshot): boolean =>
  snapshot.some((event) => event.type === 'opened' || ('failure' in event && event.failure.stage === 'stream'));

/**
 * Returns the time up to which a subscriber has every frame after an event, in epoch ms. Only frames, and gaps in their
 * place, prove it, because the clock runs on while a connection is stalled. During an outage it stays at the end of the
 * last open connection.
 *
 * @param complete - that time before the event, when the feed was in the state `snapshot`
 */
export const completeAfter = (complete: number, snapshot: Snapshot, event: LoggedEvent): number =>
  Math.max(complete, provenUntil(snapshot, event) ?? complete);

const provenUntil = (snapshot: Snapshot, event: LoggedEvent): number | undefined => {
  const isOpen = openedIn(snapshot) !== undefined;
  switch (event.type) {
    case 'frame':
      return event.receivedAt;
    case 'gap':
      return event.to;
    case 'value':
      // During an outage, a value is an operator's delayed output for earlier frames.
      return isOpen || snapshot.length === 0 ? event.at : undefined;
    case 'opened':
      return hasBeenOpen(snapshot) ? undefined : event.at;
    case 'disconnected': {
      const { failure, at } = event;
      // When the connection to a relay ends, the relay may still hold frames that it hasn't sent.
      const isOfFeed = failure.stage === 'stream' && !isOfRelay({ failure, hasStopped: false });
      return isOpen && isOfFeed ? Math.min(failure.endedAt, at) : undefined;
    }
    case 'reconnecting':
    case 'ticket-requested':
    case 'ticket-issued':
    case 'watermark':
      return undefined;
  }
};

/** Returns the events for a subscriber that joined at `at`, in epoch ms. */
export const snapshotSince = (snapshot: Snapshot, at: number): Snapshot => {
  const opened = openedIn(snapshot);
  // The subscriber lacks the frames before `at`, so for it the feed opens then, or later if the feed opened later.
  return opened ? [{ ...opened, at: Math.max(opened.at, at) }] : snapshot;
};

export const snapshotNotBefore = (snapshot: Snapshot, at: number): Snapshot =>
  snapshot.map((event) => notBefore(event, at));

/** Returns the events for a client that missed frames: its status, and the gap right after `opened`. */
export const snapshotAfterGap = (snapshot: Snapshot, missed: Missed): Snapshot => {
  const events = snapshotNotBefore(snapshot, missed.to);
  const gap = relayGap(missed);
  return openedIn(snapshot) ? [...events, gap] : [gap, ...events];
};

export const notBefore = (event: LifecycleEvent, at: number): LifecycleEvent => {
  if (event.type === 'gap') return event.to >= at ? event : { ...event, to: at, durationMs: at - event.from };
  return event.at >= at ? event : withTime(event, at);
};

export const withTime = <E extends Exclude<LifecycleEvent, Gap>>(event: E, at: number): E =>
  // Adjusts the delay so that the next attempt stays at the same time.
  event.type === 'reconnecting'
    ? { ...event, at, delayMs: Math.max(0, event.at + event.delayMs - at) }
    : { ...event, at };
