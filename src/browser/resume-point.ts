import { tryCall } from '../protocol/try-call.js';
import type { RelayFeedSettings } from './relay-feed-options.js';

/** The point in the feed at which a client resumes. */
export interface ResumePoint {
  /** The id of the last message; `undefined` before the first one. */
  lastEventId(): string | undefined;
  /** Records the id of a message whose events were emitted. */
  reached(id: string): void;
  /** How far the clock of this machine was ahead of the relay's on the last connection, in ms. */
  shiftMs: number;
}

/** Creates the point of one subscription. The store keeps the id for the next subscription. */
export const resumePoint = ({ url, resumeIn }: RelayFeedSettings): ResumePoint => {
  const key = `rx-trade-feed:${url}`;
  // If the store throws, the page cannot resume after a reload, but the feed works.
  const stored = tryCall(() => resumeIn?.getItem(key));
  // An invalid id would make every request fail.
  let id = /^[\w.-]{1,120}$/.exec(stored ?? '')?.[0];
  return {
    shiftMs: 0,
    lastEventId: () => id,
    reached: (next) => {
      if (next === '') return;
      id = next;
      tryCall(() => resumeIn?.setItem(key, next));
    },
  };
};
