// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import {
  type BoundOptions,
  type Decoded,
  distinctRecent,
  type DropReport,
  type FeedEvent,
  type Frame,
  type Gap,
  mergeMapBounded,
  type MergeMapBoundedOptions,
  OverflowError,
  type ReadableOptions,
  toAsyncIterable,
  toReadable,
  tradeFeed$,
  tradeFeedEvents$,
} from 'rx-trade-feed';
import { map, type Observable, of, pipe } from 'rxjs';
import type { Readable } from 'node:stream';

// The pipe determines the input type and the project function the output type, without annotations.
export const lengths: Observable<number> = tradeFeed$().pipe(
  mergeMapBounded((frame, index) => Promise.resolve(frame.data.length + index), { concurrency: 4, capacity: 100 }),
);
export const either: Observable<string | number> = tradeFeedEvents$().pipe(
  mergeMapBounded((event) => (event.type === 'frame' ? of(event.text()) : [1])),
);
export const sized = tradeFeed$().pipe(
  mergeMapBounded((frame) => of(frame), {
    bytesOf: (frame) => frame.data.length,
    onDrop: ({ dropped }) => dropped satisfies number,
  }),
);

export const frames: AsyncIterable<Frame> = toAsyncIterable()(tradeFeed$());
export const bounded: AsyncIterable<Frame> = toAsyncIterable({ capacity: 1_000, overflow: 'error' })(tradeFeed$());
export const measured: AsyncIterable<string> = toAsyncIterable({ bytesOf: (text: string) => text.length })(of('a'));
export const piped: (source: Observable<Frame>) => AsyncIterable<string> = pipe(
  map((frame: Frame) => frame.text()),
  toAsyncIterable(),
);

export const objects: Readable = toReadable()(tradeFeed$());
export const bytes: Readable = toReadable({ objectMode: false })(tradeFeed$().pipe(map((frame) => frame.data)));
export const named = ({ reason, from, to, total, droppedBytes }: DropReport): number =>
  (reason satisfies 'overflow' | 'ended').length + from + to + total + droppedBytes;
export const limit: number = new OverflowError('', 1, 2).capacity;
export const shared: BoundOptions = {
  capacity: 1,
  capacityBytes: Infinity,
  overflow: 'drop-newest',
  onDrop: undefined,
};

// Options in a variable do not change the inferred type.
const concurrent: MergeMapBoundedOptions = { concurrency: 2 };
const readableOptions: ReadableOptions = { objectMode: true };
const sizes = { bytesOf: (value: unknown) => String(value).length };
export const withShared: Observable<string> = tradeFeed$().pipe(mergeMapBounded((frame) => of(frame.text()), shared));
export const withConcurrent = tradeFeed$().pipe(mergeMapBounded((frame) => of(frame.text()), concurrent));
export const withSizes: Observable<Frame> = tradeFeed$().pipe(mergeMapBounded((frame) => of(frame), sizes));
export const iterated: AsyncIterable<Frame> = toAsyncIterable(shared)(tradeFeed$());
export const iteratedBySizes: AsyncIterable<Frame> = toAsyncIterable(sizes)(tradeFeed$());
export const read: readonly Readable[] = [shared, readableOptions, sizes].map((each) => toReadable(each)(tradeFeed$()));
export const standalone = pipe(
  map((frame: Frame) => frame.text()),
  mergeMapBounded((text) => of(text.length), shared),
) satisfies (source: Observable<Frame>) => Observable<number>;

// Over frames, over events (only frames have a key), and over decoded values.
export const distinctFrames: Observable<Frame> = tradeFeed$().pipe(distinctRecent((frame) => frame.text()));
export const distinctEvents: Observable<FeedEvent> = tradeFeedEvents$().pipe(
  distinctRecent((frame) => (frame satisfies Frame).text(), { max: 10, ttlMs: 1_000 }),
);
declare const decoded$: Observable<Decoded<{ id: number }> | Gap>;
export const distinctDecoded: typeof decoded$ = decoded$.pipe(distinctRecent(({ value }) => value.id));

// @ts-expect-error -- an overflow policy is one of three strings
export const badOverflow = mergeMapBounded((frame: Frame) => of(frame), { overflow: 'block' });
// @ts-expect-error -- a project function returns an ObservableInput
export const badProject = tradeFeed$().pipe(mergeMapBounded((frame) => frame.data.length));
// @ts-expect-error -- unknown option
export const badOption = toAsyncIterable({ highWaterMark: 1 });
// @ts-expect-error -- `bytesOf` is for another type
export const badSizes = toAsyncIterable({ bytesOf: (text: string) => text.length })(tradeFeed$());
// @ts-expect-error -- a frame is not a chunk of a byte stream
export const badChunks = toReadable({ objectMode: false })(tradeFeed$());
// @ts-expect-error -- an async iterable is not an Observable, so it is not allowed in `pipe`
export const badPipe = tradeFeed$().pipe(toAsyncIterable());
// @ts-expect-error -- the key function receives frames only
export const badKey = tradeFeedEvents$().pipe(distinctRecent((event) => event.durationMs));
