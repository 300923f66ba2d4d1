import type { LifecycleEvent, Opened, RelayedEvent, Stopped } from '../protocol/event.js';
import { afterEvent, noOutages } from '../protocol/outage.js';

/** The events that make up how it stands with the feed: what somebody who comes now must be told, in order. */
export type Present = readonly LifecycleEvent[];

/** What a relay hands on: a stop of the feed is written as `disconnected`, since clients stay. */
export type LoggedEvent = Exclude<RelayedEvent, Stopped> | LoggedValue;

/** A value of a topic, as JSON. */
export interface LoggedValue {
  readonly type: 'value';
  /** In epoch ms. */
  readonly at: number;
  readonly json: string;
}

// An event makes those obsolete that do not come before it here.
const ranks = { disconnected: 1, reconnecting: 2, 'ticket-requested': 3, 'ticket-issued': 4 } as const;

/** Follows how it stands; gives the same list while nothing changes. */
export const nextPresent = (present: Present, event: LoggedEvent): Present => {
  switch (event.type) {
    case 'gap':
    case 'value':
    case 'watermark':
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
      return [...present.filter((known, index) => isBegin(known, index) || rankOf(known) < ranks[event.type]), event];
  }
};

/** Gives the opening, when the feed is open. */
export const openedIn = ([first]: Present): Opened | undefined => (first?.type === 'opened' ? first : undefined);

// The first end of an attempt is where an outage begins, and stays.
const isBegin = ({ type }: LifecycleEvent, index: number): boolean => type === 'disconnected' && index === 0;

/** Says whether the feed has been open, as far as this list knows. */
export const hasBeenOpen = (present: Present): boolean =>
  present.reduce((outages, event) => afterEvent(outages, event, undefined), noOutages).hasOpened;

const rankOf = ({ type }: LifecycleEvent): number => (ranks as Partial<Record<typeof type, number>>)[type] ?? Infinity;
