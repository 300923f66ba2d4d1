import type { ClusterLifecycleEvent, Gap, Watermark } from './event.js';
import type { FailureCode } from './failures/failure-code.js';
import type { TradeFeedError } from './failures/trade-feed-error.js';
import { subscribedAgain } from './failures/client-meanings.js';
import { createFailure } from './failures/meaning.js';
import { createGap } from './gap.js';

/** A period without an open connection that has not ended. */
export interface Outage {
  /** The end of the last open connection, in epoch ms; for a stalled one, when the last bytes arrived. */
  readonly from: number;
  /** The failure that began it. */
  readonly failure: TradeFeedError;
  /** Whether the subscription of the feed ended during it: the feed then emits no `gap` after the next `opened`. */
  readonly hasStopped: boolean;
}

/** The state of the outages of a feed after an event. */
export interface Outages {
  /** Whether a connection has been open. */
  readonly hasOpened: boolean;
  /** The outage that has not ended; `undefined` while a connection is open, and before the first one. */
  readonly current: Outage | undefined;
  /** The gap of the outage that ended with the last event, an `opened`. A `gap` event that follows replaces it. */
  readonly unconfirmed: Gap | undefined;
  /** The gaps that became known with the last event. */
  readonly gaps: readonly Gap[];
}

const none: readonly Gap[] = Object.freeze([]);

/** The state of a feed that has emitted no event. */
export const noOutages: Outages = Object.freeze({
  hasOpened: false,
  current: undefined,
  unconfirmed: undefined,
  gaps: none,
});

/**
 * Folds an event of a feed into its outages. Pure; the operators, the relay and the recorder use it.
 *
 * An outage begins with the end of an open connection, and ends with the next `opened`. It has one gap: the `gap` event
 * that the source emits after `opened`. If the source emits none, as in a new subscription (`retry`, `repeat`), the gap is created here.
 * No gap is created for an outage of only the relay connection: see {@link isOfRelay}.
 *
 * @param newestAt - the time of the newest frame or event before this one, in epoch ms: the start of an outage without any event
 */
export const afterEvent = (before: Outages, event: ClusterLifecycleEvent, newestAt: number | undefined): Outages => {
  // A watermark keeps `unconfirmed`: a relay may send one between an `opened` and its `gap`.
  if (event.type === 'watermark') return before.gaps.length === 0 ? before : { ...before, gaps: none };
  const after = step(before, event, newestAt);
  const { unconfirmed } = before;
  if (unconfirmed === undefined || event.type === 'gap') return after;
  return { ...after, gaps: [unconfirmed, ...after.gaps] };
};

/** Returns whether only the connection to a relay is down. The relay sends the frames of that time later, or reports a `gap`. */
export const isOfRelay = ({ failure, hasStopped }: Outage): boolean => !hasStopped && relayCodes.has(failure.code);

const relayCodes: ReadonlySet<FailureCode> = new Set([
  ...(['relay-lost', 'relay-stalled', 'invalid-relay-data', 'relay-closing', 'relay-session-ended'] as const),
]);

/** Folds an item into the outages: a frame, or a value created from one. It proves that a connection is open, even if events were filtered out. */
export const afterItem = (before: Outages, time: number): Outages => {
  const { current, unconfirmed, gaps, hasOpened } = before;
  if (hasOpened && current === undefined && unconfirmed === undefined && gaps.length === 0) return before;
  const gap = unconfirmed ?? (current && gapUntil(current, time));
  return { hasOpened: true, current: undefined, unconfirmed: undefined, gaps: gap === undefined ? none : [gap] };
};

/** Creates the state of a feed that stopped at a time, in epoch ms: the outage ends with the next `opened` or item. */
export const stoppedAt = (from: number, failure: TradeFeedError): Outages => ({
  ...noOutages,
  hasOpened: true,
  current: { from, failure, hasStopped: true },
});

/** Creates the gap of an outage up to a time in epoch ms: the end of the outage, or the latest known time. */
export const gapUntil = ({ from, failure }: Outage, to: number): Gap => createGap(from, to, failure);

const step = (
  before: Outages,
  event: Exclude<ClusterLifecycleEvent, Watermark>,
  newestAt: number | undefined,
): Outages => {
  const { hasOpened, current } = before;
  const unchanged: Outages = { hasOpened, current, unconfirmed: undefined, gaps: none };
  switch (event.type) {
    case 'ticket-issued':
    case 'reconnecting':
    case 'owner-changed':
      return unchanged;
    case 'ticket-requested':
      return { ...unchanged, current: current ?? subscribedAgainAfter(before, newestAt) };
    case 'disconnected': {
      if (current !== undefined || event.failure.stage !== 'stream') return unchanged;
      return { ...unchanged, hasOpened: true, current: outageFrom(event.failure) };
    }
    case 'stopped': {
      const isBegin = hasOpened || event.failure.stage === 'stream';
      const outage = current ?? (isBegin ? outageFrom(event.failure) : undefined);
      return { ...unchanged, hasOpened: isBegin, current: outage && { ...outage, hasStopped: true } };
    }
    case 'opened': {
      const opened: Outages = { ...unchanged, hasOpened: true, current: undefined };
      const outage = current ?? subscribedAgainAfter(before, newestAt);
      return outage === undefined || isOfRelay(outage)
        ? opened
        : { ...opened, unconfirmed: gapUntil(outage, event.at) };
    }
    case 'gap': {
      // A gap that begins later does not cover the start of the outage, so the outage gets a gap, too.
      const uncovered = current !== undefined && current.from < event.from ? [gapUntil(current, event.to)] : none;
      return { ...unchanged, hasOpened: true, current: undefined, gaps: [...uncovered, event] };
    }
  }
};

const outageFrom = (failure: TradeFeedError): Outage => ({ from: failure.endedAt, failure, hasStopped: false });

/** The outage between two subscriptions, if the first one ended without an event: `repeat`, `concat`, `switchMap`. */
const subscribedAgainAfter = ({ hasOpened }: Outages, newestAt: number | undefined): Outage | undefined => {
  if (!hasOpened || newestAt === undefined) return undefined;
  return {
    from: newestAt,
    failure: createFailure(subscribedAgain, { stage: 'stream', endedAt: newestAt }),
    hasStopped: true,
  };
};
