import { from, merge, of, Subject, VirtualTimeScheduler } from 'rxjs';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { FeedEvent, Gap, Watermark } from '../../../src/protocol/event.js';
import { Frame } from '../../../src/protocol/frame.js';
import { ledger } from '../../../src/settle/ledger.js';
import type { LedgerStep } from '../../../src/settle/outcome.js';
import { settle } from '../../../src/settle/settle.js';
import { createNodeWorld, runNodes } from './nodes.js';
import { judge } from './oracle.js';
import { type At, type Block, createWorld, deliveredBlocks, maxHeld, type Result, type World } from './world.js';

/** What happened in a run. */
export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly timeline: readonly string[];
  readonly trades: number;
  readonly outcomes: number;
  readonly corrections: number;
  readonly states: Readonly<Record<string, number>>;
}

type Step = LedgerStep<string> | Gap | Watermark;

/**
 * Runs the world of a seed live and from recordings, and compares the outcomes with the truth. Runs another one whose
 * node falls back.
 */
export const simulate = (seed: number): Run => {
  const world = createWorld(seed);
  const feed = feedOf(world);
  const { results, steps } = live(world, feed);
  const violations = [...judge(world, results)];
  for (const wrong of runNodes(createNodeWorld(seed)).wrong)
    violations.push(`${JSON.stringify(createNodeWorld(seed))}: ${wrong}`);
  const recorded = feed.map(({ what }) => recordedEvent(what));
  const ends = endsOf(results);
  for (const [name, events] of Object.entries({
    'feed first': replay(world, recorded, steps, false),
    'ledger first': replay(world, recorded, steps, true),
  }))
    if (endsOf(events) !== ends)
      violations.push(`other outcomes in a recording, ${name}: ${endsOf(events)} and ${ends}`);
  const states: Record<string, number> = {};
  for (const { state } of results) states[state] = (states[state] ?? 0) + 1;
  return {
    seed,
    violations,
    timeline: timelineOf(world, results),
    trades: world.slotOf.size,
    outcomes: results.length,
    corrections: results.filter(({ previous }) => previous !== undefined).length,
    states,
  };
};

const live = (world: World, feed: readonly At<FeedEvent>[]) => {
  const scheduler = new VirtualTimeScheduler(undefined, world.end);
  const feed$ = new Subject<FeedEvent>();
  const blocks$ = new Subject<Block>();
  const byId = new Map(world.blocks.map(({ what }) => [what.id, what]));
  const steps: Step[] = [];
  const results: Result[] = [];
  const step$ = blocks$.pipe(
    ledger<Block, string>({
      id: ({ id }) => id,
      parent: ({ parent }) => parent,
      height: ({ height }) => height,
      entries: ({ entries }) => entries,
      ...(world.canFetch && { fetchParent: ({ parent }: Block) => of(byId.get(parent)) }),
      depth: world.depth,
      maxHeld,
      scheduler,
    }),
  );
  const shared$ = new Subject<Step>();
  step$.subscribe((step) => {
    steps.push(step);
    shared$.next(step);
  });
  const subscription = feed$
    .pipe(settle(shared$, optionsOf(world, scheduler)))
    .subscribe((event) => event.type === 'outcome' && results.push(event));
  for (const { at, what } of feed) scheduler.schedule(() => feed$.next(what), at);
  for (const { at, what } of deliveredBlocks(world)) scheduler.schedule(() => blocks$.next(what), at);
  scheduler.flush();
  subscription.unsubscribe();
  return { results, steps };
};

const optionsOf = ({ limits }: World, scheduler: VirtualTimeScheduler) => ({
  key: (item: Frame) => item.text(),
  slot: (item: Frame) => item.text().replace('t', 's').replace('r', ''),
  keep: () => undefined,
  ...limits,
  scheduler,
});

/** Returns the events of the feed, without those in an outage. */
const feedOf = ({ sights, feedOutages, begin }: World): readonly At<FeedEvent>[] => {
  const event = (what: FeedEvent, at: number): At<FeedEvent> => ({ at, what });
  const frames = sights
    .filter(({ at }) => !feedOutages.some(({ from, to }) => at >= from && at < to))
    .map(({ at, what }) => event(new Frame('raw', Buffer.from(what), false, at, 1), at));
  const events = feedOutages.flatMap(({ from, to, knownAt }) => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: from });
    return [
      event({ type: 'disconnected', at: knownAt, failure }, knownAt),
      event({ type: 'opened', at: to, feed: 'raw', connection: 1 }, to),
      event({ type: 'gap', from, to, durationMs: to - from, failure }, to),
    ];
  });
  return [event({ type: 'opened', at: begin, feed: 'raw', connection: 1 }, begin), ...events, ...frames].sort(
    (a, b) => a.at - b.at,
  );
};

/** Turns an event into a record, as a log emits it. */
const recordedEvent = (event: FeedEvent): FeedEvent =>
  Object.assign(event.type === 'frame' ? new Frame('raw', event.data, false, event.receivedAt, 1) : { ...event }, {
    offset: 0,
  });

const replay = (world: World, feed: readonly FeedEvent[], steps: readonly Step[], isLedgerFirst: boolean) => {
  const scheduler = new VirtualTimeScheduler(undefined, world.end);
  const results: Result[] = [];
  const first$ = new Subject<Step>();
  const feed$ = new Subject<FeedEvent>();
  feed$
    .pipe(settle(first$, optionsOf(world, scheduler)))
    .subscribe((event) => event.type === 'outcome' && results.push(event));
  const both = [
    () =>
      merge(from(feed), of({ type: 'watermark', at: world.end } as FeedEvent)).subscribe((each) => feed$.next(each)),
    () => from(steps).subscribe((each) => first$.next(each)),
  ];
  for (const run of isLedgerFirst ? both.reverse() : both) run();
  return results;
};

/** Returns the last state of each trade. */
const endsOf = (results: readonly Result[]): string =>
  [...new Map(results.map(({ key, state }) => [key, state]))]
    .map(([key, state]) => `${key} ${state}`)
    .sort()
    .join();

const timelineOf = (world: World, results: readonly Result[]): readonly string[] => {
  const lines: [number, string][] = [
    ...world.sights.map(({ at, what }): [number, string] => [at, `sees ${what}`]),
    ...world.blocks.map(({ at, what }): [number, string] => [
      at,
      `block ${what.id} on ${what.parent}, ${what.height}: ${what.entries.map(({ key }) => key).join(' ')}`,
    ]),
    ...world.feedOutages.map(({ from, to, knownAt }): [number, string] => [
      from,
      `feed down to ${to}, known ${knownAt}`,
    ]),
    ...world.ledgerOutages.map(({ from, to }): [number, string] => [from, `ledger down to ${to}`]),
    ...results.map((each): [number, string] => [each.at, `outcome ${JSON.stringify(each)}`]),
  ];
  const { limits, canFetch, depth } = world;
  return [
    JSON.stringify({ ...limits, canFetch, depth }),
    ...lines.sort(([a], [b]) => a - b).map(([at, line]) => `${at} ${line}`),
  ];
};
