// Compile-only: the types of streams after operators that decode and filter.
import type { Either } from 'fp-ts/lib/Either.js';
import { type } from 'arktype';
import * as t from 'io-ts';
import { map, type Observable } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import {
  connectionStatus,
  type ConnectionStatus,
  type Decoded,
  type DecodeFailure,
  decodeEither,
  decodeWith,
  type FeedEvent,
  feedStats,
  type FeedStats,
  type Frame,
  frames,
  type Gap,
  gaps,
  type LifecycleEvent,
  shareFeed,
  tradeFeed$,
  tradeFeedEvents$,
  whereBytes,
} from 'rx-trade-feed';

interface Trade {
  readonly price: number;
  readonly to: string;
}

const ioTs = t.type({ price: t.number, to: t.string });
const zod = z.object({ price: z.number(), to: z.string() });
const valibot = v.object({ price: v.number(), to: v.string() });
const arktype = type({ price: 'number', to: 'string' });

// Over frames, the result is values with their frames. Over events, the other events remain.
tradeFeed$('raw').pipe(decodeWith(ioTs)) satisfies Observable<Decoded<Trade>>;
tradeFeed$('raw').pipe(decodeWith(zod)) satisfies Observable<Decoded<Trade>>;
tradeFeed$('raw').pipe(decodeWith(valibot)) satisfies Observable<Decoded<Trade>>;
tradeFeed$('raw').pipe(decodeWith(arktype)) satisfies Observable<Decoded<Trade>>;
tradeFeedEvents$('raw').pipe(decodeWith(zod)) satisfies Observable<Decoded<Trade> | LifecycleEvent>;
tradeFeed$('raw').pipe(
  map(() => 1),
  whereBytes('a'),
) satisfies Observable<number>;

// A codec that transforms determines the output type.
const size = new t.Type<number, string>(
  'Size',
  t.number.is,
  (u, c) => (typeof u === 'string' ? t.success(u.length) : t.failure(u, c)),
  String,
);
tradeFeed$('raw').pipe(
  decodeWith(size),
  map(({ value }) => value + 1),
) satisfies Observable<number>;
tradeFeed$('raw').pipe(
  decodeWith(z.string().transform(Number)),
  map(({ value }) => value + 1),
) satisfies Observable<number>;

// A pipe needs no annotations.
tradeFeedEvents$('raw').pipe(
  shareFeed(),
  whereBytes('0x'),
  decodeWith(ioTs),
  frames(),
  map(({ value, frame }) => value.price * frame.connection),
) satisfies Observable<number>;

tradeFeedEvents$('raw').pipe(decodeEither(ioTs), frames()) satisfies Observable<Either<DecodeFailure, Decoded<Trade>>>;

const trades$ = tradeFeed$('raw').pipe(decodeWith(ioTs));
// @ts-expect-error -- the value is a Trade, not a string
trades$ satisfies Observable<Decoded<string>>;
// @ts-expect-error -- unknown value of `onInvalid`
tradeFeed$('raw').pipe(decodeWith(ioTs, { onInvalid: 'ignore' }));
decodeWith(ioTs, { compile: false, onInvalid: 'error' });
decodeEither(ioTs, { compile: false });
// @ts-expect-error -- an Either contains the failure, so there is no `onInvalid`
decodeEither(ioTs, { onInvalid: 'drop' });
// @ts-expect-error -- not a codec
decodeWith({ decode: () => 1 });
// @ts-expect-error -- a needle is a string or bytes
whereBytes(/0x/);

tradeFeedEvents$().pipe(frames()) satisfies Observable<Frame>;
tradeFeedEvents$().pipe(gaps()) satisfies Observable<Gap>;
tradeFeedEvents$().pipe(shareFeed({ lingerMs: 1 })) satisfies Observable<FeedEvent>;
tradeFeedEvents$().pipe(connectionStatus()) satisfies Observable<ConnectionStatus>;
tradeFeedEvents$().pipe(feedStats({ everyMs: 1 })) satisfies Observable<FeedStats>;

export const whenNext = (status: ConnectionStatus): number | undefined => {
  switch (status.state) {
    case 'connecting':
      return status.since;
    case 'live':
      return status.connection;
    case 'reconnecting':
      return status.nextAttemptAt satisfies number | undefined;
    case 'stopped':
      return status.since;
    default:
      return status satisfies never;
  }
};
