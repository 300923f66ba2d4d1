import { type Observable, retry, type SchedulerLike, share, timer, VirtualTimeScheduler } from 'rxjs';
import { relayFeed$ } from '../../../src/browser/index.js';
import { relayRequest$ as usedRequest$ } from '../../../src/browser/relay-request.js';
import { shareFeed } from '../../../src/operators/share-feed.js';
import type { Gap, RelayedEvent } from '../../../src/protocol/event.js';
import { createRelay } from '../../../src/relay/index.js';
import { createChance } from '../../simulation/chance.js';
import { createLink, relayRequest$, resetNetwork } from '../../relay/simulation/network.js';
import { clientFeed$ } from './client.js';
import { Observer } from './observer.js';
import { linesOf, replay$ } from './replay.js';
import { type Case, Service } from './service.js';

const begin = 1_700_000_000_000;
/** How long a run goes on after the last cut, in ms. */
const peaceMs = 3_000;
/** Longer than a frame takes, in ms. */
const drainMs = 1_000;
const stepMs = 1_000;

const rates = [1 / 60, 1, 5, 50, 500];
/** The jitter of all messages, and that of a handshake's answer, in ms. */
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
export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly kinds: Readonly<Record<string, number>>;
  readonly timeline: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly frames: number;
  /** How many frames the client lost, and how long its gaps were. */
  readonly lost: number;
  readonly gaps: number;
  readonly gapMs: number;
  readonly windows: number;
  readonly completeWindows: number;
  readonly virtualMs: number;
}

/** Runs cuts of one case, with observers behind each hop. */
export const simulate = (seed: number, options: RunOptions = {}): Run => {
  // Imported in jest, pages would send requests over `fetch`, whose promises never resolve in virtual time.
  if ((usedRequest$ as unknown) !== relayRequest$)
    throw new Error('Bundle the simulation: see test/support/simulation.mjs.');
  resetNetwork();
  const realNow = Date.now;
  const { stackTraceLimit } = Error;
  const scheduler = new VirtualTimeScheduler(undefined, Infinity);
  scheduler.frame = begin;
  Date.now = () => Math.floor(scheduler.now());
  Error.stackTraceLimit = 0;
  try {
    return runIn(scheduler, seed, options);
  } finally {
    [Date.now, Error.stackTraceLimit] = [realNow, stackTraceLimit];
  }
};

const runIn = (scheduler: VirtualTimeScheduler, seed: number, options: RunOptions): Run => {
  // Seeds in a row run cases that differ.
  const of = options.case ?? cases[(seed * 61) % cases.length]!;
  const { cuts = 6 } = options;
  // Each has its own numbers, so a case with another `deliveryDelayMs` has the same cuts.
  const chanceOf = (n: number) => createChance(seed * 4 + n);
  const [faults, network, joins] = [chanceOf(0), chanceOf(1), chanceOf(2)];
  const clock: SchedulerLike = {
    now: Date.now,
    schedule: (...args: Parameters<SchedulerLike['schedule']>) => scheduler.schedule(...args),
  };
  const service = new Service(scheduler, chanceOf(3), of);
  const stops = seed % 2 === 0;
  let left = cuts;
  const conditions = { scheduler, clock, service, network, faults, case: of, stops, cuts: () => (left -= 1) >= 0 };
  const resubscribe = { delay: () => timer(Math.round(faults.between(0, 800)), scheduler) };
  const feed$ = clientFeed$(conditions).pipe(retry(resubscribe), shareFeed({ lingerMs: 0, scheduler: clock }));

  const events: RelayedEvent[] = [];
  const observers = [
    new Observer('direct', feed$, { clock, isThorough: true, stops }),
    new Observer('mapped', feed$, { clock, isMapped: true }),
  ];
  const plain$ = feed$.pipe(share());
  plain$.subscribe((event) => events.push(event));
  // `share` tells a late subscriber nothing, and 500 is for a service whose first frame proves nothing.
  const late$ = seed % 3 === 0 && of.deliveryDelayMs !== 500 ? plain$ : feed$;
  // A relay ends with its feed.
  if (!stops) observers.push(...pages(feed$, clock));
  const mostLate = 3;
  for (let late = 0; left >= 0;) {
    if (late < mostLate && joins.isTrue(0.3)) {
      late += 1;
      pass(scheduler, joins.between(1, stepMs));
      observers.push(new Observer('late subscriber', late$, { clock }));
    }
    pass(scheduler, stepMs);
  }
  pass(scheduler, peaceMs);
  // So that nothing is on its way at the end.
  service.isQuiet = true;
  pass(scheduler, drainMs);
  for (const observer of observers) observer.end();

  const lines = linesOf(events);
  const middle = begin + Math.round(joins.random() * (scheduler.now() - begin));
  observers.push(new Observer('log', replay$(lines, 'earliest'), { clock }));
  observers.push(new Observer('log from the middle', replay$(lines, { time: middle }), { clock }));
  return resultOf(seed, of, { service, observers, events, virtualMs: scheduler.now() - begin, cuts });
};

const pass = (scheduler: VirtualTimeScheduler, ms: number): void => {
  const to = scheduler.now() + Math.round(ms);
  scheduler.maxFrames = to;
  scheduler.flush();
  scheduler.frame = to;
};

/** Returns observers of a page behind a relay, and of one behind a relay of that relay. */
const pages = (feed$: Observable<RelayedEvent>, clock: SchedulerLike): readonly Observer[] => {
  const over = (source: Observable<RelayedEvent>, name: string): Observable<RelayedEvent> => {
    const relay = createRelay(source, { scheduler: clock, heartbeatMs: 1_000 });
    createLink(`http://${name}.example/feed`, { relay }, 20, clock);
    return relayFeed$(`http://${name}.example/feed`, { scheduler: clock, maxFeedStops: Infinity });
  };
  return [
    new Observer('page', over(feed$, 'page'), { clock }),
    new Observer('page of a second relay', over(over(feed$, 'first'), 'second'), { clock }),
  ];
};

interface World {
  readonly service: Service;
  readonly observers: readonly Observer[];
  readonly events: readonly RelayedEvent[];
  readonly virtualMs: number;
  readonly cuts: number;
}

const resultOf = (seed: number, of: Case, { service, observers, events, virtualMs, cuts }: World): Run => {
  const violations = observers.flatMap((observer) => observer.check(service.sent));
  const [direct] = observers as [Observer];
  const sum = (count: (observer: Observer) => number): number =>
    observers.reduce((total, observer) => total + count(observer), 0);
  return {
    ...{ seed, violations, kinds: kindsOf(violations), virtualMs },
    faults: { cuts },
    frames: service.sent.length,
    lost: service.sent.filter(({ lostOn }) => lostOn !== undefined).length,
    gaps: direct.gaps.length,
    gapMs: direct.gaps.reduce((total, { durationMs }) => total + durationMs, 0),
    windows: sum(({ windows }) => windows.length),
    completeWindows: sum(({ windows }) => windows.filter(({ complete }) => complete).length),
    timeline: violations.length === 0 ? [] : [JSON.stringify(of), ...events.flatMap(lineOf)],
  };
};

const kindsOf = (violations: readonly string[]): Record<string, number> => {
  const kinds: Record<string, number> = {};
  for (const violation of violations) {
    const kind = violation.includes('in no gap')
      ? 'lost frames outside gaps'
      : violation.includes('says complete')
        ? 'complete windows that are wrong'
        : 'other';
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
};

const lineOf = (event: RelayedEvent): readonly string[] => {
  if (event.type === 'frame') return [`${event.receivedAt} frame ${event.text()}`];
  if (event.type === 'gap') return [`gap ${rangeOf(event)}`];
  return [`${event.at} ${event.type}`];
};

const rangeOf = ({ from, to }: Gap): string => `${from} to ${to}`;
