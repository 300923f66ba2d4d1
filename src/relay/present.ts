import type { RelayedEvent, LifecycleEvent, Opened } from '../protocol/event.js';

/** The events that make up how it stands with the feed: what somebody who comes now must be told, in order. */
export type Present = readonly LifecycleEvent[];

// What an event makes obsolete is whatever does not stand before it here.
const ranks = { disconnected: 1, reconnecting: 2, 'ticket-requested': 3, 'ticket-issued': 4 } as const;

/** Follows how it stands; gives the same list while nothing changes. */
export const nextPresent = (present: Present, event: RelayedEvent): Present => {
  switch (event.type) {
    case 'gap':
      return present;
    case 'opened':
      return [event];
    case 'frame': {
      // A source without events around its frames.
      const { feed, connection, receivedAt: at } = event;
      return openedIn(present) ? present : [{ type: 'opened', at, feed, connection }];
    }
    case 'disconnected':
    case 'reconnecting':
    case 'ticket-requested':
    case 'ticket-issued':
      return [...present.filter((known, index) => isBegin(known, index) || rankOf(known) < rankOf(event)), event];
  }
};

/** Gives the opening, when the feed is open. */
export const openedIn = ([first]: Present): Opened | undefined => (first?.type === 'opened' ? first : undefined);

// The first end of an attempt is where an outage begins, and stays.
const isBegin = ({ type }: LifecycleEvent, index: number): boolean => type === 'disconnected' && index === 0;

/** Tells whether the feed has been open, as far as this list knows. */
export const hasBeenOpen = (present: Present): boolean =>
  present.some(
    (event) => event.type === 'opened' || (event.type === 'disconnected' && event.failure.stage === 'stream'),
  );

const rankOf = ({ type }: LifecycleEvent): number => (type === 'opened' || type === 'gap' ? Infinity : ranks[type]);
