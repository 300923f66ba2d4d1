// @ts-check
// Work that takes longer than the frames take to come. The socket is drained all the same, so the service does not cut the feed off
// (`1013`); what does not fit into the bounds is dropped, told and counted: to the last frame.
//
//   node examples/slow-consumer.mjs
import { filter, lastValueFrom, takeUntil, tap, timer } from 'rxjs';
import { mergeMapBounded, tradeFeedEvents$ } from 'rx-trade-feed';
import { marketBatches$ } from 'rx-trade-feed/testing';
import { withService } from './support/with-service.mjs';

/** 20 ms for each frame: 50 frames a second at most. */
const store = () => new Promise((resolve) => setTimeout(resolve, 20));

await withService(
  async (options) => {
    let received = 0;
    let stored = 0;
    let dropped = 0;
    let outages = 0;
    const work$ = tradeFeedEvents$('market', options).pipe(
      takeUntil(timer(1_500)),
      tap((event) => {
        if (event.type === 'disconnected') outages += 1;
      }),
      filter((event) => event.type === 'frame'),
      tap(() => (received += 1)),
      mergeMapBounded(store, {
        capacity: 10,
        onDrop: (report) => {
          dropped += report.dropped;
          console.log(`  too slow: ${report.dropped} frames dropped, ${report.total} in all`);
        },
      }),
      tap(() => (stored += 1)),
    );
    await lastValueFrom(work$, { defaultValue: undefined });
    console.log(`received ${received}, stored ${stored}, dropped ${dropped}`);
    console.log(`lost track of: ${received - stored - dropped}; outages: ${outages}`);
  },
  // The local service pushes 500 a second.
  { market: marketBatches$({ rate: 500 }) },
);
