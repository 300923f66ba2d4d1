import type { FeedEvent, OwnerChanged } from '../../protocol/event.js';
import { clusterMeanings } from '../../protocol/failures/cluster-meanings.js';
import { createFailure, type Meaning } from '../../protocol/failures/meaning.js';
import { type FeedPosition, type PositionedFeed, runOf } from '../../protocol/feed-position.js';
import type { Feed } from '../../protocol/feed.js';
import type { Frame } from '../../protocol/frame.js';
import { gapOfMissed } from '../../protocol/gap.js';
import { LazyFrame } from '../../protocol/lazy-frame.js';
import type { FeedMessage } from '../messages/feed-message.js';
import type { Place } from '../messages/publisher.js';

/** Emits the frames and events of the current owner, in order and once, with a `gap` in place of those that did not arrive. */
export interface Follower extends PositionedFeed {
  /**
   * Handles a message, which may be one of this replica.
   *
   * @param now - monotonic time in ms
   */
  receive(message: FeedMessage, now: number): void;
  /** Whether it emits the frames of this owner, and the next one is the one at this place. */
  expects(place: Place): boolean;
  /** Emits the frame that it expects. */
  next(frame: Frame): void;
  /** Emits messages of a new generation that have waited long enough. */
  tick(now: number): void;
  /** When the next `tick` is needed, in monotonic ms; `undefined` if none is. */
  readonly nextTick: number | undefined;
  /** The highest generation of the messages that it has emitted, or that wait; 0 without any. */
  readonly generation: number;
  /** Whether it emits the frames of this owner, and no earlier ones are left. */
  follows(gen: number, owner: string): boolean;
  /** Handles the loss of the connection to the engine. @param at - in epoch ms */
  away(at: number): void;
}

/** How long the first messages of a new generation wait for the `end` of the previous one, in ms. */
const holdMs = 100;
/** An owner whose last message is older, in ms, has no message under way. Owners send a beat every 250 ms. */
const silentMs = 400;
/** How many messages, and how many bytes of frames, may wait. With more, the new generation begins without the `end`. */
const maxHeld = 10_000;
const maxHeldBytes = 64 * 1024 * 1024;

/** Creates a {@link Follower}. It has no timer and no I/O. */
export const createFollower = (feed: Feed, emit: (event: FeedEvent | OwnerChanged) => void): Follower => {
  let gen = 0;
  let owner = '';
  let run = '';
  /** The numbers of the next frame or event of this generation, and of the next frame. */
  let sequence = 0;
  let frames = 0;
  /** When the last message was sent. */
  let lastAt = 0;
  let connection = 0;
  let isAway = false;
  let hasEnded = false;
  let held: FeedMessage[] = [];
  let heldBytes = 0;
  let holdUntil: number | undefined;
  /** When the last message of this generation arrived. */
  let heardAt = 0;

  // A client that resumes before the gap receives `opened` and the gap. So only the gap moves the position.
  let beforeGap: FeedPosition | undefined;
  const positionNow = (): FeedPosition | undefined => (gen === 0 ? undefined : { run, sequence, frames });

  const emitGap = (from: number, to: number, missed: number | undefined, meaning: Meaning): void => {
    beforeGap = undefined;
    emit(gapOfMissed({ from, to, frames: missed }, meaning));
  };

  const emitOpened = (at: number): void => {
    connection += 1;
    emit({ type: 'opened', at, feed, connection });
  };

  const begin = (message: FeedMessage): void => {
    const isFirst = gen === 0;
    const from = lastAt;
    beforeGap = positionNow();
    ({ gen, owner, sequence, frames } = message);
    run = runOf(message.epoch, gen, owner);
    [isAway, hasEnded] = [false, false];
    if (!isFirst) emit({ type: 'owner-changed', at: message.at, owner: message.owner, generation: gen });
    emitOpened(message.at);
    lastAt = message.at;
    if (!isFirst) emitGap(from, message.at, undefined, clusterMeanings.ownerChanged);
  };

  const emitFrame = (frame: Frame): void => {
    sequence += 1;
    frames += 1;
    // A frame has the number of its connection in this replica.
    (frame as { connection: number }).connection = connection;
    emit(frame);
  };

  const emitItems = (message: FeedMessage): void => {
    switch (message.kind) {
      case 'batch':
        return message.batch.forEach(emitFrame);
      case 'event':
        sequence += 1;
        // `begin` has emitted the first `opened` of a generation.
        if (message.sequence === 0 && message.event.type === 'opened') return;
        if (message.event.type === 'opened') emitOpened(message.event.at);
        else emit(message.event);
        return;
      case 'beat':
        return emit({ type: 'watermark', at: message.at });
      case 'end':
        hasEnded = true;
    }
  };

  const receiveCurrent = (message: FeedMessage): void => {
    // Its own messages come back to the owner, too.
    if (message.sequence < sequence) return;
    const missed = message.frames - frames;
    const hasMissed = message.sequence > sequence;
    const meaning = isAway ? clusterMeanings.away : clusterMeanings.behind;
    const isGap = isAway || hasMissed;
    const from = lastAt;
    if (isAway) emitOpened(message.at);
    [isAway, sequence, frames, lastAt] = [false, message.sequence, message.frames, message.at];
    if (isGap) emitGap(from, message.at, missed, meaning);
    emitItems(message);
  };

  const release = (now: number): void => {
    const messages = held;
    heardAt = now;
    [held, heldBytes, holdUntil] = [[], 0, undefined];
    for (const message of messages) {
      if (message.gen > gen) begin(message);
      // After a loss of data in the store, two owners can use the same number.
      if (message.owner === owner) receiveCurrent(message);
    }
  };

  return {
    receive: (message, now) => {
      if (message.gen < gen) return;
      if (message.gen === gen) {
        if (message.owner !== owner) return;
        heardAt = now;
        receiveCurrent(message);
        if (hasEnded && held.length > 0) release(now);
        return;
      }
      // The previous owner has the connection until the new one is open.
      if (message.kind === 'beat' && message.phase !== 'open') return;
      if (message.kind === 'end') return;
      const newest = held.at(-1);
      if (newest && message.gen < newest.gen) return;
      if (newest && message.gen > newest.gen) release(now);
      held.push(copied(message));
      heldBytes += bytesOf(message);
      holdUntil ??= now + holdMs;
      const isSilent = now - heardAt > silentMs;
      if (gen === 0 || hasEnded || isSilent || held.length > maxHeld || heldBytes > maxHeldBytes) release(now);
    },
    expects: (place) => place.sequence === sequence && place.gen === gen && place.owner === owner && !isAway,
    next: (frame) => {
      lastAt = frame.receivedAt;
      emitFrame(frame);
    },
    follows: (ofGen, ofOwner) => gen === ofGen && owner === ofOwner,
    tick: (now) => {
      if (holdUntil !== undefined && now >= holdUntil) release(now);
    },
    get nextTick() {
      return holdUntil;
    },
    get generation() {
      return held.at(-1)?.gen ?? gen;
    },
    get position() {
      return beforeGap ?? positionNow();
    },
    away: (at) => {
      if (gen === 0 || isAway) return;
      isAway = true;
      const failure = createFailure(clusterMeanings.away, { stage: 'stream', endedAt: lastAt });
      emit({ type: 'disconnected', at, failure });
    },
  };
};

const bytesOf = (message: FeedMessage): number =>
  message.kind === 'batch' ? message.batch.reduce((sum, { byteLength }) => sum + byteLength, 0) : 0;

// A frame that is stored beyond its event-loop turn must not retain its read buffer.
const copied = (message: FeedMessage): FeedMessage => {
  if (message.kind === 'batch') message.batch.forEach(own);
  return message;
};

const own = (frame: Frame): void => {
  if (frame instanceof LazyFrame) frame.own();
  else (frame as { data: Frame['data'] }).data = Buffer.from(frame.data);
};
