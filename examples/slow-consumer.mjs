// @ts-check
// Work that is slower than the feed. The library keeps reading the socket, so
// the service doesn't close the connection (`1013`). Frames beyond the bounds
// are dropped, and every dropped frame is counted.
//
//   node examples/slow-consumer.mjs
import { filter, lastValueFrom, takeWhile, tap } from 'rxjs';
import { mergeMapBounded, tradeFeedEvents$ } from 'rx-trade-feed';
import { marketBatches$ } from 'rx-trade-feed/testing';
import { withService } from './support/with-service.mjs';

/** Takes 20 ms per frame: 50 frames a second at most. */
const store = () => new Promise((resolve) => setTimeout(resolve, 20));

await withService(
  async (options, local) => {
    let received = 0;
    let stored = 0;
    let dropped = 0;
    let outages = 0;
    const work$ = tradeFeedEvents$('market', options).pipe(
      // Until frames were dropped for a while. Another service may not be fast
      // enough: 30 frames.
      takeWhile(() => (local ? dropped < 100 : received < 30)),
      tap((event) => {
        if (event.type === 'disconnected') outages += 1;
      }),
      filter((event) => event.type === 'frame'),
      tap(() => (received += 1)),
      mergeMapBounded(store, {
        capacity: 10,
        onDrop: (report) => {
          const { dropped: frames, total } = report;
          dropped += frames;
          console.log(`  too slow: ${frames} frames dropped, ${total} in all`);
        },
      }),
      tap(() => (stored += 1)),
    );
    await lastValueFrom(work$, { defaultValue: undefined });
    console.log(`received ${received}, stored ${stored}, dropped ${dropped}`);
    console.log(
      `not accounted for: ${received - stored - dropped}; outages: ${outages}`,
    );
  },
  // The local service pushes 500 a second.
  { market: marketBatches$({ rate: 500 }) },
);
