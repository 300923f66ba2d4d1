import { asyncScheduler, exhaustMap, type MonoTypeOperatorFunction, Observable, type SchedulerLike } from 'rxjs';
import { contextHere, inOwnContext, runIn } from '../operators/items/async-context.js';

// In: the work of a relay's clients: a live batch, a request, a join, a part of a replay, a heartbeat, an end.
// Out: the same work, in each turn of the event loop no more than all clients together may cost.
// Never: a replay before a live batch; more than one part of a client's replay in a turn.
//
// 1,000 pages that came back together got 4 MB each in one turn, which is what a kernel buffer takes. For nine seconds
// no live page got a frame, and no health probe an answer.

/** A piece of a client's work. The same function waits once. */
export type Work = () => void;

/**
 * Work by what goes before the others: for clients that have all events but the newest, a request, a join, for clients
 * that are a little late, a replay.
 */
const lanes = ['live', 'request', 'join', 'late', 'replay'] as const;

export type Lane = (typeof lanes)[number];

/** What all clients together may cost in one turn. */
const most = { bytes: 2 * 1024 * 1024, ms: 5 };

/**
 * What a piece of work costs on top of the bytes that it writes. While clients join, turns are short, because Node
 * accepts one connection in each.
 */
const costs: Readonly<Record<Lane, number>> = {
  live: 16_384,
  request: most.bytes / 8,
  join: most.bytes,
  late: 16_384,
  replay: 16_384,
};

/** How many bytes of the log a client gets in a turn, and up to how many it is a little late: after a long task, all are. */
const clientBytes = 64 * 1024;
const lateBytes = 1024 * 1024;

/** Returns the lane of a client that lacks so many bytes of the log. */
export const laneFor = (bytes: number): Lane => {
  if (bytes <= clientBytes) return 'live';
  return bytes <= lateBytes ? 'late' : 'replay';
};

/** Divides the work of a relay's clients into turns of the event loop. */
export interface Turns {
  /** How many bytes of the log one client gets in a turn: the message that reaches them is the last. */
  readonly clientBytes: number;
  /** Runs work at once if this turn has room for it and no other work waits before it. A replay always waits. */
  run(work: Work, lane: Lane): void;
  /** Makes work wait for a later turn. */
  later(work: Work, lane: Lane): void;
  /** Forgets work that waits. */
  drop(work: Work): void;
  /** Counts bytes that work has written. */
  wrote(bytes: number): void;
  /** Whether the work that goes on should wait for a later turn. */
  readonly isOver: boolean;
}

/** Returns the turns of the event loop. Virtual time has none: there, all work runs at once. */
export const turnsOf = (scheduler: SchedulerLike): Turns =>
  scheduler === asyncScheduler ? new LoopTurns() : virtualTurns;

const virtualTurns: Turns = {
  clientBytes: Infinity,
  run: (work) => work(),
  later: (work) => work(),
  drop: () => undefined,
  wrote: () => undefined,
  isOver: false,
};

/** Emits each value in a turn, in the context of the subscriber. Drops those that come while one waits. */
export const inTurn =
  <T>(turns: Turns, lane: Lane): MonoTypeOperatorFunction<T> =>
  (source) => {
    const waiting = (value: T) =>
      new Observable<T>((subscriber) => {
        const work = () => {
          subscriber.next(value);
          subscriber.complete();
        };
        subscriber.add(() => turns.drop(work));
        turns.run(work, lane);
      });
    return source.pipe(exhaustMap(waiting), inOwnContext());
  };

/** Turns of Node's event loop. One ends with `setImmediate`: after the timers that are due, and after the sockets. */
export class LoopTurns implements Turns {
  readonly clientBytes = clientBytes;
  readonly #now: () => number;
  /** A turn belongs to no client. */
  readonly #home = contextHere();
  readonly #waiting: Readonly<Record<Lane, Set<Work>>> = {
    live: new Set(),
    request: new Set(),
    join: new Set(),
    late: new Set(),
    replay: new Set(),
  };
  /** How many works wait. */
  #count = 0;
  /** What this turn has cost. */
  #bytes = 0;
  /** When this turn is over, once somebody has asked. */
  #endAt: number | undefined;
  #isEnding = false;

  /** @param now - a monotonic clock, in ms */
  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  run(work: Work, lane: Lane): void {
    const hasRoom = this.#bytes < most.bytes;
    if (!this.#isEnding) this.#endAt = undefined;
    if (hasRoom && (this.#count === 0 || (this.#isNext(lane) && !this.#isWaiting(work)))) this.#do(work, lane);
    else this.later(work, lane);
  }

  later(work: Work, lane: Lane): void {
    // A client that waits for a part of its replay gets the live events after it.
    if (this.#isWaiting(work)) return;
    this.#waiting[lane].add(work);
    this.#count += 1;
    this.#endTurn();
  }

  drop(work: Work): void {
    for (const lane of lanes) this.#take(work, lane);
  }

  wrote(bytes: number): void {
    this.#bytes += bytes;
  }

  get isOver(): boolean {
    if (this.#bytes >= most.bytes) return true;
    const now = this.#now();
    this.#endAt ??= now + most.ms;
    return now >= this.#endAt;
  }

  #take(work: Work, lane: Lane): void {
    if (this.#waiting[lane].delete(work)) this.#count -= 1;
  }

  #isNext(lane: Lane): boolean {
    const { live, request, join } = this.#waiting;
    if (live.size > 0 || lane === 'live') return live.size === 0;
    if (request.size > 0 || lane === 'request') return request.size === 0;
    return lane === 'join' && join.size === 0;
  }

  #isWaiting(work: Work): boolean {
    const { live, late, replay } = this.#waiting;
    return replay.has(work) || late.has(work) || live.has(work);
  }

  #do(work: Work, lane: Lane): void {
    // The live work of a turn is one pass over all pages, unless it has to wait: a small pass needs no end of its turn.
    if (lane !== 'live') this.#endTurn();
    this.#bytes += costs[lane];
    work();
  }

  #endTurn(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#endAt = this.#now() + most.ms;
    runIn(this.#home, () => setImmediate(() => this.#begin()));
  }

  #begin(): void {
    this.#isEnding = false;
    this.#bytes = 0;
    this.#endAt = this.#now() + most.ms;
    for (const lane of lanes) this.#serve(lane);
    if (this.#count > 0) this.#endTurn();
  }

  /** Does the work of a lane until the turn is over, but one piece at least: no lane waits for another one for ever. */
  #serve(lane: Lane): void {
    const works = this.#waiting[lane];
    // Work that waits again is behind these, for a later turn.
    let left = works.size;
    for (const work of works) {
      this.#take(work, lane);
      this.#do(work, lane);
      left -= 1;
      if (left === 0 || this.isOver) return;
    }
  }
}
