import { describe, expect, it } from '@jest/globals';
import { text } from 'node:stream/consumers';
import {
  asyncScheduler,
  connect,
  filter,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  Observable,
  type SchedulerLike,
  take,
  takeWhile,
  tap,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs';
import * as t from 'io-ts';
import type { FeedLog, From, LogRecord } from '../../src/log/index.js';
import {
  conflate,
  connectionStatus,
  countWindow,
  decodeEither,
  decodeWith,
  distinctRecent,
  feedStats,
  frames,
  freshness,
  gaps,
  shareFeed,
  slidingWindow,
  tumblingWindow,
  whereBytes,
  whereField,
  type WindowFacts,
} from '../../src/operators/index.js';
import type { FeedEvent, Gap } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../src/protocol/frame.js';
import type { Place } from '../../src/protocol/place.js';
import { type Outcome, settle } from '../../src/settle/index.js';
import { toReadable } from '../../src/operators/node/to-readable.js';
import { waitFor } from '../support/wait-for.js';
import { startWriter } from './support.js';
import {
  isTrade,
  payloadOf,
  type Plan,
  type Script,
  type Trade,
  type TradeWorld,
  tradeWorld,
  windowsOf,
} from './trade-world.js';

type Event = FeedEvent | LogRecord;

/** A log, opened by two processes. */
export type OpenTwice = () => readonly [writer: FeedLog, reader: FeedLog];

/** Longer than any test. */
const neverMs = 2_000_000_000;
const aTrade = t.type({ n: t.number, symbol: t.string, price: t.number, id: t.string });

const tradeIn = (
  item: unknown,
): { readonly symbol: string; readonly price: number; readonly id: string } | undefined => {
  const frame = item as Frame;
  return frame.isBinary || !frame.text().startsWith('{') ? undefined : (frame.json() as Trade);
};
const symbolOf = (item: unknown): string => tradeIn(item)?.symbol ?? 'none';
const sums = {
  seed: (): Record<string, number> => ({}),
  add: (all: Record<string, number>, item: unknown) => {
    const trade = tradeIn(item);
    return trade ? { ...all, [trade.symbol]: (all[trade.symbol] ?? 0) + trade.price } : all;
  },
};

/** All operators whose result is a matter of the feed's time. */
const operators = (world: TradeWorld, scheduler: SchedulerLike) =>
  ({
    events: (feed$) => feed$.pipe(filter((event) => event.type !== 'watermark')),
    frames: (feed$) => feed$.pipe(frames()),
    shared: (feed$) => feed$.pipe(shareFeed(), frames()),
    gaps: (feed$) => feed$.pipe(gaps()),
    status: (feed$) => feed$.pipe(connectionStatus()),
    windows: (feed$) => feed$.pipe(tumblingWindow({ lengthMs: 1_000, scheduler, ...sums })),
    'windows with frames': (feed$) => feed$.pipe(tumblingWindow({ lengthMs: 700, scheduler, maxFrames: 20 })),
    'windows by key': (feed$) => feed$.pipe(tumblingWindow({ lengthMs: 5_000, scheduler, by: symbolOf, ...sums })),
    'windows that wait': (feed$) =>
      feed$.pipe(tumblingWindow({ lengthMs: 1_000, allowedLatenessMs: 4_000, scheduler, ...sums })),
    'windows from the start': (feed$) =>
      feed$.pipe(tumblingWindow({ lengthMs: 1_000, align: 'start', scheduler, ...sums })),
    'sliding windows': (feed$) => feed$.pipe(slidingWindow({ lengthMs: 2_000, everyMs: 500, scheduler, ...sums })),
    'windows of 100': (feed$) => feed$.pipe(countWindow(100, { scheduler, ...sums })),
    distinct: (feed$) =>
      feed$.pipe(
        distinctRecent((item) => tradeIn(item)?.id ?? item, { scheduler }),
        frames(),
      ),
    decoded: (feed$) =>
      feed$.pipe(
        decodeWith(aTrade),
        frames(),
        map((item) => (item as { readonly value: unknown }).value),
      ),
    'decoded or not': (feed$) =>
      feed$.pipe(
        decodeEither(aTrade),
        frames(),
        map((item) => (item as { readonly _tag: string })._tag),
      ),
    'one symbol': (feed$) => feed$.pipe(whereField('symbol', ['S3']), frames()),
    'some bytes': (feed$) => feed$.pipe(whereBytes('not a trade'), frames()),
    newest: (feed$) => feed$.pipe(conflate(symbolOf, neverMs, { scheduler }), frames()),
    figures: (feed$) =>
      feed$.pipe(
        feedStats({ everyMs: neverMs, scheduler }),
        map(({ from: _from, to: _to, framesPerSecond: _frames, bytesPerSecond: _bytes, ...rest }) => rest),
      ),
    outcomes: (feed$) =>
      feed$.pipe(
        settle(from(world.ledger), {
          ...{ key: (item) => tradeIn(item)?.id, keep: () => undefined, withinMs: 8_000, scheduler },
        }),
        filter((event) => event.type === 'outcome'),
        map(withoutEndOfOutage),
      ),
    freshness: (feed$) => feed$.pipe(freshness({ maxAgeMs: 3_000, scheduler })),
  }) satisfies Readonly<Record<string, (feed$: Observable<Event>) => Observable<unknown>>>;

/** An outage that goes on when an outcome is decided has no end yet: a clock knows more of it than the last record. */
const withoutEndOfOutage = (outcome: Outcome<unknown, string>): unknown => {
  if (outcome.state !== 'unknown' || !('gap' in outcome.because)) return outcome;
  const { gap, ...because } = outcome.because;
  return { ...outcome, because: { ...because, from: gap.from } };
};

/** In a window too: its gaps count up to its end. */
const withoutGapsAfter = (window: WindowFacts): unknown => ({
  ...window,
  gaps: window.gaps.map(({ from, to, missed, failure: { code } }) => ({
    ...{ from, to: Math.min(to, window.end), missed, code },
  })),
});

type Name = keyof ReturnType<typeof operators>;
type Results = Readonly<Record<Name, readonly unknown[]>>;

/** A value as JSON, without what only a log adds. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, each: unknown) => {
      if (name === 'offset' || name === 'position') return undefined;
      if (each instanceof Frame)
        return [each.text(), each.isBinary, each.feed, each.receivedAt, each.connection].join(' ');
      return name === 'failure' ? (each as TradeFeedError).code : each;
    }),
  );

const isWindow = (value: unknown): value is WindowFacts => (value as { readonly type?: unknown }).type === 'window';

/** Applies all operators to a feed, and returns what each emits. */
const resultsOf = async (
  world: TradeWorld,
  feed$: Observable<Event>,
  scheduler: SchedulerLike = asyncScheduler,
): Promise<Results> => {
  const all = Object.entries(operators(world, scheduler));
  const results = Object.fromEntries(all.map(([name]) => [name, [] as unknown[]]));
  const read$ = feed$.pipe(
    connect((shared$) =>
      merge(
        ...all.map(([name, apply]) =>
          apply(shared$).pipe(
            tap((value) => results[name]!.push(plain(isWindow(value) ? withoutGapsAfter(value) : value))),
          ),
        ),
      ),
    ),
    ignoreElements(),
  );
  const done = lastValueFrom(read$, { defaultValue: undefined });
  if (scheduler instanceof VirtualTimeScheduler) scheduler.flush();
  await done;
  return results as unknown as Results;
};

/** The feed itself: each event comes when it happens. */
const live = async (world: TradeWorld): Promise<Results> => {
  const { events, times } = world;
  const scheduler = new VirtualTimeScheduler();
  scheduler.now = () => world.clock(scheduler.frame);
  const feed$ = new Observable<Event>((subscriber) => {
    const emit = (n: number): void => {
      subscriber.next(events[n]!);
      if (n + 1 === events.length) subscriber.complete();
      else scheduler.schedule(() => emit(n + 1), times[n + 1]! - times[n]!);
    };
    scheduler.schedule(() => emit(0), times[0]);
  });
  return resultsOf(world, feed$, scheduler);
};

/** The events between two silences of the market. */
const burstsOf = ({ events, times }: TradeWorld): readonly (readonly Event[])[] => {
  const bursts: Event[][] = [];
  events.forEach((event, n) => {
    if (n === 0 || times[n]! - times[n - 1]! > 5_000) bursts.push([]);
    bursts.at(-1)!.push(event);
  });
  return bursts;
};

const isRecord = (record: LogRecord): boolean => 'offset' in record && record.offset !== undefined;
/** What a later reader adds for operators that begin with it is left out. */
const isForOldOperators = (record: LogRecord): boolean => record.type === 'gap' || isRecord(record);

/** Appends the feed to a log, and returns what a reader gets that follows it. */
const record = async (world: TradeWorld, writer: FeedLog, reader: FeedLog): Promise<Results> => {
  const { send, end, errors } = startWriter(writer);
  let received = 0;
  const [first, ...others] = burstsOf(world);
  const following = resultsOf(
    world,
    reader.read$().pipe(
      tap((each) => (received += each.type === 'frame' ? 1 : 0)),
      takeWhile((each) => !isRecord(each) || (each as { offset: number }).offset < world.recorded.length - 1, true),
    ),
  );
  send(...first!);
  let sent = first!.filter(({ type }) => type === 'frame').length;
  for (const burst of others) {
    // Only the silence is long enough for the clock of this machine to pass meanwhile.
    await waitFor(() => received === sent);
    send(...burst);
    sent += burst.filter(({ type }) => type === 'frame').length;
  }
  const results = await following;
  await end();
  expect(errors).toEqual([]);
  return results;
};

/** Reads a log in parts, each from the place where the one before has ended. */
const readInParts = async (
  log: FeedLog,
  count: number,
  isKept: (record: LogRecord) => boolean = isForOldOperators,
): Promise<readonly LogRecord[]> => {
  const records: LogRecord[] = [];
  let begin: From = 'earliest';
  for (let n = 0; ; n += 1) {
    const part$: Observable<LogRecord> = log.read$({ from: begin, follow: false });
    const part = await lastValueFrom(part$.pipe(filter(isKept), take(count + 37 * n), toArray()));
    if (!part.some(isRecord)) return records;
    records.push(...part);
    begin = (part.at(-1) as { readonly position: Place }).position;
  }
};

/** Consumes a log with a process that ends after some batches, each time with work that isn't committed. */
const consume = async (log: FeedLog, count: number): Promise<readonly LogRecord[]> => {
  const records = new Map<number, LogRecord>();
  const work = async (batch: readonly LogRecord[]): Promise<void> => {
    for (const each of batch) if (isRecord(each)) records.set((each as { readonly offset: number }).offset, each);
    await Promise.resolve();
  };
  for (let committed = 0, n = 0; committed < count; n += 1) {
    const run$ = log.consume$('db', work, { maxBatch: 50 + 11 * n, maxInFlight: 3 });
    committed = (
      await lastValueFrom(
        run$.pipe(
          takeWhile((each) => each.committed < count, true),
          take(5),
        ),
      )
    ).committed;
  }
  return [...records.values()];
};

/** Writes the frames of a log as lines. */
const exported = (log: FeedLog): Promise<string> => {
  const all = { capacity: 100_000, capacityBytes: 100_000_000 };
  const lines$ = log.read$({ follow: false }).pipe(
    frames(),
    map((frame) => `${frame.text()}\n`),
  );
  return text(toReadable({ objectMode: false, ...all })(lines$));
};

/** What an outside count says, without the library. */
const checkCounts = (world: TradeWorld, results: Results): void => {
  const { received, missing, recorded, timeOf } = world;
  expect(results.frames).toHaveLength(received.length);
  const numbers = received.filter(isTrade).map(({ n }) => n);
  expect((results.decoded as readonly { readonly n: number }[]).map(({ n }) => n)).toEqual(numbers);
  expect(results['decoded or not'].filter((tag) => tag === 'Left')).toHaveLength(received.length - numbers.length);
  expect(results['one symbol']).toHaveLength(received.filter((each) => isTrade(each) && each.symbol === 'S3').length);
  const ids = new Set(received.map((each) => (isTrade(each) ? each.id : each.n)));
  expect(results.distinct).toHaveLength(ids.size);
  expect(results.gaps).toEqual(plain(world.gaps));
  const total = { totalFrames: received.length, gaps: world.gaps.length, dropped: world.dropped };
  expect(results.figures).toMatchObject([total]);
  const openedAt = recorded.flatMap((event) => (event.type === 'opened' ? event.at : []));
  const liveSince = (results.status as readonly { readonly state: string; readonly since: number }[]).flatMap(
    ({ state, since }) => (state === 'live' ? since : []),
  );
  expect(liveSince).toEqual(openedAt);

  const found = results.windows as readonly WindowFound[];
  const windows = found.map(({ start, count, value, complete }) => ({
    start,
    count,
    sums: value,
    isComplete: complete,
  }));
  expect(windows).toEqual(windowsOf(world, 1_000));
  for (const name of ['windows', 'windows from the start', 'sliding windows', 'windows that wait'] as const)
    for (const { start, end, complete } of results[name] as readonly WindowFound[])
      if (complete) {
        const lacking = missing.filter((trade) => timeOf(trade) >= start && timeOf(trade) < end);
        expect([name, start, lacking.map(({ n }) => n)]).toEqual([name, start, []]);
      }
  expect(found.filter(({ complete }) => complete).length).toBeGreaterThan(100);

  const outcomes = new Map((results.outcomes as readonly OutcomeFound[]).map((each) => [each.key, each]));
  const seen = new Map<string, number>();
  for (const trade of received.filter(isTrade)) if (!seen.has(trade.id)) seen.set(trade.id, timeOf(trade));
  const leads = world.ledger.flatMap((step) =>
    step.type === 'ledger' ? step.confirmed.map(({ key }) => [key, step.at - (seen.get(key) ?? NaN)] as const) : [],
  );
  expect(leads.map(([key]) => [key, outcomes.get(key)?.leadMs ?? NaN])).toEqual(leads);
  const unseen = leads.filter(([key]) => !seen.has(key)).map(([key]) => outcomes.get(key)?.state);
  expect(new Set(unseen)).toEqual(new Set(['unknown']));
};

interface WindowFound {
  readonly start: number;
  readonly end: number;
  readonly count: number;
  readonly value: unknown;
  readonly complete: boolean;
}
interface OutcomeFound {
  readonly key: string;
  readonly state: string;
  readonly leadMs?: number;
}

const without = (results: Results, ...names: readonly Name[]): Partial<Results> =>
  Object.fromEntries(Object.entries(results).filter(([name]) => !names.includes(name as Name)));

const textsOf = (values: readonly unknown[] = []): readonly string[] => values.map((each) => JSON.stringify(each));

/** As `toEqual`, which takes seconds for so many values, and prints all of them. */
const expectSame = (reader: string, actual: Partial<Results>, expected: Partial<Results>): void => {
  for (const name of Object.keys(expected) as Name[]) {
    const [own, others] = [textsOf(actual[name]), textsOf(expected[name])];
    const n = others.findIndex((each, at) => own[at] !== each);
    expect([reader, name, own[n]]).toEqual([reader, name, others[n]]);
    expect([reader, name, own.length]).toEqual([reader, name, others.length]);
  }
};

/** A status where a part begins makes no window complete that isn't, and no sum other than it is. */
const checkWithStatuses = (results: Results, expected: Results): void => {
  expectSame('a reader that resumes', { frames: results.frames }, { frames: expected.frames });
  const own = results.windows as readonly WindowFound[];
  const others = expected.windows as readonly WindowFound[];
  expect(own.map(({ count, value }) => [count, value])).toEqual(others.map(({ count, value }) => [count, value]));
  expect(own.filter(({ complete }, n) => complete && !others[n]?.complete)).toEqual([]);
  const [found, known] = [textsOf(results.gaps), textsOf(expected.gaps)];
  expect(found.filter((gap) => known.includes(gap))).toEqual(known);
  // Each status is another connection, and nobody knows how many frames are missing before: none.
  const added = (results.gaps as readonly Gap[]).filter((_, n) => !known.includes(found[n]!));
  expect(added.map(({ missed }) => missed)).toEqual(added.map(() => undefined));
};

/** Tests that a kind of log is as good as the feed itself. */
export const isAsGoodAsLive = (title: string, openTwice: OpenTwice, plans: readonly Plan[], script?: Script): void => {
  describe.each(plans)(`${title} of a feed on the %s plan`, (plan) => {
    it('has what the live feed has, and what is counted outside, for each operator, reader and consumer', async () => {
      const world = tradeWorld(plan, script);
      const [writer, reader] = openTwice();
      const expected = await live(world);
      checkCounts(world, expected);
      const followed = await record(world, writer, reader);
      // A log has the gaps that an operator finds.
      expect(expected.events).toEqual(world.events.map(plain));
      const all = await resultsOf(world, reader.read$({ follow: false }));
      expect(all.events).toEqual(world.recorded.map(plain));
      expectSame('a reader', all, without(expected, 'events'));
      // The clock of this machine is years ahead.
      expectSame('a reader that follows', followed, without(all, 'freshness'));
      const paced$ = reader.read$({ follow: false, speed: 1_000_000 });
      expectSame('a reader with a speed', await resultsOf(world, paced$), all);
      const parts = await readInParts(reader, 400);
      expectSame('a reader that resumes', await resultsOf(world, from(parts)), all);
      expect(await exported(reader)).toBe(world.received.map((trade) => `${payloadOf(trade)}\n`).join(''));
      const withStatuses = await readInParts(reader, 400, () => true);
      checkWithStatuses(await resultsOf(world, from(withStatuses)), all);
      const consumed = await consume(reader, world.recorded.length);
      expectSame('a consumer that is restarted', await resultsOf(world, from(consumed)), all);
    }, 60_000);
  });
};
