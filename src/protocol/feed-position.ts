import type { EventId } from './event-id.js';

/** A position in the feed of a cluster. It is the same in every replica, so a client can continue there at another replica. */
export interface FeedPosition {
  /** Identifies the run of an owner: its generation, and who it was. Only positions of one run can be counted. */
  readonly run: string;
  /** The number of frames and events of the run before the position. */
  readonly sequence: number;
  /** The number of frames of the run before the position. */
  readonly frames: number;
}

/** What emits the events of a cluster, and knows the position after the event that it emits. */
export interface PositionedFeed {
  /** The position after the last emitted event; `undefined` before the first one. */
  readonly position: FeedPosition | undefined;
}

/** The characters of an owner's id that make it unique: the random part at the end. */
const ownerLength = 12;

/**
 * Returns the name of the run of an owner.
 *
 * @param epoch - identifies the generations of a store
 */
export const runOf = (epoch: number, generation: number, owner: string): string =>
  `c${epoch.toString(36)}-${generation.toString(36)}-${owner.slice(-ownerLength).replaceAll(/[^\w-]/g, '_')}`;

/** Returns the position that an id of a message contains; `undefined` for the id of a relay without a cluster. */
export const feedPositionOf = ({ epoch, seq, frames }: EventId): FeedPosition | undefined =>
  generationIn(epoch) === undefined ? undefined : { run: epoch, sequence: seq, frames };

/**
 * Returns whether a position is after another one: in a later store, in a later generation, or later in the same run.
 *
 * @returns `undefined` if two owners have used the number of the generation, after a loss of data, or if a position is of no owner
 */
export const isAfterPosition = (one: FeedPosition, other: FeedPosition): boolean | undefined => {
  if (one.run === other.run) return one.sequence > other.sequence;
  const [ofOne, ofOther] = [generationIn(one.run), generationIn(other.run)];
  if (ofOne === undefined || ofOther === undefined) return undefined;
  const difference = ofOne.store - ofOther.store || ofOne.number - ofOther.number;
  return difference === 0 ? undefined : difference > 0;
};

/** Returns the number of frames between two positions; `undefined` if their owners differ. */
export const framesBetween = (one: FeedPosition, other: FeedPosition): number | undefined =>
  one.run === other.run ? Math.max(0, other.frames - one.frames) : undefined;

const generationIn = (run: string): { readonly store: number; readonly number: number } | undefined => {
  const [, store = '', generation = ''] = /^c([\da-z]{1,11})-([\da-z]{1,11})-[\w-]{1,12}$/.exec(run) ?? [];
  return store === '' ? undefined : { store: Number.parseInt(store, 36), number: Number.parseInt(generation, 36) };
};
