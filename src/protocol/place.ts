// A line is a numbered sequence of records: the frames and events of a feed. Each owner of its connection continues the
// numbers of the previous one, in a generation of its own. The design has its reasons in docs/architecture.md.
import type { LifecycleEvent } from './event.js';

/** Where a reader is in a line. */
export interface Place {
  /** The id of the line. Places in two lines can't be compared. */
  readonly line: string;
  /** The generation that wrote the record before it. Each owner, or writer, has its own. */
  readonly gen: number;
  /** The records before it. Continues over generations. */
  readonly offset: number;
  /** The frames before it, stored or counted in a gap. NaN if that's unknown. */
  readonly frames: number;
  /** The gaps before it that have no number (`missed`). NaN if that's unknown: an id of a message doesn't have it. */
  readonly holes: number;
  /** When the record before it happened, in epoch ms. Nothing earlier follows. */
  readonly at: number;
  /** Up to this time every frame is before it, in epoch ms. It stops during an outage, while `at` advances. */
  readonly complete: number;
}

/** What a message says of the line: the place before its first record, and who began where. */
export interface Head extends Place {
  /** The generation before `gen` in the line. */
  readonly after: number;
  /** The offset at which `gen` began. */
  readonly began: number;
  /** The records in the message. */
  readonly count: number;
}

/**
 * What a message is to a reader. `first`: it begins here. `other`: another line, or one whose numbers prove nothing.
 * `old`: the reader has it, or its owner was replaced. `next`: the records from `skip` on follow. `hole`: the records
 * from the offset `from` on are missing. `surplus`: so many records that the reader has are not in the line.
 */
export type Between =
  | { readonly type: 'first' | 'other' | 'old' }
  | { readonly type: 'next'; readonly skip: number; readonly surplus: number }
  | { readonly type: 'hole'; readonly from: number; readonly surplus: number };

/** The only answer to what is missing between a place and a message. */
export const between = (have: Place | undefined, next: Head): Between => {
  if (have === undefined) return { type: 'first' };
  if (have.line !== next.line) return { type: 'other' };
  if (next.gen < have.gen) return { type: 'old' };
  if (next.gen === have.gen) return follows(next, have.offset, 0);
  // Its owner began where the line of the previous generations ended, whatever the reader's one has sent.
  if (next.after <= have.gen) return follows(next, nextOffset(have, next), Math.max(0, have.offset - next.began));
  // A generation between the two is missing. Only reading the line shows where it began.
  const isBehind = next.offset > have.offset || next.began >= have.offset;
  return isBehind ? { type: 'hole', from: have.offset, surplus: 0 } : { type: 'other' };
};

/** The offset of the next record after a place, given a later part of the line: a generation may begin before the place. */
export const nextOffset = (
  { gen, offset }: Pick<Place, 'gen' | 'offset'>,
  later: Pick<Head, 'gen' | 'began'>,
): number => (later.gen > gen ? Math.min(offset, later.began) : offset);

const follows = ({ offset, count }: Head, from: number, surplus: number): Between => {
  if (offset > from) return { type: 'hole', from, surplus };
  const skip = from - offset;
  // A message without records says only how far the line is.
  return skip < count || skip === 0 ? { type: 'next', skip, surplus } : { type: 'old' };
};

/**
 * How many frames are missing between a place and a message, or a later place that's in the line as well. `undefined` if
 * a gap without a number is between them too, or if the reader may have records that the line refused: its place
 * counts them.
 */
export const missedBetween = (have: Place, next: Place | Head): number | undefined =>
  have.line === next.line && continues(have, next) && have.holes === next.holes && next.frames >= have.frames
    ? next.frames - have.frames
    : undefined;

const continues = (have: Place, next: Place | Head): boolean =>
  next.gen === have.gen || !('after' in next) || (next.after === have.gen && have.offset <= next.began);

/** Whether a place comes after another one of the same line; `undefined` if they can't be compared. */
export const isAfter = (one: Place, other: Place): boolean | undefined => {
  if (one.line !== other.line || one.line === '') return undefined;
  return one.gen === other.gen ? one.offset > other.offset : one.gen > other.gen;
};

/** What of a record counts: `frame` and `gap` are the types of events; all others count as records only. */
export interface Countable {
  readonly type: string;
  readonly missed?: number | undefined;
}

/** Returns the place after a record that happened at `at`. */
export const afterRecord = (place: Place, { type, missed }: Countable, at: number): Place => {
  const { line, gen, offset, frames, holes, complete } = place;
  const isGap = type === 'gap';
  return {
    line,
    gen,
    offset: offset + 1,
    frames: frames + (type === 'frame' ? 1 : isGap ? (missed ?? 0) : 0),
    holes: holes + (isGap && missed === undefined ? 1 : 0),
    at,
    complete: type === 'frame' || isGap ? at : complete,
  };
};

/** The first place of a line. */
export const startOf = (line: string, offset = 0, at = 0): Place => ({
  ...{ line, gen: 0, offset, frames: 0, holes: 0, at, complete: at },
});

/** The id of a new line. */
export const newLine = (): string =>
  Array.from({ length: 12 }, () => Math.floor(36 * Math.random()).toString(36)).join('');

/**
 * Writes the id of a message, which a client sends back in `Last-Event-ID`. Rounds `at` up and `complete` down, and
 * omits `complete` unless it's earlier. Unknown `frames` become so many that no later place's can be subtracted. Holds no
 * `holes`.
 */
export const formatPlace = ({ line, gen, offset, frames, at, complete }: Omit<Place, 'holes'>): string => {
  const reached = Math.max(0, Math.ceil(at));
  const until = Math.max(0, Math.floor(complete));
  const counted = Number.isNaN(frames) ? Number.MAX_SAFE_INTEGER : frames;
  const numbers = `${offset}.${counted}.${reached}${until < reached ? `.${until}` : ''}`;
  return `l${line}-${gen.toString(36)}.${numbers}`;
};

/** Reads the id of a message, with or without the name of a stream (`withStream`); `undefined` for any other text. */
export const parsePlace = (text: string | undefined): Place | undefined => {
  const [, line, gen = '', ...numbers] = idFormat.exec(text ?? '') ?? [];
  if (line === undefined) return undefined;
  const [offset = 0, frames = 0, at = 0, complete = at] = numbers.flatMap((digits?: string) =>
    digits?.length ? Number(digits) : [],
  );
  return { line, gen: Number.parseInt(gen, 36), offset, frames, holes: NaN, at, complete: Math.min(complete, at) };
};

// `complete` is left out when it's `at`.
const idFormat =
  /^l([\w-]{0,28})-([\da-z]{1,11})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})(?:\.(\d{1,16}))?(?:-[\da-f]{8})?$/;

/** The line of a client that switched relays and isn't in one yet. Only its times count. */
export const noLine = '';

/** Where a feed is in its line: a cluster, or a log. */
export interface PositionedFeed {
  /** The place after the last emitted event; `undefined` before the first. */
  readonly position: Place | undefined;
}

/** Consecutive records of a line, as a relay sends them. */
export interface StoredRecords {
  /** Frames, each as a field of Server-Sent Events (`data: {json}\n`), and the events between them. */
  readonly parts: readonly (Uint8Array | LifecycleEvent)[];
  /** How many frames are in `parts`. */
  readonly frames: number;
  /** The place after them. */
  readonly end: Place;
}

/** A line whose past is in a store. */
export interface StoredLine {
  /**
   * Reads what follows a place, in parts of about 256 KiB, up to the end of the store. A gap stands for records that
   * the store lacks, and for what exceeds `maxBytes`: then only the newest follow. Emits nothing if the place is in
   * another line. Rejects if the store can't be read.
   *
   * @param after - its `holes` may be NaN
   * @param options - `isNext`: the reader knows the status. Otherwise that comes first, even if nothing follows
   */
  stored(after: Place, options: StoredOptions): AsyncIterable<StoredRecords>;
}

/** See {@link StoredLine}. */
export interface StoredOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly isNext?: boolean;
}
