import type { FeedStatus } from 'rx-trade-feed/angular';
import { counted, headline, moment, observed, seconds, whatHappened, whatToDo } from '../feed/words';
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
  /** The last outage that is over, in words. */
  readonly lastOutage: string | undefined;
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
export const statusWords = ({ status, lastOutage, now }: StatusFacts): StatusWords => {
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
        advice: lastOutage ?? 'No outage since this page was loaded.',
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
    case 'stopped': {
      const { failure, since } = status;
      // A connection that was open needs no other failure to explain its end; a refused ticket does.
      const before = failure.stage === 'stream' ? undefined : failure.previous;
      const reason =
        before && before.code !== failure.code ? `${headline(before)} ${headline(failure)}` : headline(failure);
      return {
        title: titles.stopped,
        reason,
        observed: observed(failure),
        next: `It does not try again by itself. Stopped at ${moment(since, now)}, ${seconds(now - since)} ago.`,
        advice: whatToDo(failure),
      };
    }
  }
};

/** Says a change of state once, for a screen reader: without what is counted. */
export const announcement = ({ status }: StatusFacts): string => {
  switch (status.state) {
    case 'connecting':
      return 'Connecting to the feed.';
    case 'live':
      return `The feed is live, connection ${status.connection}.`;
    case 'reconnecting':
      return `Reconnecting. ${status.failure ? headline(status.failure) : ''}`.trim();
    case 'stopped':
      return `The feed has stopped. ${whatHappened(status.failure)} ${whatToDo(status.failure)}`;
  }
};

const attemptWords = (status: Extract<FeedStatus, { state: 'reconnecting' }>, now: number): string => {
  const { nextAttemptAt, attempt } = status;
  if (nextAttemptAt === undefined || nextAttemptAt <= now) return `Attempt ${attempt} is going on.`;
  return `Next attempt in ${counted(Math.ceil((nextAttemptAt - now) / 1_000), 'second')} (attempt ${attempt}).`;
};
