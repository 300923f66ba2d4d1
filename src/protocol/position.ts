/** A position in the log of a relay: the id of a message, which a client sends back in `Last-Event-ID`. */
export interface EventId {
  /** Identifies the log. A restarted relay has a new one. Positions of different logs cannot be compared. */
  readonly epoch: string;
  /** The number of events before the position, without watermarks. */
  readonly seq: number;
  /** The number of frames before the position. */
  readonly frames: number;
  /** The time that the client has reached, in epoch ms. No earlier event may follow. */
  readonly at: number;
  /** The client has every frame up to this time, in epoch ms. An outage holds it, while `at` goes on. */
  readonly complete: number;
}

/** The `epoch` of a client that has changed the relay, and is in no log yet. Only its times count. */
export const noEpoch = '-';

/** Writes the `id` of a message. Rounds `at` up and `complete` down. Omits `complete` if it is not earlier. */
export const formatEventId = (epoch: string, { seq, frames, at, complete }: Omit<EventId, 'epoch'>): string => {
  const [reached, until] = [Math.max(0, Math.ceil(at)), Math.max(0, Math.floor(complete))];
  return `${epoch}.${seq}.${frames}.${reached}${until < reached ? `.${until}` : ''}`;
};

/** Reads the id of a message, also one that names a stream (`withStream`); `undefined` for text in another format. */
export const parseEventId = (text: string | undefined): EventId | undefined => {
  const [, epoch = '', ...numbers] = idFormat.exec(text ?? '') ?? [];
  const [seq = 0, frames = 0, at = 0, complete = at] = numbers.flatMap((digits?: string) =>
    digits?.length ? Number(digits) : [],
  );
  return epoch === '' ? undefined : { epoch, seq, frames, at, complete: Math.min(complete, at) };
};

// Servers of earlier versions write no `complete`.
const idFormat = /^([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})(?:\.(\d{1,16}))?(?:-[\da-f]{8})?$/;

/** A position in the feed of a cluster. It is the same in every replica, so a client can continue at another one. */
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

export const runOf = (epoch: number, generation: number, owner: string): string =>
  `c${epoch.toString(36)}-${generation.toString(36)}-${owner.slice(-ownerLength).replaceAll(/[^\w-]/g, '_')}`;

/** Returns the position that an id of a message contains; `undefined` for the id of a relay without a cluster. */
export const feedPositionOf = ({ epoch, seq, frames }: EventId): FeedPosition | undefined =>
  generationIn(epoch) === undefined ? undefined : { run: epoch, sequence: seq, frames };

/**
 * Returns whether a position is after another one: in a later store, in a later generation, or later in the same run.
 * Returns `undefined` if two owners have used the number of the generation, or if a position is of no owner.
 */
export const isAfterPosition = (one: FeedPosition, other: FeedPosition): boolean | undefined => {
  if (one.run === other.run) return one.sequence > other.sequence;
  const [ofOne, ofOther] = [generationIn(one.run), generationIn(other.run)];
  if (ofOne === undefined || ofOther === undefined) return undefined;
  const difference = ofOne.store - ofOther.store || ofOne.number - ofOther.number;
  return difference === 0 ? undefined : difference > 0;
};

export const framesBetween = (one: FeedPosition, other: FeedPosition): number | undefined =>
  one.run === other.run ? Math.max(0, other.frames - one.frames) : undefined;

const generationIn = (run: string): { readonly store: number; readonly number: number } | undefined => {
  const [, store = '', generation = ''] = /^c([\da-z]{1,11})-([\da-z]{1,11})-[\w-]{1,12}$/.exec(run) ?? [];
  return store === '' ? undefined : { store: Number.parseInt(store, 36), number: Number.parseInt(generation, 36) };
};

/** Reads the position from the records of a log: it is the same after a restart. `undefined` for any other source. */
export class LogPositions implements PositionedFeed {
  #position: FeedPosition | undefined;

  get position(): FeedPosition | undefined {
    return this.#position;
  }

  receive(event: {
    readonly type: string;
    readonly position?: LogPosition | undefined;
    readonly missed?: number;
  }): void {
    const { type, position, missed = 0 } = event;
    // A watermark has none. A file that is read as a log has no id.
    if (position === undefined || position.log === '') return;
    const { log, offset, frames } = position;
    const last = this.#position;
    const run = `c0-0-${log}`;
    // A gap that the reader has found is in the place of the first missing record.
    if (type === 'gap' && last?.run === run && last.sequence === offset)
      this.#position = { run, sequence: offset + 1, frames: last.frames + missed };
    else this.#position = { run, sequence: offset, frames: frames ?? last?.frames ?? 0 };
  }
}

/** The place after a record of a log. */
interface LogPosition {
  readonly log: string;
  /** The next offset. */
  readonly offset: number;
  readonly frames?: number;
}
