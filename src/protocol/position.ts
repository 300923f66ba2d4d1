/** A position in the log of a relay: the id of a message, which a client sends back in `Last-Event-ID`. */
export interface EventId {
  /** Identifies the log. A restarted relay gets a new one. Positions in different logs can't be compared. */
  readonly epoch: string;
  /** How many events precede the position, not counting watermarks. */
  readonly seq: number;
  /** How many frames precede the position. */
  readonly frames: number;
  /** How far the client has got, in epoch ms. Nothing earlier may follow. */
  readonly at: number;
  /** The client has every frame up to this time, in epoch ms. It stops during an outage, while `at` advances. */
  readonly complete: number;
}

/** The `epoch` of a client that switched relays and isn't in a log yet. Only its times count. */
export const noEpoch = '-';

/** Writes the `id` of a message. Rounds `at` up and `complete` down. Omits `complete` unless it's earlier than `at`. */
export const formatEventId = (epoch: string, { seq, frames, at, complete }: Omit<EventId, 'epoch'>): string => {
  const [reached, until] = [Math.max(0, Math.ceil(at)), Math.max(0, Math.floor(complete))];
  return `${epoch}.${seq}.${frames}.${reached}${until < reached ? `.${until}` : ''}`;
};

/** Parses the id of a message, with or without the name of a stream (`withStream`); `undefined` for any other text. */
export const parseEventId = (text: string | undefined): EventId | undefined => {
  const [, epoch = '', ...numbers] = idFormat.exec(text ?? '') ?? [];
  const [seq = 0, frames = 0, at = 0, complete = at] = numbers.flatMap((digits?: string) =>
    digits?.length ? Number(digits) : [],
  );
  return epoch === '' ? undefined : { epoch, seq, frames, at, complete: Math.min(complete, at) };
};

// `complete` is left out when it's `at`.
const idFormat = /^([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})(?:\.(\d{1,16}))?(?:-[\da-f]{8})?$/;

/** A position in a cluster's feed. Every replica uses the same ones, so a client can continue at another replica. */
export interface FeedPosition {
  /** Identifies one owner's run: its generation and its id. Counts mean something only within a run. */
  readonly run: string;
  /** How many frames and events of the run precede the position. */
  readonly sequence: number;
  /** How many frames of the run precede the position. */
  readonly frames: number;
}

/** Emits the events of a cluster, and knows the position after each. */
export interface PositionedFeed {
  /** The position after the last emitted event; `undefined` before the first. */
  readonly position: FeedPosition | undefined;
}

/** An owner's id ends with random characters. This many of them make it unique. */
const ownerLength = 12;

export const runOf = (epoch: number, generation: number, owner: string): string =>
  `c${epoch.toString(36)}-${generation.toString(36)}-${owner.slice(-ownerLength).replaceAll(/[^\w-]/g, '_')}`;

/** Returns the position in a message's id; `undefined` if the relay has no cluster. */
export const feedPositionOf = (id: EventId): FeedPosition | undefined =>
  generationIn(id.epoch) === undefined ? undefined : positionIn(id);

const positionIn = ({ epoch, seq, frames }: EventId): FeedPosition => ({ run: epoch, sequence: seq, frames });

/**
 * Returns whether a position comes after another: in a later store, a later generation, or later in the same run.
 * Returns `undefined` if two owners used the same generation, or if a position isn't an owner's.
 */
export const isAfterPosition = (one: FeedPosition, other: FeedPosition): boolean | undefined => {
  if (one.run === other.run) return one.sequence > other.sequence;
  const [ofOne, ofOther] = [generationIn(one.run), generationIn(other.run)];
  if (ofOne === undefined || ofOther === undefined) return undefined;
  const difference = ofOne.store - ofOther.store || ofOne.number - ofOther.number;
  return difference === 0 ? undefined : difference > 0;
};

/** Compares the ids of two messages as {@link isAfterPosition} does. `undefined` if one of them isn't valid, too. */
export const isAfterId = (one: string | undefined, other: string | undefined): boolean | undefined => {
  const [id, before] = [parseEventId(one), parseEventId(other)];
  return id && before && isAfterPosition(positionIn(id), positionIn(before));
};

export const framesBetween = (one: FeedPosition, other: FeedPosition): number | undefined =>
  one.run === other.run ? Math.max(0, other.frames - one.frames) : undefined;

const generationIn = (run: string): { readonly store: number; readonly number: number } | undefined => {
  const [, store = '', generation = ''] = /^c([\da-z]{1,11})-([\da-z]{1,11})-[\w-]{1,12}$/.exec(run) ?? [];
  return store === '' ? undefined : { store: Number.parseInt(store, 36), number: Number.parseInt(generation, 36) };
};

/** Reads positions from the records of a log, so they survive a restart. `undefined` for any other source. */
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
    // Watermarks have no position, and a plain file read as a log has no id.
    if (position === undefined || position.log === '') return;
    const { log, offset, frames } = position;
    const last = this.#position;
    const run = `c0-0-${log}`;
    // A gap that the reader found takes the place of the first missing record.
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
