import { tryCall } from '../protocol/try-call.js';
import type { RelayFeedSettings } from './relay-feed-options.js';

/** The place in the feed that a client has reached. */
export interface ResumePoint {
  /** The id of the last message; `undefined` before the first one. */
  lastEventId(): string | undefined;
  /** Takes note of a message that was handed on. */
  reached(id: string): void;
  /** By how much the clock of this machine was ahead of the relay's on the last connection, in ms. */
  shiftMs: number;
}

/** Remembers the place for as long as a subscription lasts, and in the store for whoever comes next. */
export const resumePoint = ({ url, resumeIn }: RelayFeedSettings): ResumePoint => {
  const key = `rx-trade-feed:${url}`;
  // A store that is full or forbidden costs the place after the next reload, not the feed.
  const remembered = tryCall(() => resumeIn?.getItem(key));
  // What is no id would make the request fail, for ever.
  let place = /^[\w.-]{1,120}$/.exec(remembered ?? '')?.[0];
  return {
    shiftMs: 0,
    lastEventId: () => place,
    reached: (id) => {
      if (id === '') return;
      place = id;
      tryCall(() => resumeIn?.setItem(key, id));
    },
  };
};
