import type { FeedStatus } from 'rx-trade-feed/angular';
import type { Failure } from '../feed/failure';
import { count, counted, headline, moment, observed, seconds, whatHappened, whatToDo } from '../feed/words';
import type { FeedState } from '../feed/monitor';

/** How it stands, in plain words. */
export interface StatusWords {
  readonly title: string;
  /** Why. */
  readonly reason: string | undefined;
  /** The code or status behind the reason. */
  readonly observed: string | undefined;
  /** Since when, and what happens next: counted up and down. */
  readonly next: string;
  /** What to do. */
  readonly advice: string | undefined;
}

/** What there is to say about. */
export interface StatusFacts {
  readonly status: FeedStatus;
  /** What has stopped the feed behind the relay, while this page looks whether it goes on. */
  readonly stop: Failure | undefined;
  /** Whether a person has just asked to connect again. */
  readonly isAsked: boolean;
  /** The last outage that is over, or that there was none, in words. */
  readonly lastOutage: string;
  readonly now: number;
}

/** Names a state. */
export const titles: Readonly<Record<FeedState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting',
  stopped: 'Stopped',
};

/** Says how it stands. */
export const statusWords = (facts: StatusFacts): StatusWords => {
  const { status, stop, lastOutage, now } = facts;
  if (status.state === 'reconnecting' && stop) return stopWords(stop, now, lookWords(facts));
  switch (status.state) {
    case 'connecting':
      return {
        title: titles.connecting,
        reason: 'No frame yet.',
        observed: undefined,
        next: `Trying for ${seconds(now - status.since)}.`,
        advice: undefined,
      };
    case 'live':
      return {
        title: titles.live,
        reason: undefined,
        observed: undefined,
        next: `Connection ${status.connection}, live on this page for ${seconds(now - status.since)}.`,
        advice: lastOutage,
      };
    case 'reconnecting': {
      const reason = status.failure ? headline(status.failure) : 'The connection is down.';
      return {
        title: titles.reconnecting,
        reason,
        observed: status.failure && observed(status.failure),
        next: `${attemptWords(status, now)} Without a connection for ${seconds(now - status.since)}.`,
        advice: status.failure && whatToDo(status.failure),
      };
    }
    case 'stopped':
      return stopWords(status.failure, now, '');
  }
};

const stopWords = (failure: Failure, now: number, look: string): StatusWords => {
  const since = failure.endedAt;
  return {
    title: titles.stopped,
    reason: stopReason(failure),
    observed: observed(failure),
    next: `It does not try again by itself. Stopped at ${moment(since, now)}, ${seconds(now - since)} ago. ${look}`.trim(),
    advice: whatToDo(failure),
  };
};

const stopReason = (failure: Failure): string => {
  // A connection that was open needs no other failure to explain its end; a refused ticket does.
  const before = failure.status === undefined ? undefined : failure.previous;
  return before && before.code !== failure.code ? `${headline(before)} ${headline(failure)}` : headline(failure);
};

// The page comes back when somebody has connected again, here or elsewhere.
const lookWords = ({ status, isAsked, now }: StatusFacts): string => {
  const nextAt = status.state === 'reconnecting' ? status.nextAttemptAt : undefined;
  const when = nextAt === undefined || nextAt <= now ? 'now' : `in ${Math.ceil((nextAt - now) / 1_000)} s`;
  return isAsked ? `Asked to connect again: this page goes on ${when}.` : `This page looks again ${when}.`;
};

/** Says a change of state once, for a screen reader: without what is counted. */
export const announcement = ({ status, stop }: Pick<StatusFacts, 'status' | 'stop'>): string => {
  if (status.state === 'reconnecting' && stop) return stopAnnouncement(stop);
  switch (status.state) {
    case 'connecting':
      return 'Connecting to the feed.';
    case 'live':
      return `The feed is live, connection ${status.connection}.`;
    case 'reconnecting':
      return `Reconnecting. ${status.failure ? headline(status.failure) : ''}`.trim();
    case 'stopped':
      return stopAnnouncement(status.failure);
  }
};

const stopAnnouncement = (failure: Failure): string =>
  `The feed has stopped. ${whatHappened(failure)} ${whatToDo(failure)}`;

const marks: Readonly<Record<FeedState, string>> = { connecting: '○', live: '●', reconnecting: '◌', stopped: '■' };

/** Says it in the title of the page, which is all that one sees of a tab in the background. */
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
  if (nextAttemptAt === undefined || nextAttemptAt <= now) return `Attempt ${attempt} is going on.`;
  return `Next attempt in ${counted(Math.ceil((nextAttemptAt - now) / 1_000), 'second')} (attempt ${attempt}).`;
};
