import { EMPTY, firstValueFrom, map, type Observable, type OperatorFunction, Subject, takeUntil, toArray } from 'rxjs';
import { conflate } from '../../../src/operators/conflate.js';
import { countWindow } from '../../../src/operators/count-window.js';
import { mergeMapBounded } from '../../../src/operators/merge-map-bounded.js';
import { toReadable } from '../../../src/operators/node/to-readable.js';
import { slidingWindow } from '../../../src/operators/sliding-window.js';
import { Decoded, frameOf } from '../../../src/operators/items/item.js';
import { toAsyncIterable } from '../../../src/operators/to-async-iterable.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import type { FeedEvent } from '../../../src/protocol/event.js';
import type { Frame } from '../../../src/protocol/frame.js';

/** Subscribes an operator to a feed. Returns a function that ends its feed and returns all values it held. */
export type Holder = (frames: Observable<Frame>) => () => Promise<readonly Uint8Array[]>;

/** Fewer than the values that arrive, so the queues drop the oldest frames. */
const bounds = { capacityBytes: 150_000 };
const hourMs = 3_600_000;

const ended = <T>(source: Observable<T>, end: Observable<unknown>): Observable<T> => source.pipe(takeUntil(end));

const dataOf = (value: unknown): Uint8Array => frameOf(value)?.data ?? (value as Uint8Array);

/** For operators that emit all held values when the source completes. */
const emitting =
  <E, W>(operator: OperatorFunction<E, W>, itemsOf: (emitted: W) => readonly unknown[]): Holder =>
  (frames) => {
    const end = new Subject<void>();
    const emitted = firstValueFrom(ended(frames as unknown as Observable<E>, end).pipe(operator, toArray()));
    return async () => {
      end.next();
      return [...new Set((await emitted).flatMap(itemsOf))].map(dataOf);
    };
  };

const framesOf = ({ frames }: { readonly frames: readonly unknown[] }): readonly unknown[] => frames;

const inQueue =
  (prepare: (frames: Observable<Frame>) => Observable<unknown>): Holder =>
  (frames) => {
    const end = new Subject<void>();
    const gate = new Subject<never>();
    const held: Uint8Array[] = [];
    ended(prepare(frames), end)
      .pipe(
        mergeMapBounded((value: unknown, n) => {
          if (n === 0) return gate;
          held.push(dataOf(value));
          return EMPTY;
        }, bounds),
      )
      .subscribe();
    return () => {
      end.next();
      gate.complete();
      return Promise.resolve(held);
    };
  };

const inLoop: Holder = (frames) => {
  const end = new Subject<void>();
  const loop = toAsyncIterable(bounds)(ended(frames, end))[Symbol.asyncIterator]();
  void loop.next();
  return async () => {
    end.next();
    const held: Uint8Array[] = [];
    for (let next = await loop.next(); !next.done; next = await loop.next()) held.push(next.value.data);
    return held;
  };
};

const inStream: Holder = (frames) => {
  const end = new Subject<void>();
  const stream = toReadable(bounds)(ended(frames, end));
  stream.read();
  return async () => {
    end.next();
    return ((await stream.toArray()) as readonly Frame[]).map(dataOf);
  };
};

const itemOf = ({ value }: { readonly value: unknown }): readonly unknown[] => [value];

/** Every operator that holds frames, and the values it receives. */
export const holders: Readonly<Record<string, Holder>> = {
  tumblingWindow: emitting<FeedEvent, { frames: readonly Frame[] }>(tumblingWindow({ lengthMs: hourMs }), framesOf),
  slidingWindow: emitting<FeedEvent, { frames: readonly Frame[] }>(
    slidingWindow({ lengthMs: hourMs, everyMs: hourMs / 4 }),
    framesOf,
  ),
  countWindow: emitting<FeedEvent, { frames: readonly Frame[] }>(countWindow(1_000), framesOf),
  'conflate, a key for each frame': emitting<Frame, { value: Frame }>(
    conflate((frame) => frame, hourMs),
    itemOf,
  ),
  // Keys recur sooner or later, so it holds fewer and fewer frames of a read buffer.
  'conflate, recurring keys': emitting<Frame, { value: Frame }>(
    conflate(
      (frame) => Math.floor(1_000 * (((frame.data.readUInt32LE() * 2_654_435_761) >>> 0) / 2 ** 32) ** 4),
      hourMs,
    ),
    itemOf,
  ),
  mergeMapBounded: inQueue((frames) => frames),
  'mergeMapBounded of decoded frames': inQueue(map((frame) => new Decoded(1, frame))),
  'mergeMapBounded of byte arrays': inQueue(map(({ data }) => data)),
  toAsyncIterable: inLoop,
  toReadable: inStream,
};
