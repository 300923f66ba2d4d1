// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import {
  type FeedEvent,
  Frame,
  recordTo,
  type Replayed,
  replay$,
  type ReplayedFrame,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedError,
} from 'rx-trade-feed';
import { asyncScheduler, filter, map, type Observable } from 'rxjs';

// `recordTo` does not change the type.
export const events$: Observable<FeedEvent> = tradeFeedEvents$('market').pipe(recordTo('feed.ndjson'));
export const frames$: Observable<Frame> = tradeFeed$('raw').pipe(recordTo('feed.ndjson', { maxFileBytes: 1e9 }));
export const others$: Observable<number> = tradeFeed$().pipe(
  map(({ data }) => data.length),
  recordTo('feed.ndjson', { onError: (error) => console.error(error.path satisfies string, error.lineAt) }),
);

// A replay can replace the feed.
export const again$: Observable<FeedEvent> = replay$('feed.ndjson', {
  speed: Infinity,
  offset: 5,
  scheduler: asyncScheduler,
});
export const onlyFrames$: Observable<ReplayedFrame> = replay$('feed.ndjson').pipe(
  filter((event) => event instanceof Frame),
);

export const durationOf = (event: Replayed): number => {
  switch (event.type) {
    case 'frame':
      return (event satisfies Frame).data.length + event.offset;
    case 'gap':
      return event.durationMs + event.offset + (event.failure satisfies TradeFeedError).uptimeMs;
    default:
      return event satisfies never;
  }
};

// @ts-expect-error -- a path is required
recordTo();

// @ts-expect-error -- unknown option
recordTo('feed.ndjson', { maxFiles: 3 });

// @ts-expect-error -- `onError` is a function
recordTo('feed.ndjson', { onError: 'ignore' });

// @ts-expect-error -- a speed is a number
replay$('feed.ndjson', { speed: 'max' });
