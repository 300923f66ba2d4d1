// Compile-only: `tsc --noEmit` is the test. What must not compile is marked, and an unused mark fails.
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

// What passes keeps its type.
export const events$: Observable<FeedEvent> = tradeFeedEvents$('market').pipe(recordTo('feed.ndjson'));
export const frames$: Observable<Frame> = tradeFeed$('raw').pipe(recordTo('feed.ndjson', { maxFileBytes: 1e9 }));
export const others$: Observable<number> = tradeFeed$().pipe(
  map(({ data }) => data.length),
  recordTo('feed.ndjson', { onError: (error) => console.error(error.path satisfies string, error.lineAt) }),
);

// What comes back can stand where the feed stood.
export const again$: Observable<FeedEvent> = replay$('feed.ndjson', {
  speed: Infinity,
  offset: 5,
  scheduler: asyncScheduler,
});
export const onlyFrames$: Observable<ReplayedFrame> = replay$('feed.ndjson').pipe(
  filter((event) => event instanceof Frame),
);

export const told = (event: Replayed): number => {
  switch (event.type) {
    case 'frame':
      return (event satisfies Frame).data.length + event.offset;
    case 'gap':
      return event.durationMs + event.offset + (event.failure satisfies TradeFeedError).uptimeMs;
    default:
      return event satisfies never;
  }
};

// @ts-expect-error -- a recording needs a file
recordTo();

// @ts-expect-error -- there is no such option
recordTo('feed.ndjson', { maxFiles: 3 });

// @ts-expect-error -- an error is told to a function, or ends the stream
recordTo('feed.ndjson', { onError: 'ignore' });

// @ts-expect-error -- a speed is a number
replay$('feed.ndjson', { speed: 'max' });
