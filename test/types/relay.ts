// Compile-only: `tsc --noEmit` is the test. The operators keep the type of relayed frames.
import * as t from 'io-ts';
import type { Observable } from 'rxjs';
import { filter, map } from 'rxjs';
import type { Frame } from 'rx-trade-feed';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { type AnyFrame, type RelayedEvent, relayFeed$ } from 'rx-trade-feed/browser';
import { type Decoded, decodeWith, type FeedWindow, frames, gaps, tumblingWindow } from 'rx-trade-feed/operators';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';

// True if both types are assignable to each other and the inferred one is not `any`.
type Same<A, B> = [A, B, 0 extends 1 & A ? 1 : 2] extends [B, A, 2] ? true : false;
type Is<T extends true> = T;
type Emitted<O> = O extends Observable<infer T> ? T : never;

const feed$ = relayFeed$('/feed');
export type IsEvents = Is<Same<Emitted<typeof feed$>, RelayedEvent>>;

export const frames$ = feed$.pipe(frames());
export type IsFrames = Is<Same<Emitted<typeof frames$>, AnyFrame>>;
export const bytes$ = frames$.pipe(map(({ data }) => data));
export type IsBytes = Is<Same<Emitted<typeof bytes$>, Uint8Array>>;

const codec = t.type({ price: t.number });
export const decoded$ = feed$.pipe(decodeWith(codec), frames());
export type IsDecoded = Is<Same<Emitted<typeof decoded$>, Decoded<{ price: number }, AnyFrame>>>;
export const decodedHere$ = tradeFeedEvents$().pipe(decodeWith(codec), frames());
export type IsDecodedHere = Is<Same<Emitted<typeof decodedHere$>, Decoded<{ price: number }>>>;

export const windows$ = feed$.pipe(tumblingWindow({ lengthMs: 1_000 }));
export type IsWindows = Is<Same<Emitted<typeof windows$>, FeedWindow<AnyFrame>>>;
export const missed$ = feed$.pipe(
  gaps(),
  map(({ missed }) => missed),
);
export type IsMissed = Is<Same<Emitted<typeof missed$>, number | undefined>>;

// A Buffer is a Uint8Array, but not the reverse.
export const onAny = (frame: Frame): AnyFrame => frame;
// @ts-expect-error -- a relayed frame has no Buffer
export const onServer = (frame: AnyFrame): Frame => frame;

// A relay accepts the events of a feed and of another relay, also with values.
export const relays = [createRelay(tradeFeedEvents$()), createRelay(feed$), createRelay(relayFeed$<number>('/feed'))];
// @ts-expect-error -- a number is not an event
createRelay(feed$.pipe(map(() => 1)));
export const justFrames = createRelay(feed$.pipe(filter((event) => event.type === 'frame')));

// @ts-expect-error -- `authorize` is required
relayHandler(createRelay(feed$), {});
relayHandler(createRelay(feed$), { authorize: () => true, allowOrigins: ['https://app.example.com'] });
