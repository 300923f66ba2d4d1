// @ts-check
// Counts frames in windows of half a second that report gaps. The service replays nothing, so the count of a window that overlaps an outage is too
// small. Such a window is incomplete, and contains the gap.
//
//   node examples/window.mjs
import { lastValueFrom, take, tap } from 'rxjs';
import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options, local) => {
  let windows = 0;
  const windows$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 100 } }).pipe(
    // The first window begins with the first event, so it is complete. With `seed` and `add` no frame is stored.
    tumblingWindow({ lengthMs: 500, align: 'start', seed: () => 0, add: (frames) => frames + 1 }),
    tap(({ start, value, complete, gaps }) => {
      windows += 1;
      console.log(`window ${windows}: ${value} frames${complete ? '' : ', incomplete: frames may be missing'}`);
      for (const { from, durationMs } of gaps)
        console.log(`  ${durationMs} ms without a connection, ${from - start} ms into it`);
      // On the local service, the second window has an outage.
      if (windows === 1) local?.account.expireAccess();
    }),
    take(4),
  );
  await lastValueFrom(windows$);
});
