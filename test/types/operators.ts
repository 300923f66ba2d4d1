import { ConsoleLogger, Logger } from '@nestjs/common';
import { type } from 'arktype';
import type { Either } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import type { Readable } from 'node:stream';
import { pino } from 'pino';
import * as feed from 'rx-trade-feed';
import { decodeWith, type FeedEvent, type Frame, frames, gaps, type LifecycleEvent } from 'rx-trade-feed';
import { mergeMapBounded, toAsyncIterable, toReadable, tradeFeed$, tradeFeedEvents$, whereBytes } from 'rx-trade-feed';
import { type AnyFrame, type RelayedEvent, relayFeed$ } from 'rx-trade-feed/browser';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { asyncScheduler, filter, map, type Observable, of, pipe, Subject, VirtualTimeScheduler } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import { emits, type Same } from './emits.js';

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
emits<feed.Decoded<Trade> | LifecycleEvent>()(events$.pipe(decodeWith(codecs.zod)));
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
emits<number | LifecycleEvent>()(
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

// Bounded work: the pipe determines the input type and the project function the output type, without annotations.
emits<number>()(
  frames$.pipe(
    mergeMapBounded((frame, n) => Promise.resolve(frame.data.length + n), { concurrency: 4, capacity: 100 }),
  ),
);
emits<string | number>()(events$.pipe(mergeMapBounded((event) => (event.type === 'frame' ? of(event.text()) : [1]))));
emits<Frame>()(
  frames$.pipe(mergeMapBounded((frame) => of(frame), { bytesOf: ({ data }) => data.length, onDrop: () => undefined })),
);
toAsyncIterable({ capacity: 1_000, overflow: 'error' })(frames$) satisfies AsyncIterable<Frame>;
pipe(
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
  emits<string>()(frames$.pipe(mergeMapBounded((frame) => of(frame.text()), each)));
for (const each of [bound, sizes]) toAsyncIterable(each)(frames$) satisfies AsyncIterable<Frame>;
for (const each of [bound, readable, sizes]) toReadable(each)(frames$);
// Over frames, over events (only frames have a key), and over decoded values.
emits<FeedEvent>()(
  events$.pipe(feed.distinctRecent((frame) => (frame satisfies Frame).text(), { max: 10, ttlMs: 1_000 })),
);
declare const decoded$: Observable<feed.Decoded<{ id: number }> | feed.Gap>;
emits<feed.Decoded<{ id: number }> | feed.Gap>()(decoded$.pipe(feed.distinctRecent(({ value }) => value.id)));
// @ts-expect-error -- a project function returns an ObservableInput
frames$.pipe(mergeMapBounded((frame) => frame.data.length));
// @ts-expect-error -- `bytesOf` is for another type
toAsyncIterable({ bytesOf: (text: string) => text.length })(frames$);
// @ts-expect-error -- a frame is not a chunk of a byte stream
toReadable({ objectMode: false })(frames$);
// @ts-expect-error -- an async iterable is not an Observable, so it is not allowed in `pipe`
frames$.pipe(toAsyncIterable());
// @ts-expect-error -- the key function receives frames only
events$.pipe(feed.distinctRecent((event) => event.durationMs));

// Sharing, status and statistics.
emits<Frame>()(frames$.pipe(feed.shareFeed({ lingerMs: 5_000, scheduler: asyncScheduler })));
// One operator serves any number of sources.
const share = feed.shareFeed({ lingerMs: undefined, scheduler: undefined });
emits<FeedEvent>()(share(events$));
emits<string>()(share(of('a')));
emits<feed.ConnectionStatus>()(events$.pipe(feed.connectionStatus()));
const drops$ = new Subject<feed.DropReport>();
emits<feed.FeedStats>()(events$.pipe(feed.feedStats({ everyMs: 500, drops$, scheduler: new VirtualTimeScheduler() })));
true satisfies Same<keyof feed.FeedStats['reconnects'], feed.FailureCode>;
// @ts-expect-error -- `drops$` emits reports, not numbers
feed.feedStats({ drops$: of(1) });
declare const status: feed.ConnectionStatus;
// @ts-expect-error -- only one state has `nextAttemptAt`
export const unnarrowed = status.nextAttemptAt as unknown;

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
