import * as t from 'io-ts';
import type { AccumulatedWindow, Decoded, FeedEvent, FeedWindow, Frame, WindowKey } from 'rx-trade-feed';
import { conflate, type Conflated, countWindow, decodeWith, type LifecycleEvent } from 'rx-trade-feed';
import { slidingWindow, tradeFeed$, tradeFeedEvents$, tumblingWindow, whereBytes } from 'rx-trade-feed';
import { feedLog, type LogPosition } from 'rx-trade-feed/log';
import { filter, from, type MonoTypeOperatorFunction, type Observable, type OperatorFunction } from 'rxjs';
import { emits } from './emits.js';

interface Trade {
  price: number;
  size: number;
}
const codec = t.type({ price: t.number, size: t.number });
declare const sharedFeed: <E>() => MonoTypeOperatorFunction<E>;
declare const decodedBy: <E, A>(read: (frame: Frame) => A) => OperatorFunction<E, Exclude<E, Frame> | Decoded<A>>;
declare const read: (frame: Frame) => Trade;
const feed$ = tradeFeedEvents$('market');

// Without annotations, also after other operators.
emits<FeedWindow<Frame>>()(feed$.pipe(sharedFeed(), countWindow(10, {})));
emits<FeedWindow<Decoded<Trade>>>()(feed$.pipe(decodedBy(read), tumblingWindow({ lengthMs: 1_000 })));
const records$ = feedLog('day').read$();
emits<FeedWindow<Frame & { readonly offset: number; readonly position: LogPosition }>>()(
  records$.pipe(whereBytes('x'), slidingWindow({ lengthMs: 2, everyMs: 1 })),
);
emits<FeedWindow<Decoded<Trade>>>()(records$.pipe(decodeWith(codec), tumblingWindow({ lengthMs: 1_000 })));
emits<FeedWindow<Frame>>()(
  feed$.pipe(
    filter((event) => event.type === 'frame' || event.type === 'gap' || event.type === 'disconnected'),
    tumblingWindow({ lengthMs: 1_000 }),
  ),
);
// Windows by key have the type of the key, with items or with what they accumulate.
emits<FeedWindow<Decoded<Trade>> & WindowKey<number>>()(
  feed$.pipe(decodeWith(codec), tumblingWindow({ lengthMs: 1_000, by: ({ value }) => value.size })),
);
emits<AccumulatedWindow<number> & WindowKey<'market' | 'raw'>>()(
  feed$.pipe(slidingWindow({ lengthMs: 2, everyMs: 1, by: (frame) => frame.feed, seed: () => 0, add: (n) => n + 1 })),
);
// Accumulators: `seed` determines the type of the state, the source the type of the item.
emits<AccumulatedWindow<number>>()(
  feed$.pipe(tumblingWindow({ lengthMs: 1_000, seed: () => 0, add: (bytes, frame) => bytes + frame.data.length })),
);
emits<AccumulatedWindow<{ paid: number; size: number }>>()(
  feed$.pipe(
    decodeWith(codec),
    slidingWindow({
      lengthMs: 10_000,
      everyMs: 1_000,
      seed: () => ({ paid: 0, size: 0 }),
      add: (sum, { value }) => ({ paid: sum.paid + value.price * value.size, size: sum.size + value.size }),
    }),
  ),
);

// @ts-expect-error -- without `disconnected` an outage is known only after it ended
feed$.pipe(filter((event) => event.type === 'frame' || event.type === 'gap')).pipe(countWindow(3));
// @ts-expect-error -- a stream of frames has no gaps
tradeFeed$('market').pipe(tumblingWindow({ lengthMs: 1_000 }));
// @ts-expect-error -- also a stream of decoded frames, with an accumulator
tradeFeed$('market').pipe(decodeWith(codec), countWindow(2, { seed: () => 0, add: (sum: number) => sum + 1 }));
// @ts-expect-error -- `seed` needs `add`
feed$.pipe(tumblingWindow({ lengthMs: 1_000, seed: () => 0 }));
// @ts-expect-error -- an accumulator stores no frames, so `maxFrames` is not allowed
feed$.pipe(tumblingWindow({ lengthMs: 1, maxFrames: 1, seed: () => 0, add: (n: number) => n }));

// Conflation: items become `Conflated`, other events remain.
emits<LifecycleEvent | Conflated<Decoded<Trade>, string>>()(
  feed$.pipe(
    decodeWith(codec),
    conflate(({ value }) => String(value.size), 100, { maxKeys: 10 }),
  ),
);
emits<Conflated<number, boolean>>()(from([1, 2]).pipe(conflate((n) => n > 1, 100)));
// Annotations are accepted, also in a generic function.
export const windowsOf = <T>(events$: Observable<T | LifecycleEvent>): Observable<unknown> =>
  events$.pipe(tumblingWindow<T | LifecycleEvent>({ lengthMs: 1_000 }));
export const conflating: OperatorFunction<FeedEvent, LifecycleEvent | Conflated<Frame, number>> = conflate(
  (frame) => frame.connection,
  100,
);
