import type { Timeline } from '../../simulation/timeline.js';
import type { Time } from '../../simulation/world.js';
import type { FeedEvent, Gap, OwnerChanged } from '../../../src/protocol/event.js';
import { afterEvent, afterFrame, type FeedState, noFeed } from '../../../src/protocol/feed-state.js';
import type { Frame } from '../../../src/protocol/frame.js';
import type { Head } from '../../../src/protocol/place.js';

export type Observer = ReturnType<typeof createObserver>;

/** Where a frame is in what its owner published. */
interface Place {
  readonly gen: string;
  readonly index: number;
  /** The number of the owner's connection. */
  readonly connection: number;
}

interface Seen extends Place {
  readonly at: number;
  readonly number: number;
  /** Frames in the gaps since the last frame. */
  missed: number;
  /** How many more those without a number can stand for: what was published before. */
  uncounted: number;
  /** When the gaps since the last frame came, and how many frames they and those before can stand for. */
  gaps: readonly { readonly at: number; readonly upTo: number }[];
  /** When the owner's connection ended after that frame. */
  endedAt: number | undefined;
  /** Whether a gap should have had a number, unless it's of an outage of the service. */
  needsNumber: boolean;
}

/** Faults that make the store lose writes. */
export const losses = ['store wiped', 'store rolled back', 'engine fails over', 'key damaged'];

/** Faults that keep messages from replicas. */
const disturbing = [
  ...losses,
  ...['pause', 'suspend', 'link refused', 'black hole', 'lost messages', 'hand-over with losses', 'engine away'],
  ...['network fails', 'slow store', 'long cut'],
];

/** The payload of a frame is its number. */
export const payloadOf = (number: number): Buffer => {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(number);
  return payload;
};

export const numberOf = ({ data }: Frame): number => data.readUInt32BE();

/** A replica shows that it's complete at least this often: the owner sends a beat every 250 ms. */
const maxStepMs = 400;
/** An `end` can be this much later than the last beat. */
const maxEndMs = 400;
/** How long a frame may take to a replica, and how long a new generation's messages may wait, both at most. */
const maxDelayMs = 10;
const maxHoldMs = 120;

/** How long a reader waits for a store that refuses to answer, and between two looks at what it has, at most. */
const maxFillMs = 6_000;
const maxLookMs = 500;

interface StoredFrame {
  readonly line: string;
  readonly gen: number;
  readonly offset: number;
  /** Since when the store has it. */
  readonly at: number;
}

interface Line {
  /** The fold of all that a replica has emitted. */
  state: FeedState;
  newestAt: number | undefined;
  /** From when to when it has shown that it's complete, without a break. */
  claims: { readonly from: number; to: number }[];
  gap: Gap | undefined;
  openedAt: number;
  /** From when it was complete for the first time. Nothing is missing before. */
  beginsAt: number | undefined;
  /** Until when the last connection with a fixed delay settles. */
  delayedTo: number;
  /** Whether it wasn't complete since the last claim. */
  isBroken: boolean;
  isAfterGap: boolean;
  /** Whether a gap without a number came right after another one. Frames are missing between the two. */
  isDoubled: boolean;
  /** Whether a connection of the outage opened earlier than it says, because its `opened` comes from the store. */
  isLate: boolean;
}

const newLine = (): Line => ({
  ...{ state: noFeed, newestAt: undefined, claims: [], gap: undefined, openedAt: -Infinity },
  ...{ beginsAt: undefined, delayedTo: -Infinity, isBroken: true, isAfterGap: false, isDoubled: false, isLate: false },
});

/** Whether the connection isn't known to be complete, although it was open when the last event came. */
const isSettling = ({ settling }: FeedState): boolean => settling !== undefined && settling.until > settling.openedAt;

/** How far a replica may be ahead of real time, in ms: uncorrected clock differences, and messages that waited. */
const maxAheadMs = 1_000;

/**
 * Knows what was really sent, and compares it with what each replica emits.
 *
 * @param fixedDelayMs - `deliveryDelayMs` of all replicas; 0 for `auto`
 */
export const createObserver = (time: Time, timeline: Timeline, fixedDelayMs: number) => {
  const { now } = time;
  const report = (violation: string): void => timeline.wrong(violation);
  const areClocksSteady = (): boolean => timeline.times('clock jump', 'suspend') === 0;
  /** Whether no replica handles its first messages late, which hides how far it is ahead. */
  const isNeverPaused = (): boolean => timeline.times('pause') === 0;
  const places = new Map<number, Place>();
  const counts = new Map<string, number>();
  /** The frames that the store has, and where each generation began in the line. */
  const stored = new Map<number, StoredFrame>();
  const begun = new Map<number, number>();
  /** The line that the store ends with. Only that one can be read. */
  let storedLine = '';
  /** When the store last answered a replica, and when it last refused to. */
  const answeredAt = new Map<string, number>();
  const refusedAt = new Map<string, number>();
  const seen = new Map<string, Seen>();
  const emitted = new Map<string, Set<number>>();
  /** Up to which time of the stream each generation's messages say that it's complete, without its `end`. */
  const completeTo = new Map<number, number>();
  /** The generations that each replica has followed. */
  const followed = new Map<string, number[]>();
  /** Each replica's last time, and the most that one was ahead of virtual time. */
  const times = new Map<string, { readonly at: number; readonly ahead: number; readonly isCutOff: boolean }>();
  /** When each frame of the service arrives at the owner, if none is lost. */
  const dueAt: number[] = [];
  const lines = new Map<string, Line>();
  /** How far an owner was ahead that had followed nobody: it only knows its own clock. */
  let aloneAhead = -Infinity;
  let framesChecked = 0;
  let lost = 0;
  let gaps = 0;

  const nowFollows = (replica: string, gen: number): void => {
    const known = followed.get(replica) ?? [];
    if (known.at(-1) !== gen) followed.set(replica, [...known, gen]);
  };

  const checkFrame = (replica: string, number: number): void => {
    framesChecked += 1;
    const place = places.get(number);
    if (place === undefined) return report(`${replica} emits frame ${number}, which no owner published`);
    const last = seen.get(replica);
    const numbers = emitted.get(replica) ?? new Set();
    emitted.set(replica, numbers);
    if (numbers.has(number)) return report(`${replica} emits frame ${number} twice`);
    numbers.add(number);
    seen.set(replica, {
      ...{ at: now(), number, ...place },
      ...{ missed: 0, uncounted: 0, gaps: [], endedAt: undefined, needsNumber: false },
    });
    const line = lines.get(replica);
    if (line?.isDoubled && place.index === (place.gen === last?.gen ? last.index + 1 : 0))
      report(`${replica} reports two gaps for one outage`);
    if (line) line.isDoubled = false;
    if (last === undefined) return;
    checkLost(replica, last, number);
    const { gen, index } = place;
    // Once data is lost, a new owner may have a lower generation than one with frames under way. A gap is between.
    // So may one that fetches, after a frame which the line has refused.
    const isLost = timeline.times(...losses) > 0 || (stored.size > 0 && !stored.has(last.number));
    if (number <= last.number && gen !== last.gen && last.gaps.length > 0 && isLost) return;
    if (number <= last.number) return report(`${replica} emits frame ${number} after ${last.number}`);
    if (number > last.number + 1 && last.gaps.length === 0)
      return report(`${replica} has no gap between frames ${last.number} and ${number}`);
    if (gen !== last.gen) {
      if (last.gaps.length === 0) report(`${replica} has no gap at generation ${gen}`);
      const unseen = (counts.get(last.gen) ?? 0) - last.index - 1;
      if (unseen > 0 && timeline.times(...disturbing) === 0)
        report(`${replica} misses the last ${unseen} frames of generation ${last.gen}, although nothing is lost`);
      return;
    }
    const missing = index - last.index - 1;
    const { missed, uncounted, needsNumber } = last;
    if (missing < missed || missing > missed + uncounted)
      report(`${replica} misses ${missing} frames before ${number}, its gaps say ${missed} to ${missed + uncounted}`);
    if (needsNumber && last.connection === place.connection)
      report(`${replica} has a gap without a number before ${number}, within a connection`);
  };

  /** Whether a frame is in the line of a later one. A replaced owner may store more where the next one has begun. */
  const isOfLine = ({ line, gen, offset }: StoredFrame, later: StoredFrame): boolean =>
    line === later.line && [...begun].every(([other, began]) => other <= gen || other > later.gen || began > offset);

  /**
   * A frame that is missing must not be due while the replica shows that it's complete, and the store must lack it, or
   * have refused to answer.
   */
  const checkLost = (replica: string, { number: from, gaps: known, ...last }: Seen, to: number): void => {
    const claims = lines.get(replica)?.claims ?? [];
    const isRefused = now() - (refusedAt.get(replica) ?? -Infinity) < maxFillMs;
    const next = stored.get(to);
    // A generation that the next owner didn't know of isn't in the line, but who followed it drops earlier ones.
    const hasPassed = ({ gen }: StoredFrame): boolean =>
      (followed.get(replica) ?? []).some((other) => other > gen && other < (next?.gen ?? 0));
    // With records that the line has refused, a reader doesn't know where the next generation but one began.
    const isSurplus = !stored.has(from) && places.get(from)?.gen !== places.get(to)?.gen;
    for (let number = from + 1; number < to; number += 1) {
      // It may have emitted some that the line has refused, before earlier ones of the line.
      if (emitted.get(replica)?.has(number)) continue;
      lost += 1;
      const kept = stored.get(number);
      const { gen, connection, index = 0 } = places.get(number) ?? {};
      // A reader that has a later record doesn't go back.
      const gap = known.find(({ upTo }) => gen === last.gen && upTo >= index - last.index) ?? known.at(-1);
      const isEnded = gen === last.gen && connection === last.connection;
      const passedAt = (isEnded ? last.endedAt : undefined) ?? gap?.at ?? now();
      if (
        next &&
        kept?.line === storedLine &&
        kept.at < passedAt - maxLookMs &&
        isOfLine(kept, next) &&
        !isRefused &&
        !isSurplus &&
        !hasPassed(kept)
      )
        report(`${replica} misses frame ${number}, which the store has since ${kept.at.toFixed(0)}`);
      const due = dueAt[number] ?? 0;
      const wrong = claims.find((claim) => claim.from + maxDelayMs < due && due < claim.to - maxHoldMs);
      if (wrong && areClocksSteady())
        report(
          `${replica} is complete from ${wrong.from.toFixed(0)} to ${wrong.to.toFixed(0)}, but frame ${number}, due at ${due.toFixed(0)}, is missing`,
        );
    }
    const claim = claims.at(-1);
    const line = lines.get(replica);
    if (line) line.claims = claim ? [claim] : [];
  };

  /** Folds what a replica emits, as every window does, and notes when it's complete. */
  const follow = (replica: string, event: FeedEvent | OwnerChanged): void => {
    const line = lines.get(replica) ?? newLine();
    lines.set(replica, line);
    if (event.type === 'gap') checkGap(replica, line, event);
    if (event.type === 'opened') {
      const { at, completeFrom = at + fixedDelayMs } = event;
      line.openedAt = at;
      line.isLate = answeredAt.get(replica) === now() || (line.isLate && line.state.outage !== undefined);
      if (completeFrom > at) line.delayedTo = completeFrom;
      // The time of the stream may wait for the clock of the owner, whose connection settles meanwhile.
      else if (completeFrom < at) line.delayedTo = at;
    }
    line.state =
      event.type === 'frame'
        ? afterFrame(line.state, event.receivedAt, event)
        : afterEvent(line.state, event, line.newestAt);
    line.beginsAt ??= line.state.completeFrom;
    const at = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
    line.newestAt = Math.max(line.newestAt ?? -Infinity, at);
    const isShown = event.type === 'frame' || event.type === 'watermark';
    const isComplete = line.state.completeFrom !== undefined && line.state.open !== undefined;
    // Once the line is complete again, the next gap is of another outage.
    if (event.type !== 'watermark' || isComplete) line.isAfterGap = event.type === 'gap';
    const last = line.claims.at(-1);
    const goesOn = last !== undefined && isComplete && last.to > now() - maxStepMs && !line.isBroken;
    if (!isComplete || event.type === 'gap') line.isBroken = true;
    else if (isShown && goesOn) last.to = now();
    else if (isShown) {
      line.isBroken = false;
      line.claims.push({ from: now(), to: now() });
    }
  };

  /** No gap is reported twice, begins before the replica does, or ends before its connection opens. */
  const checkGap = (replica: string, line: Line, gap: Gap): void => {
    gaps += 1;
    const { gap: before, openedAt, beginsAt, delayedTo } = line;
    line.gap = gap;
    // With a fixed delay, the frame between its two gaps may be missing.
    if (line.isAfterGap && gap.missed === undefined && gap.from >= line.delayedTo) line.isDoubled = true;
    if (!areClocksSteady()) return;
    if (before && gap.from < before.to - 1e-3)
      report(`${replica} reports a gap twice: ${before.to.toFixed(1)} is after ${gap.from.toFixed(1)}`);
    const { outage } = line.state;
    // For all that fold the events, the outage would go on after its gap. If the replica has handled its first messages
    // late, a fixed delay ends earlier than its `opened` says.
    const isInTime = isNeverPaused() && !line.isLate;
    const goesOn = isSettling(line.state) && (isInTime || line.state.settling?.isFixed !== true);
    if (outage && goesOn && gap.missed !== undefined)
      report(`${replica} counts the frames of an outage whose connection settles`);
    // The `end` of an owner proves that nothing is missing before, and nobody emits it. Earlier messages may be lost.
    const ended = (followed.get(replica) ?? []).slice(0, -1).map((gen) => completeTo.get(gen) ?? 0);
    const mustBegin =
      outage &&
      Math.max(
        Math.max(outage.from, ...ended, before?.to ?? 0) + maxEndMs,
        beginsAt ?? Infinity,
        isInTime ? 0 : delayedTo,
      );
    if (mustBegin !== undefined && gap.from > mustBegin)
      report(`${replica} reports a gap that begins ${(gap.from - outage!.from).toFixed(1)} ms after its outage`);
    if (gap.to < openedAt - 1e-3) report(`${replica} reports a gap that ends before its connection is open`);
  };

  /** Times never go back, and never get far ahead, although the owners' clocks differ by up to a minute. */
  const checkTime = (replica: string, event: FeedEvent | OwnerChanged): void => {
    const at = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
    const last = times.get(replica);
    // A replica that was cut off accepts any next time, because it may have slept.
    // The first frame can prove that the connection was complete when it opened.
    if (event.type === 'gap' && last !== undefined && at < last.at) return;
    const isOfOwner = event.type === 'frame' || event.type === 'watermark';
    const isCutOff = event.type === 'disconnected' || (last?.isCutOff === true && !isOfOwner);
    const ahead = at - now();
    const known = last?.ahead ?? ahead;
    times.set(replica, { at, ahead: Math.max(ahead, known), isCutOff });
    if (last === undefined) return;
    if (at < last.at - 1e-3) report(`${replica} emits ${event.type} ${(last.at - at).toFixed(1)} ms back in time`);
    if (isNeverPaused() && !last.isCutOff && !isCutOff && ahead - Math.max(known, aloneAhead) > maxAheadMs)
      report(`${replica} emits ${event.type} ${(ahead - known).toFixed(0)} ms ahead of the time`);
  };

  return {
    /** Records a frame that an owner publishes. */
    published: (replica: string, generation: number, number: number, connection = 0): void => {
      if (places.has(number)) return;
      const gen = `${generation} of ${replica}`;
      const index = counts.get(gen) ?? 0;
      counts.set(gen, index + 1);
      places.set(number, { gen, index, connection });
    },
    /** Records up to when a generation's message says that it's complete, in the time of the stream. */
    saysComplete: (generation: number, complete: number): void => {
      completeTo.set(generation, Math.max(complete, completeTo.get(generation) ?? 0));
    },
    /** Records the clock of an owner that may begin without having followed anybody, in epoch ms. */
    beganAlone: (wall: number): void => {
      aloneAhead = Math.max(aloneAhead, wall - now());
    },
    /** Records that a replica goes on after it stood still: what it handles and publishes now came earlier. */
    resumed: (): void => lines.forEach((line) => (line.isBroken = true)),
    /** Records that the store has frames of a line, or no longer. */
    stored: ({ line, gen, began, offset }: Head, numbers: readonly number[]): void => {
      begun.set(gen, began);
      storedLine = line;
      for (const [n, number] of numbers.entries()) stored.set(number, { line, gen, offset: offset + n, at: now() });
    },
    removed: (numbers: readonly number[]): void => numbers.forEach((number) => stored.delete(number)),
    /** Records that the store answers a replica: what that one emits next came earlier. */
    read: (replica: string, isGood: boolean): void => {
      const line = lines.get(replica);
      if (line) line.isBroken = true;
      answeredAt.set(replica, now());
      if (!isGood) refusedAt.set(replica, now());
    },
    /** Records a frame that the service has seen. */
    seen: (number: number, due: number): void => {
      dueAt[number] = due;
    },
    emitted: (replica: string, event: FeedEvent | OwnerChanged): void => {
      follow(replica, event);
      if (areClocksSteady()) checkTime(replica, event);
      if (event.type === 'owner-changed') nowFollows(replica, event.generation);
      // The first owner isn't announced.
      const place = event.type === 'frame' ? places.get(numberOf(event)) : undefined;
      if (place) nowFollows(replica, Number.parseInt(place.gen, 10));
      if (event.type === 'frame') return checkFrame(replica, numberOf(event));
      const last = seen.get(replica);
      if (last && event.type === 'disconnected' && !event.failure.code.startsWith('cluster')) last.endedAt ??= now();
      if (event.type !== 'gap' || last === undefined) return;
      if (event.missed !== undefined) last.missed += event.missed;
      else last.uncounted = (counts.get(last.gen) ?? 0) - last.index - 1 - last.missed;
      last.gaps = [...last.gaps, { at: now(), upTo: last.missed + last.uncounted }];
      // While a connection settles for a fixed time, frames arrive, and others may be missing.
      const isOfDelay = event.from <= (lines.get(replica)?.delayedTo ?? -Infinity);
      last.needsNumber ||= event.missed === undefined && !isOfDelay;
    },
    wrong: report,
    counts: () => ({ frames: framesChecked, lost, gaps }),
    lastFrameAt: (replica: string): number => seen.get(replica)?.at ?? -Infinity,
  };
};
