// @ts-check
// Counts frames in windows of half a second that know about gaps: the service replays nothing, so a window that an outage reaches
// into counts too little, and says so. The gap comes with it.
//
//   node examples/window.mjs
import { lastValueFrom, take, tap } from 'rxjs';
import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options, local) => {
  let windows = 0;
  const windows$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 100 } }).pipe(
    // From the first event on, so that the first window is a whole one. `seed` and `add`: no frame is held.
    tumblingWindow({ lengthMs: 500, align: 'start', seed: () => 0, add: (frames) => frames + 1 }),
    tap(({ start, value, complete, gaps }) => {
      windows += 1;
      console.log(`window ${windows}: ${value} frames${complete ? '' : ', incomplete: frames may be missing'}`);
      for (const { from, durationMs } of gaps)
        console.log(`  ${durationMs} ms without a connection, ${from - start} ms into it`);
      // With the local service: an outage in the second window.
      if (windows === 1) local?.account.expireAccess();
    }),
    take(4),
  );
  await lastValueFrom(windows$);
});
