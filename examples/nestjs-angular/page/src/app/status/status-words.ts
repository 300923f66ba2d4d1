import type { FeedStatus } from 'rx-trade-feed/angular';
import type { Freshness } from 'rx-trade-feed/operators';
import { type Failure, isOfPage } from '../feed/failure';
import { count, counted, headline, moment, observed, seconds, whatHappened, whatToDo } from '../feed/words';
import type { FeedState } from '../feed/feed-stop';

/** The texts of the status. */
export interface StatusWords {
  readonly title: string;
  /** The cause. */
  readonly reason: string | undefined;
  /** The close code or the HTTP status of the cause. */
  readonly observed: string | undefined;
  /** The start and the next step, with counters. */
  readonly next: string;
  /** What to do. */
  readonly advice: string | undefined;
  /** What this page does while the feed is stopped. */
  readonly check: string | undefined;
}

/** The data of the status. */
export interface StatusFacts {
  readonly status: FeedStatus;
  /** Whether the newest frame is too old; `undefined` if that isn't checked, or if all frames have arrived in time. */
  readonly freshness?: Freshness | undefined;
  /** The failure that stopped the feed of the relay, while this page checks for a restart. */
  readonly stop: Failure | undefined;
  /** Whether a person has requested a restart. */
  readonly isRestarting: boolean;
  /** A text about the last outage. */
  readonly lastOutage: string;
  readonly now: number;
}

/** The titles of the states. */
export const titles: Readonly<Record<FeedState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting',
  stopped: 'Stopped',
};

/** Returns the texts of a status. */
export const statusWords = (facts: StatusFacts): StatusWords => {
  const { status, stop, lastOutage, now } = facts;
  if (status.state === 'reconnecting' && stop) return stopWords(stop, now, checkWords(facts));
  switch (status.state) {
    case 'connecting':
      return {
        title: titles.connecting,
        reason: 'No frame yet.',
        observed: undefined,
        next: `Trying for ${seconds(now - status.since)}.`,
        advice: undefined,
        check: undefined,
      };
    case 'live':
      return {
        title: titles.live,
        reason: silenceWords(facts),
        observed: undefined,
        next: `Connected on this page for ${seconds(now - status.since)}.`,
        advice: lastOutage,
        check: undefined,
      };
    case 'reconnecting': {
      const reason = status.failure ? headline(status.failure) : 'The connection is down.';
      return {
        title: titles.reconnecting,
        reason,
        observed: status.failure && observed(status.failure),
        next: `${attemptWords(status, now)} Without a connection for ${seconds(now - status.since)}.`,
        advice: status.failure && whatToDo(status.failure),
        check: undefined,
      };
    }
    case 'stopped':
      return stopWords(status.failure, now, undefined);
  }
};

// A connection can be open while the service sends nothing.
const silenceWords = ({ status, freshness, now }: StatusFacts): string | undefined => {
  if (freshness?.state !== 'stale') return undefined;
  return `No frame for ${seconds(now - (freshness.newestAt ?? status.since))}.`;
};

const stopWords = (failure: Failure, now: number, check: string | undefined): StatusWords => {
  const since = failure.endedAt;
  return {
    title: titles.stopped,
    reason: stopReason(failure),
    observed: observed(failure),
    next: `${isOfPage(failure) ? 'This page' : 'The relay'} does not reconnect automatically. Stopped at ${moment(since, now)}, ${seconds(now - since)} ago.`,
    advice: whatToDo(failure),
    check,
  };
};

const stopReason = (failure: Failure): string => {
  // A refused ticket needs the failure before it as an explanation.
  const before = failure.status === undefined ? undefined : failure.previous;
  return before && before.code !== failure.code ? `${headline(before)} ${headline(failure)}` : headline(failure);
};

// The page reconnects after a restart, on this page or on another one.
const checkWords = ({ status, isRestarting, now }: StatusFacts): string => {
  const nextAt = status.state === 'reconnecting' ? status.nextAttemptAt : undefined;
  const when = nextAt === undefined || nextAt <= now ? 'now' : `in ${Math.ceil((nextAt - now) / 1_000)} s`;
  return isRestarting ? `Restart requested: this page connects ${when}.` : `This page checks again ${when}.`;
};

/** Returns the text of a change for screen readers, without counters. */
export const announcement = ({ status, stop }: Pick<StatusFacts, 'status' | 'stop'>): string => {
  if (status.state === 'reconnecting' && stop) return stopAnnouncement(stop);
  switch (status.state) {
    case 'connecting':
      return 'Connecting to the feed.';
    case 'live':
      return 'The feed is live.';
    case 'reconnecting':
      return `Reconnecting. ${status.failure ? headline(status.failure) : ''}`.trim();
    case 'stopped':
      return stopAnnouncement(status.failure);
  }
};

const stopAnnouncement = (failure: Failure): string =>
  `The feed has stopped. ${whatHappened(failure)} ${whatToDo(failure)}`;

const marks: Readonly<Record<FeedState, string>> = { connecting: '○', live: '●', reconnecting: '◌', stopped: '■' };

/** Returns the title of the tab, which is visible when the tab is in the background. */
export const pageTitle = (
  state: FeedState,
  framesPerSecond: number | undefined,
  failure: Failure | undefined,
): string => {
  const why = failure && (state === 'stopped' ? stopReason(failure) : headline(failure));
  const what = why && state !== 'live' ? `: ${why.replace(/\..*$/s, '')}` : '';
  const pace = state === 'live' && framesPerSecond !== undefined ? ` ${count(framesPerSecond)}/s` : '';
  return `${marks[state]} ${titles[state]}${what}${pace} · Trade feed`;
};

const attemptWords = (status: Extract<FeedStatus, { state: 'reconnecting' }>, now: number): string => {
  const { nextAttemptAt, attempt } = status;
  if (nextAttemptAt === undefined || nextAttemptAt <= now) return `Attempt ${attempt} is running.`;
  return `Next attempt in ${counted(Math.ceil((nextAttemptAt - now) / 1_000), 'second')} (attempt ${attempt}).`;
};
