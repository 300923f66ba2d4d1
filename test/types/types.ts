// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import { ConsoleLogger, Logger } from '@nestjs/common';
import { type } from 'arktype';
import type { Either } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { Agent } from 'node:https';
import type { Readable } from 'node:stream';
import { pino } from 'pino';
import * as feed from 'rx-trade-feed';
import { decodeWith, type FeedEvent, type Frame, frames, gaps } from 'rx-trade-feed';
import { toAsyncIterable, toReadable, tradeFeed$, tradeFeedEvents$, whereBytes } from 'rx-trade-feed';
import { type AnyFrame, type RelayedEvent, relayFeed$ } from 'rx-trade-feed/browser';
import { feedLog, type LogRecord, type Place } from 'rx-trade-feed/log';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { ledger, type LedgerStep, type Outcome, outcomeStats, type OutcomeStats, settle } from 'rx-trade-feed/settle';
import * as rx from 'rxjs';
import { filter, map, type Observable, of, VirtualTimeScheduler } from 'rxjs';
import { Agent as UndiciAgent } from 'undici';
import * as v from 'valibot';
import { z } from 'zod';

type Emitted<O> = O extends Observable<infer T> ? T : never;
/** True if both types are assignable to each other and the inferred one is not `any`. */
type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;
/** Compiles if an Observable emits exactly a type: `emits<Frame>()(frames$)`. */
declare const emits: <T>() => <O>(source: O, ...wrong: Same<Emitted<O>, T> extends true ? [] : [never]) => void;

// The composition of the feed, with `retryWhen` and with `retry`, and with an operator between its parts.
emits<feed.Frame>()(
  of('raw' as const).pipe(
    feed.requestTicket(),
    feed.openConnection(),
    rx.retry({ delay: feed.retryDelay({ maxAttempts: 3 }) }),
  ),
);
emits<feed.Frame>()(
  of<feed.Feed>('raw').pipe(
    feed.requestTicket(),
    map((ticket) => ({ ...ticket, deadlineMs: performance.now() + 1_000 })),
    feed.openConnection(),
    rx.retryWhen(feed.backoff()),
  ),
);
feed.openConnection({}, (name) => (name satisfies feed.Feed).length);
feed.backoff({}, (reconnect) => (reconnect satisfies feed.Reconnect).failure.advice);
emits<feed.Frame>()(tradeFeed$(undefined));
emits<feed.FeedEvent>()(tradeFeedEvents$('raw', { apiKey: 'key' }));

// @ts-expect-error -- a feed is one of two strings
tradeFeed$('Market');
// @ts-expect-error -- also for the operator
of('trades').pipe(feed.requestTicket());
// @ts-expect-error -- a connection needs a ticket, not a feed
of<feed.Feed>('raw').pipe(feed.openConnection());
// @ts-expect-error -- the secret of a ticket is wrapped: decode the wire format
'secret' satisfies feed.Ticket['ticket'];
// @ts-expect-error -- a stage is required
feed.classify({ status: 401 });
// @ts-expect-error -- a feed is not an Observer: nothing can be sent
'next' satisfies keyof ReturnType<typeof tradeFeed$>;

declare const frame: feed.Frame;
// @ts-expect-error -- `json()` returns `unknown`
frame.json() satisfies string;

// The options, of which the guide has all: test/docs/tables.test.ts.
export const options: readonly feed.TradeFeedOptions[] = [
  { backoff: { jitter: 'equal', scheduler: new VirtualTimeScheduler() }, deliveryDelayMs: 'auto' },
  { classify: (failure, verdict) => (failure.code === 'client-too-slow' ? 'stop' : verdict) },
  { tls: { ca: 'pem', checkServerIdentity: () => undefined }, dispatcher: new UndiciAgent(), agent: new Agent() },
  // @ts-expect-error -- a key is a string
  { apiKey: 5 },
  // @ts-expect-error -- also if a function returns it
  { apiKey: () => 5 },
];

// The events are a union discriminated by `type`.
type Lifecycle = 'ticket-requested' | 'ticket-issued' | 'opened' | 'disconnected' | 'reconnecting' | 'gap' | 'stopped';
true satisfies Same<feed.FeedEvent['type'], Lifecycle | 'frame' | 'watermark'>;
declare const event: feed.FeedEvent;
if (event.type === 'frame') event satisfies feed.Frame;
// @ts-expect-error -- not every event has data: narrow by `type` first
export const unnarrowed = event.data as unknown;
if (event.type === 'ticket-issued') {
  // @ts-expect-error -- the event does not contain the ticket
  event satisfies { ticket: unknown };
}

// The messages of the channels.
type OfFeed = feed.Opened | feed.Disconnected | feed.Gap | feed.Stopped;
type OfCluster = feed.OwnerChanged | feed.EngineRefused | feed.EngineRecovered;
true satisfies Same<feed.FeedEventMessage['event'], OfFeed | OfCluster>;
// A log.
const log = feedLog('market');
emits<feed.FeedEvent>()(tradeFeedEvents$('market').pipe(log.append()));
log.read$({ speed: Infinity, from: { offset: 5 } }) satisfies Observable<LogRecord>;
log.read$().pipe(filter((each) => each instanceof feed.Frame)) satisfies Observable<feed.Frame & { offset: number }>;
feedLog('market', { maxBytes: 50e9, maxAgeMs: 86_400_000 }).append({ onError: ({ code }) => console.error(code) });
// @ts-expect-error -- how large the log may grow is an option of the log
log.append({ maxBytes: 50e9 });
// @ts-expect-error -- a path is required
feedLog();
// @ts-expect-error -- a speed is a number
log.read$({ speed: 'max' });

const frames$ = tradeFeed$('raw');
const events$ = tradeFeedEvents$('market');
interface Trade {
  price: number;
  to: string;
}
const codec = t.type({ price: t.number, to: t.string });
const codecs = {
  zod: z.object({ price: z.number(), to: z.string() }),
  valibot: v.object({ price: v.number(), to: v.string() }),
  arktype: type({ price: 'number', to: 'string' }),
};

// Decoding: over frames, the result is values with their frames. Over events, the other events remain.
emits<feed.Decoded<Trade>>()(frames$.pipe(decodeWith(codec)));
emits<feed.Decoded<Trade>>()(frames$.pipe(decodeWith(codecs.zod)));
emits<feed.Decoded<Trade>>()(frames$.pipe(decodeWith(codecs.valibot)));
emits<feed.Decoded<Trade>>()(frames$.pipe(decodeWith(codecs.arktype)));
emits<feed.Decoded<Trade> | feed.LifecycleEvent>()(events$.pipe(decodeWith(codecs.zod)));
emits<Either<feed.DecodeFailure, feed.Decoded<Trade>>>()(events$.pipe(feed.decodeEither(codec), frames()));
emits<feed.Decoded<Trade>>()(events$.pipe(feed.shareFeed(), whereBytes('0x'), decodeWith(codec), frames()));
emits<feed.Gap>()(events$.pipe(decodeWith(codec), gaps()));
// @ts-expect-error -- an Either contains the failure, so there are no options
feed.decodeEither(codec, { onInvalid: 'drop' });
// @ts-expect-error -- not a codec
decodeWith({ decode: () => 1 });
// @ts-expect-error -- a needle is a string or bytes
whereBytes(/0x/);

// `whereField` keeps the type, and takes what JSON has.
emits<FeedEvent>()(events$.pipe(feed.whereField('to', '0xa1')));
emits<Frame>()(frames$.pipe(feed.whereField('to', new Set<string>(), { ignoreCase: true })));
emits<Frame>()(frames$.pipe(feed.whereField('n', new Set([1, 2]) as ReadonlySet<number>)));
emits<Frame>()(frames$.pipe(feed.whereField('to', ['0xa1', null, true, 1] as const)));
emits<Frame>()(frames$.pipe(feed.whereField('value', (text) => text.length > 20)));
// @ts-expect-error -- JSON has no undefined
feed.whereField('to', [undefined]);
// @ts-expect-error -- the function returns whether
feed.whereField('to', (text) => text.length);

// Values change, events remain.
emits<number | feed.LifecycleEvent>()(
  events$.pipe(
    decodeWith(codec),
    feed.mapValues(({ value }) => (value.price > 1 ? value.to : undefined)),
    feed.filterValues((to) => to !== undefined),
    feed.mapValues((to) => to.length),
  ),
);
// @ts-expect-error -- a frame has no price
events$.pipe(feed.filterValues((frame) => frame.price > 1));
// @ts-expect-error -- frames have no duration
events$.pipe(frames()).subscribe((frame) => frame.durationMs as unknown);
// @ts-expect-error -- a gap has no payload
events$.pipe(gaps()).subscribe((gap) => gap.data as unknown);

// Bounded work: the rx.pipe determines the input type and the project function the output type, without annotations.
emits<number>()(
  frames$.pipe(
    feed.mergeMapBounded((frame, n) => Promise.resolve(frame.data.length + n), { concurrency: 4, capacity: 100 }),
  ),
);
emits<string | number>()(
  events$.pipe(feed.mergeMapBounded((event) => (event.type === 'frame' ? of(event.text()) : [1]))),
);
emits<Frame>()(
  frames$.pipe(
    feed.mergeMapBounded((frame) => of(frame), { bytesOf: ({ data }) => data.length, onDrop: () => undefined }),
  ),
);
toAsyncIterable({ capacity: 1_000, overflow: 'error' })(frames$) satisfies AsyncIterable<Frame>;
rx.pipe(
  map((frame: Frame) => frame.text()),
  toAsyncIterable(),
)(frames$) satisfies AsyncIterable<string>;
toReadable()(frames$) satisfies Readable;
toReadable({ objectMode: false })(frames$.pipe(map((frame) => frame.data))) satisfies Readable;
// Options in a variable do not change the inferred type.
const bound: feed.BoundOptions = { capacity: 1, capacityBytes: Infinity, overflow: 'drop-newest', onDrop: undefined };
const concurrent: feed.MergeMapBoundedOptions = { concurrency: 2 };
const readable: feed.ReadableOptions = { objectMode: true };
const sizes = { bytesOf: (value: unknown) => String(value).length };
for (const each of [bound, concurrent, sizes])
  emits<string>()(frames$.pipe(feed.mergeMapBounded((frame) => of(frame.text()), each)));
for (const each of [bound, sizes]) toAsyncIterable(each)(frames$) satisfies AsyncIterable<Frame>;
for (const each of [bound, readable, sizes]) toReadable(each)(frames$);
// Over frames, over events (only frames have a key), and over decoded values.
emits<FeedEvent>()(
  events$.pipe(feed.distinctRecent((frame) => (frame satisfies Frame).text(), { max: 10, ttlMs: 1_000 })),
);
declare const decoded$: Observable<feed.Decoded<{ id: number }> | feed.Gap>;
emits<feed.Decoded<{ id: number }> | feed.Gap>()(decoded$.pipe(feed.distinctRecent(({ value }) => value.id)));
// @ts-expect-error -- a project function returns an ObservableInput
frames$.pipe(feed.mergeMapBounded((frame) => frame.data.length));
// @ts-expect-error -- `bytesOf` is for another type
toAsyncIterable({ bytesOf: (text: string) => text.length })(frames$);
// @ts-expect-error -- a frame is not a chunk of a byte stream
toReadable({ objectMode: false })(frames$);
// @ts-expect-error -- an async iterable is not an Observable, so it is not allowed in `pipe`
frames$.pipe(toAsyncIterable());
// @ts-expect-error -- the key function receives frames only
events$.pipe(feed.distinctRecent((event) => event.durationMs));

// Sharing, status and statistics.
emits<Frame>()(frames$.pipe(feed.shareFeed({ lingerMs: 5_000, scheduler: rx.asyncScheduler })));
// One operator serves any number of sources.
const share = feed.shareFeed({ lingerMs: undefined, scheduler: undefined });
emits<FeedEvent>()(share(events$));
emits<string>()(share(of('a')));
emits<feed.ConnectionStatus>()(events$.pipe(feed.connectionStatus()));
const drops$ = new rx.Subject<feed.DropReport>();
emits<feed.FeedStats>()(events$.pipe(feed.feedStats({ everyMs: 500, drops$, scheduler: new VirtualTimeScheduler() })));
true satisfies Same<keyof feed.FeedStats['reconnects'], feed.FailureCode>;
// @ts-expect-error -- `drops$` emits reports, not numbers
feed.feedStats({ drops$: of(1) });
declare const status: feed.ConnectionStatus;
// @ts-expect-error -- only one state has `nextAttemptAt`
export const attempt = status.nextAttemptAt as unknown;

// Logging does not change the type, and known loggers fit without a cast.
emits<FeedEvent>()(events$.pipe(feed.logEvents(console)));
export const loggers: readonly feed.EventLogger[] = [
  console,
  pino(),
  new Logger('Feed'),
  new ConsoleLogger(),
  { debug: ({ type }) => type, info: ({ at, msg }) => `${at} ${msg}`, warn: () => undefined, error: () => undefined },
];
// @ts-expect-error -- a logger needs `error`
feed.logEvents({ debug: () => 1, info: () => 1, warn: () => 1 });
// @ts-expect-error -- a logger needs `info` or `log`
feed.logEvents({ debug: () => 1, warn: () => 1, error: () => 1 });

// A page: the operators keep the type of relayed frames.
const page$ = relayFeed$('/feed');
emits<RelayedEvent>()(page$);
emits<AnyFrame>()(page$.pipe(frames()));
emits<feed.Decoded<Trade, AnyFrame>>()(page$.pipe(decodeWith(codec), frames()));
emits<feed.FeedWindow<AnyFrame>>()(page$.pipe(feed.tumblingWindow({ lengthMs: 1_000 })));
// A Buffer is a Uint8Array, but not the reverse.
declare const onServer: Frame;
declare const onAny: AnyFrame;
onServer satisfies AnyFrame;
// @ts-expect-error -- a relayed frame has no Buffer
onAny satisfies Frame;
// A relay accepts the events of a feed and of another relay, also with values.
export const relays = [createRelay(events$), createRelay(page$), createRelay(relayFeed$<number>('/feed'))];
createRelay(page$.pipe(filter((event) => event.type === 'frame')));
// @ts-expect-error -- a number is not an event
createRelay(page$.pipe(map(() => 1)));
// @ts-expect-error -- `authorize` is required
relayHandler(createRelay(page$), {});
relayHandler(createRelay(page$), { authorize: () => true, allowOrigins: ['https://app.example.com'] });

interface Fill {
  price: number;
  size: number;
}
const fill = t.type({ price: t.number, size: t.number });
declare const sharedFeed: <E>() => rx.MonoTypeOperatorFunction<E>;
declare const decodedBy: <E, A>(
  read: (frame: Frame) => A,
) => rx.OperatorFunction<E, Exclude<E, Frame> | feed.Decoded<A>>;
declare const read: (frame: Frame) => Fill;

// Without annotations, also after other operators.
emits<feed.FeedWindow<Frame>>()(events$.pipe(sharedFeed(), feed.countWindow(10, {})));
emits<feed.FeedWindow<feed.Decoded<Fill>>>()(events$.pipe(decodedBy(read), feed.tumblingWindow({ lengthMs: 1_000 })));
const records$ = feedLog('day').read$();
emits<feed.FeedWindow<Frame & { readonly offset: number; readonly position: Place }>>()(
  records$.pipe(whereBytes('x'), feed.slidingWindow({ lengthMs: 2, everyMs: 1 })),
);
emits<feed.FeedWindow<feed.Decoded<Fill>>>()(records$.pipe(decodeWith(fill), feed.tumblingWindow({ lengthMs: 1_000 })));
emits<feed.FeedWindow<Frame>>()(
  events$.pipe(
    filter((event) => event.type === 'frame' || event.type === 'gap' || event.type === 'disconnected'),
    feed.tumblingWindow({ lengthMs: 1_000 }),
  ),
);
// Windows by key have the type of the key, with items or with what they accumulate.
emits<feed.FeedWindow<feed.Decoded<Fill>> & feed.WindowKey<number>>()(
  events$.pipe(decodeWith(fill), feed.tumblingWindow({ lengthMs: 1_000, by: ({ value }) => value.size })),
);
emits<feed.AccumulatedWindow<number> & feed.WindowKey<'market' | 'raw'>>()(
  events$.pipe(
    feed.slidingWindow({ lengthMs: 2, everyMs: 1, by: (frame) => frame.feed, seed: () => 0, add: (n) => n + 1 }),
  ),
);
// Accumulators: `seed` determines the type of the state, the source the type of the item.
emits<feed.AccumulatedWindow<number>>()(
  events$.pipe(
    feed.tumblingWindow({ lengthMs: 1_000, seed: () => 0, add: (bytes, frame) => bytes + frame.data.length }),
  ),
);
emits<feed.AccumulatedWindow<{ paid: number; size: number }>>()(
  events$.pipe(
    decodeWith(fill),
    feed.slidingWindow({
      lengthMs: 10_000,
      everyMs: 1_000,
      seed: () => ({ paid: 0, size: 0 }),
      add: (sum, { value }) => ({ paid: sum.paid + value.price * value.size, size: sum.size + value.size }),
    }),
  ),
);

// @ts-expect-error -- without `disconnected` an outage is known only after it ended
events$.pipe(filter((event) => event.type === 'frame' || event.type === 'gap')).pipe(feed.countWindow(3));
// @ts-expect-error -- a stream of frames has no gaps
tradeFeed$('market').pipe(feed.tumblingWindow({ lengthMs: 1_000 }));
// @ts-expect-error -- also a stream of decoded frames, with an accumulator
tradeFeed$('market').pipe(decodeWith(fill), feed.countWindow(2, { seed: () => 0, add: (sum: number) => sum + 1 }));
// @ts-expect-error -- `seed` needs `add`
events$.pipe(feed.tumblingWindow({ lengthMs: 1_000, seed: () => 0 }));
// @ts-expect-error -- an accumulator stores no frames, so `maxFrames` is not allowed
events$.pipe(feed.tumblingWindow({ lengthMs: 1, maxFrames: 1, seed: () => 0, add: (n: number) => n }));

// Conflation: items become `Conflated`, other events remain.
emits<feed.LifecycleEvent | feed.Conflated<feed.Decoded<Fill>, string>>()(
  events$.pipe(
    decodeWith(fill),
    feed.conflate(({ value }) => String(value.size), 100, { maxKeys: 10 }),
  ),
);
emits<feed.Conflated<number, boolean>>()(rx.from([1, 2]).pipe(feed.conflate((n) => n > 1, 100)));
// Annotations are accepted, also in a generic function.
export const windowsOf = <T>(events$: Observable<T | feed.LifecycleEvent>): Observable<unknown> =>
  events$.pipe(feed.tumblingWindow<T | feed.LifecycleEvent>({ lengthMs: 1_000 }));
export const conflating: rx.OperatorFunction<FeedEvent, feed.LifecycleEvent | feed.Conflated<Frame, number>> =
  feed.conflate((frame) => frame.connection, 100);

const Tx = t.type({ hash: t.string, from: t.string });
type Tx = t.TypeOf<typeof Tx>;
declare const blocks$: Observable<{ hash: string; parentHash: string; number: bigint; transactions: Tx[] }>;
type Rest = Exclude<FeedEvent, { type: 'frame' } | { type: 'watermark' }>;

// The key is inferred from the entries.
const ledger$ = blocks$.pipe(
  ledger({
    id: (block) => block.hash,
    parent: (block) => block.parentHash,
    height: (block) => Number(block.number),
    fetchParent: () => blocks$,
    entries: (block) =>
      block.transactions.map(({ hash, from }) => ({ key: hash, slot: from, failed: from === '' || undefined })),
  }),
);
emits<LedgerStep<string> | feed.Gap | feed.Watermark>()(ledger$);

// The types of the item and of the kept value are inferred. An outcome carries the item by default.
const txs$ = tradeFeedEvents$('raw').pipe(decodeWith(Tx));
emits<Rest | feed.Watermark | Outcome<feed.Decoded<Tx>, string>>()(
  txs$.pipe(settle(ledger$, { key: ({ value }) => value.hash, withinMs: 1 })),
);
emits<Rest | feed.Watermark | Outcome<number, string>>()(
  txs$.pipe(settle(ledger$, { key: ({ value }) => value.hash, keep: ({ frame }) => frame.data.length, withinMs: 1 })),
);
emits<OutcomeStats>()(
  txs$.pipe(
    settle(ledger$, { key: ({ value }) => value.hash, slot: ({ value }) => value.from, withinMs: 1 }),
    feed.tumblingWindow({ lengthMs: 1, ...outcomeStats }),
    map(({ value }) => value),
  ),
);
feedLog('day')
  .read$()
  .pipe(settle(ledger$, { key: (frame) => frame.text(), withinMs: 1 }));

// A second line is a ledger.
const other$ = tradeFeedEvents$('raw').pipe(
  map((event): LedgerStep<string> | Exclude<FeedEvent, Frame> =>
    event.type === 'frame' ? { type: 'ledger', at: 1, confirmed: [{ key: 'a' }] } : event,
  ),
);
tradeFeedEvents$('raw').pipe(settle(other$, { key: (frame) => frame.text(), withinMs: 1 }));

// @ts-expect-error -- a feed without events: every outcome would look certain
tradeFeed$('raw').pipe(settle(ledger$, { key: (frame) => frame.text(), withinMs: 1 }));
// @ts-expect-error -- the events were removed
tradeFeedEvents$('raw').pipe(frames(), settle(ledger$, { key: (frame: Frame) => frame.text(), withinMs: 1 }));
// @ts-expect-error -- the ledger has texts as keys
tradeFeedEvents$('raw').pipe(settle(ledger$, { key: (frame) => frame.receivedAt, withinMs: 1 }));
// @ts-expect-error -- withinMs is required
settle(ledger$, { key: () => 'a' });
