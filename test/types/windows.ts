// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import * as t from 'io-ts';
import {
  type AccumulatedWindow,
  conflate,
  type Conflated,
  countWindow,
  type Decoded,
  decodeWith,
  distinctRecent,
  type FeedEvent,
  type FeedWindow,
  type Frame,
  type LifecycleEvent,
  replay$,
  type ReplayedFrame,
  slidingWindow,
  tradeFeed$,
  tradeFeedEvents$,
  tumblingWindow,
  whereBytes,
} from 'rx-trade-feed';
import { filter, from, map, type MonoTypeOperatorFunction, type Observable, type OperatorFunction, share } from 'rxjs';

// True if both types are assignable to each other and the inferred one is not `any`.
type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;

type Emitted<O> = O extends Observable<infer T> ? T : never;
type Is<T extends true> = T;

interface Trade {
  readonly price: number;
  readonly size: number;
}
const codec = t.type({ price: t.number, size: t.number });
declare const sharedFeed: <E>() => MonoTypeOperatorFunction<E>;
declare const decodedBy: <E, A>(read: (frame: Frame) => A) => OperatorFunction<E, Exclude<E, Frame> | Decoded<A>>;
declare const read: (frame: Frame) => Trade;

// Without annotations, also after other operators.
const feed$ = tradeFeedEvents$('market');
export const tumbling$ = feed$.pipe(tumblingWindow({ lengthMs: 1_000 }));
export type IsTumbling = Is<Same<Emitted<typeof tumbling$>, FeedWindow<Frame>>>;
export const decoded$ = tradeFeedEvents$('market').pipe(
  whereBytes('x'),
  decodeWith(codec),
  tumblingWindow({ lengthMs: 1_000 }),
);
export type IsDecoded = Is<Same<Emitted<typeof decoded$>, FeedWindow<Decoded<{ price: number; size: number }>>>>;
export const shared$ = feed$.pipe(share(), decodedBy(read), tumblingWindow({ lengthMs: 1_000 }));
export type IsShared = Is<Same<Emitted<typeof shared$>, FeedWindow<Decoded<Trade>>>>;
export const sliding$ = replay$('day').pipe(whereBytes('x'), slidingWindow({ lengthMs: 2, everyMs: 1 }));
export type IsSliding = Is<Same<Emitted<typeof sliding$>, FeedWindow<ReplayedFrame>>>;
export const counted$ = feed$.pipe(sharedFeed(), countWindow(10));
export type IsCounted = Is<Same<Emitted<typeof counted$>, FeedWindow<Frame>>>;
export const countedWithOptions$ = feed$.pipe(sharedFeed(), countWindow(10, {}));
export type IsCountedWithOptions = Is<Same<Emitted<typeof countedWithOptions$>, FeedWindow<Frame>>>;
export const mapped$ = feed$.pipe(
  map((event) => (event.type === 'frame' ? event.data.length : event)),
  tumblingWindow({ lengthMs: 1_000, maxFrames: 10, align: 'start' }),
);
export type IsMapped = Is<Same<Emitted<typeof mapped$>, FeedWindow<number>>>;
export const filtered$ = feed$.pipe(
  filter((event) => event.type === 'frame' || event.type === 'gap' || event.type === 'disconnected'),
  tumblingWindow({ lengthMs: 1_000 }),
);
export type IsFiltered = Is<Same<Emitted<typeof filtered$>, FeedWindow<Frame>>>;

// Accumulators: `seed` determines the type of the state, the source the type of the item.
export const bytes$ = feed$.pipe(
  tumblingWindow({ lengthMs: 1_000, seed: () => 0, add: (bytes, frame) => bytes + frame.data.length }),
);
export type IsBytes = Is<Same<Emitted<typeof bytes$>, AccumulatedWindow<number>>>;
export const paid$ = feed$.pipe(
  decodeWith(codec),
  slidingWindow({
    lengthMs: 10_000,
    everyMs: 1_000,
    seed: () => ({ paid: 0, size: 0 }),
    add: (sum, { value }) => ({ paid: sum.paid + value.price * value.size, size: sum.size + value.size }),
  }),
);
export type IsPaid = Is<Same<Emitted<typeof paid$>, AccumulatedWindow<{ paid: number; size: number }>>>;
export const connections$ = feed$.pipe(
  countWindow(5, { seed: () => new Set<number>(), add: (seen, frame) => seen.add(frame.connection) }),
);
export type IsConnections = Is<Same<Emitted<typeof connections$>, AccumulatedWindow<Set<number>>>>;

// Operators after a window.
export const further$ = feed$.pipe(
  tumblingWindow({ lengthMs: 1_000 }),
  filter(({ complete }) => complete),
  map(({ frames, gaps, dropped, end, start }) => frames.length + gaps.length + dropped + end - start),
);
export type IsFurther = Is<Same<Emitted<typeof further$>, number>>;

export const replayed$ = replay$('day').pipe(decodeWith(codec), tumblingWindow({ lengthMs: 1_000 }));
export type IsReplayed = Is<Same<Emitted<typeof replayed$>, FeedWindow<Decoded<{ price: number; size: number }>>>>;
const addBytes = (bytes: number, frame: Frame): number => bytes + frame.data.length;
export const named$ = feed$.pipe(tumblingWindow({ lengthMs: 1, seed: () => 0, add: addBytes }));
export type IsNamed = Is<Same<Emitted<typeof named$>, AccumulatedWindow<number>>>;
const priceOf = (decoded: Decoded<Trade>): number => decoded.value.price;
export const byPrice$ = feed$.pipe(decodeWith(codec), conflate(priceOf, 100));
export const oncePerPrice$ = feed$.pipe(decodeWith(codec), distinctRecent(priceOf));
export const summed$ = feed$.pipe(
  decodeWith(codec),
  countWindow(3, { seed: () => 0, add: (sum: number, { value }: Decoded<Trade>) => sum + value.size }),
);

const framesAndGaps$ = feed$.pipe(filter((event) => event.type === 'frame' || event.type === 'gap'));
// @ts-expect-error -- without `disconnected` an outage is known only after it ended
export const tooLate = framesAndGaps$.pipe(countWindow(3));
// @ts-expect-error -- a stream of frames has no gaps
export const blind = tradeFeed$('market').pipe(tumblingWindow({ lengthMs: 1_000 }));
// @ts-expect-error -- also a stream of decoded frames
export const blindDecoded = tradeFeed$('market').pipe(decodeWith(codec), countWindow(3));
export const blindSum = tradeFeed$('market').pipe(
  // @ts-expect-error -- also with an accumulator
  slidingWindow({ lengthMs: 2, everyMs: 1, seed: () => 0, add: (sum: number) => sum + 1 }),
);
// @ts-expect-error -- `lengthMs` is required
export const noLength = feed$.pipe(tumblingWindow({}));
// @ts-expect-error -- `everyMs` is required
export const noDistance = feed$.pipe(slidingWindow({ lengthMs: 1_000 }));
// @ts-expect-error -- `seed` needs `add`
export const seedAlone = feed$.pipe(tumblingWindow({ lengthMs: 1_000, seed: () => 0 }));
// @ts-expect-error -- unknown option
export const unknownOption = feed$.pipe(tumblingWindow({ lengthMs: 1_000, size: 3 }));
// @ts-expect-error -- an accumulator stores no frames, so `maxFrames` is not allowed
export const both = feed$.pipe(tumblingWindow({ lengthMs: 1, maxFrames: 1, seed: () => 0, add: (n: number) => n }));

declare const window: FeedWindow<Frame>;
// @ts-expect-error -- a window is readonly
window.frames[0] = window.frames[1];

// Conflation: items become `Conflated`, other events remain.
export const conflated$ = feed$.pipe(conflate((frame) => frame.connection, 100));
export type IsConflated = Is<Same<Emitted<typeof conflated$>, LifecycleEvent | Conflated<Frame, number>>>;
export const conflatedDecoded$ = feed$.pipe(
  decodeWith(codec),
  conflate(({ value }) => String(value.size), 100, { maxKeys: 10 }),
);
export type IsConflatedDecoded = Is<
  Same<Emitted<typeof conflatedDecoded$>, LifecycleEvent | Conflated<Decoded<{ price: number; size: number }>, string>>
>;
export const conflatedNumbers$ = from([1, 2]).pipe(conflate((n) => n > 1, 100));
export type IsConflatedNumbers = Is<Same<Emitted<typeof conflatedNumbers$>, Conflated<number, boolean>>>;
export const windowsOfConflated$ = feed$.pipe(
  conflate((frame) => frame.feed as string, 100),
  tumblingWindow({ lengthMs: 1_000 }),
);
export type IsWindowsOfConflated = Is<Same<Emitted<typeof windowsOfConflated$>, FeedWindow<Conflated<Frame, string>>>>;
// @ts-expect-error -- `everyMs` is a number
export const badPeriod = feed$.pipe(conflate((frame) => frame.feed, '1s'));

// Also in a generic function.
export const windowsOf = <T>(events$: Observable<T | LifecycleEvent>): Observable<unknown> =>
  events$.pipe(tumblingWindow<T | LifecycleEvent>({ lengthMs: 1_000 }));
// Annotations are accepted.
export const annotated$: Observable<FeedWindow<Frame>> = feed$.pipe(tumblingWindow({ lengthMs: 1_000 }));
export const annotatedSum$: Observable<AccumulatedWindow<number>> = feed$.pipe(
  countWindow(3, { seed: () => 0, add: (sum, frame) => sum + frame.data.length }),
);
export const annotatedValues$: Observable<LifecycleEvent | Conflated<Frame, number>> = feed$.pipe(
  conflate((frame) => frame.connection, 100),
);
export const conflating: OperatorFunction<FeedEvent, LifecycleEvent | Conflated<Frame, number>> = conflate(
  (frame) => frame.connection,
  100,
);
export const sum: OperatorFunction<FeedEvent, AccumulatedWindow<number>> = tumblingWindow({
  lengthMs: 1_000,
  seed: () => 0,
  add: (sum, frame) => sum + frame.data.length,
});
export const alone: OperatorFunction<FeedEvent, FeedWindow<Frame>> = tumblingWindow({ lengthMs: 1_000 });
