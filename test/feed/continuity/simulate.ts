import { type Observable, retry, share, timer } from 'rxjs';
import { relayFeed$ } from '../../../src/browser/index.js';
import { shareFeed } from '../../../src/operators/share-feed.js';
import { slidingWindow } from '../../../src/operators/sliding-window.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { createRelay } from '../../../src/relay/index.js';
import type { WaitingFrames } from '../../../src/testing/index.js';
import { createLink, resetNetwork } from '../../relay/simulation/network.js';
import { type Chance, createChance } from '../../simulation/chance.js';
import { type Cut, Service, SimulatedFeed } from '../../simulation/feed.js';
import { countsOf, Reader, type ReaderOptions } from '../../simulation/reader.js';
import { type Run as AnyRun, Timeline } from '../../simulation/timeline.js';
import { inWorld, Time } from '../../simulation/world.js';
import { linesOf, replay$ } from './replay.js';

/** How long a run goes on after the last cut, in ms. */
const peaceMs = 3_000;
/** Longer than a frame takes, in ms. */
const drainMs = 1_000;
const stepMs = 1_000;
/** The delay of the Free plan (contract, section 8), in ms: how long a connection may take until it is complete. */
const freeDelayMs = 500;

/** What a run varies: the service, its network, and what the client knows of it. */
export interface Case {
  readonly plan: 'free' | 'developer';
  /** What becomes of frames that wait for the delay when a connection closes. */
  readonly waiting: WaitingFrames;
  /** How many frames the service sees, on average. */
  readonly perSecond: number;
  /** How much longer than usual a message may take, and the answer to a handshake, in ms. */
  readonly jitterMs: number;
  readonly answerJitterMs: number;
  readonly deliveryDelayMs: 'auto' | number;
}

const rates = [1 / 60, 1, 5, 50, 500];
const jitters = [
  [0, 0],
  [60, 60],
  [200, 200],
  [0, 200],
] as const;
/** The plans and readings of the contract, each with what `deliveryDelayMs` promises for it. */
const services: readonly Pick<Case, 'plan' | 'waiting' | 'deliveryDelayMs'>[] = [
  { plan: 'developer', waiting: 'drop', deliveryDelayMs: 'auto' },
  { plan: 'developer', waiting: 'drop', deliveryDelayMs: 0 },
  { plan: 'developer', waiting: 'drop', deliveryDelayMs: 500 },
  { plan: 'free', waiting: 'drop', deliveryDelayMs: 'auto' },
  { plan: 'free', waiting: 'drop', deliveryDelayMs: 500 },
  { plan: 'free', waiting: 'send-when-due', deliveryDelayMs: 'auto' },
  { plan: 'free', waiting: 'send-when-due', deliveryDelayMs: 500 },
  { plan: 'free', waiting: 'send-on-reconnect', deliveryDelayMs: 500 },
];

export const cases: readonly Case[] = services.flatMap((service) =>
  rates.flatMap((perSecond) =>
    jitters.map(([jitterMs, answerJitterMs]) => ({ ...service, perSecond, jitterMs, answerJitterMs })),
  ),
);

export interface RunOptions {
  /** @defaultValue the one that the seed chooses */
  readonly case?: Case | undefined;
  /** How many connections are cut. @defaultValue 6 */
  readonly cuts?: number | undefined;
}

/** What happened in a run. */
export interface Run extends AnyRun {
  readonly frames: number;
  /** How many frames the client lost, and how long its gaps were. */
  readonly lost: number;
  readonly gaps: number;
  readonly gapMs: number;
  readonly windows: number;
  readonly completeWindows: number;
  readonly virtualMs: number;
}

/** Runs cuts of one case, with readers behind each hop. */
export const simulate = (seed: number, options: RunOptions = {}): Run => {
  resetNetwork();
  const time = new Time(1_700_000_000_000);
  return inWorld(time, () => runIn(time, seed, options));
};

const runIn = (time: Time, seed: number, options: RunOptions): Run => {
  // Seeds in a row run cases that differ.
  const of = options.case ?? cases[(seed * 61) % cases.length]!;
  const { cuts = 6 } = options;
  // Each has its own numbers, so a case with another `deliveryDelayMs` has the same cuts.
  const [faults, network, joins, rate] = [0, 1, 2, 3].map((n) => createChance(seed * 4 + n)) as [
    Chance,
    Chance,
    Chance,
    Chance,
  ];
  const timeline = new Timeline(time);
  timeline.note(JSON.stringify(of));
  const service = new Service(time, network, {
    ...{ ...of, delayMs: of.plan === 'free' ? freeDelayMs : 0, refusals: 0.1 },
    waitMs: () => (1_000 / of.perSecond) * rate.between(0.2, 1.8),
  });
  const stops = seed % 2 === 0;
  let left = cuts;
  const feed = new SimulatedFeed(service, {
    reconnectMs: () => (faults.isTrue(0.5) ? faults.whole(0, 50) : faults.whole(50, 1_500)),
    onAccepted: (cut) => {
      left -= 1;
      if (left < 0) return;
      timeline.count('cuts');
      // Where frames are rare, only a cut near one can lose it.
      const isNear = of.perSecond < 5 && faults.isTrue(0.7);
      const nearMs = service.nextAt - time.now() + faults.whole(-1_200, 700);
      const longMs = faults.isTrue(0.3) ? 700 : Math.min(5_000, 60_000 / of.perSecond);
      const upMs = isNear ? Math.max(1, Math.round(nearMs)) : faults.whole(1, longMs);
      const kind: Cut = stops && faults.isTrue(0.2) ? 'stop' : faults.isTrue(0.5) ? 'close' : 'reset';
      time.after(upMs, () => cut(kind));
    },
  });
  const resubscribe = { delay: () => timer(faults.whole(0, 800), time) };
  const feed$ = feed.events$.pipe(retry(resubscribe), shareFeed({ lingerMs: 0, scheduler: time.clock }));

  const events: RelayedEvent[] = [];
  const readers: Reader[] = [];
  const windowsOf = windows(time, false);
  const read = (name: string, from$: Observable<RelayedEvent>, more: Partial<ReaderOptions> = {}): void => {
    const options = { time, timeline, windows: windowsOf, usesOperator: true, settlesMs: freeDelayMs };
    readers.push(new Reader(name, from$, { ...options, ...more }));
  };
  read('direct', feed$, { windows: windows(time, true) });
  read('mapped', feed$, { isMapped: true });
  const plain$ = feed$.pipe(share());
  plain$.subscribe((event) => events.push(event));
  // `share` tells a late subscriber nothing, and 500 is for a service whose first frame proves nothing.
  const late$ = seed % 3 === 0 && of.deliveryDelayMs !== 500 ? plain$ : feed$;
  // A relay ends with its feed.
  if (!stops) {
    read('page', over(feed$, 'page', time));
    read('page of a second relay', over(over(feed$, 'first', time), 'second', time));
  }
  const mostLate = 6;
  for (let late = 0; left >= 0;) {
    if (late < mostLate && joins.isTrue(0.5)) {
      late += 1;
      time.pass(joins.whole(1, stepMs));
      read('late subscriber', late$);
    }
    time.pass(stepMs);
  }
  time.pass(peaceMs);
  // So that nothing is on its way at the end.
  service.isQuiet = true;
  time.pass(drainMs);
  for (const reader of readers) reader.leave();

  const lines = linesOf(events);
  const middle = time.begin + Math.round(joins.random() * time.elapsed);
  read('log', replay$(lines, 'earliest'));
  read('log from the middle', replay$(lines, { time: middle }));
  const { sent } = service;
  const placeOf = (frame: (typeof sent)[number], at?: number): number => at ?? feed.account.missingAt(frame);
  for (const reader of readers) reader.check({ sent, placeOf });
  checkGaps(readers[0]!, timeline, stops);
  const gaps = readers[0]!.gaps;
  return {
    ...timeline.result(seed),
    ...{ ...countsOf(readers), frames: sent.length, lost: feed.account.lost, virtualMs: time.elapsed },
    ...{ gaps: gaps.length, gapMs: gaps.reduce((total, { durationMs }) => total + durationMs, 0) },
  };
};

const windows =
  (time: Time, isThorough: boolean): ReaderOptions['windows'] =>
  (items$) => {
    const count = { scheduler: time.clock, seed: () => 0, add: (sum: number) => sum + 1 };
    const thorough = [
      ...[50, 1_000].map((lengthMs) => items$.pipe(tumblingWindow({ lengthMs, ...count }))),
      items$.pipe(slidingWindow({ lengthMs: 200, everyMs: 50, ...count })),
    ];
    return [
      items$.pipe(tumblingWindow({ lengthMs: 200, ...count })),
      items$.pipe(tumblingWindow({ lengthMs: 200, align: 'start', ...count })),
      ...(isThorough ? thorough : []),
    ];
  };

/** Emits what a page receives behind a relay. */
const over = (source: Observable<RelayedEvent>, name: string, { clock: scheduler }: Time): Observable<RelayedEvent> => {
  const relay = createRelay(source, { scheduler, heartbeatMs: 1_000 });
  createLink(`http://${name}.example/feed`, { relay }, 20, scheduler);
  return relayFeed$(`http://${name}.example/feed`, { scheduler, maxFeedStops: Infinity });
};

/** Each gap of a direct reader is as short as it can be, and there once its connection is complete. */
const checkGaps = ({ gaps }: Reader, timeline: Timeline, stops: boolean): void => {
  for (const [n, { to, durationMs, openedAt, emittedAt }] of gaps.entries()) {
    const latest = openedAt + freeDelayMs;
    if (durationMs === 0 && to === gaps[n - 1]?.to) timeline.wrong(`another gap up to ${to}`);
    if (to > latest) timeline.wrong(`the gap up to ${to} is too long`);
    // The feed emits it by a timer. After a stop it emits none, and an operator waits for the next event.
    if (!stops && emittedAt > latest + 2) timeline.wrong(`the gap up to ${to} is emitted late, at ${emittedAt}`);
  }
};
