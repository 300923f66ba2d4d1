// @ts-check
// Counts frames in windows of half a second that report gaps. The service
// replays nothing, so the count of a window that overlaps an outage is too
// small. Such a window is incomplete, and contains the gap.
//
//   node examples/window.mjs
import { lastValueFrom, takeWhile, tap } from 'rxjs';
import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options, local) => {
  let windows = 0;
  let outages = 0;
  let hasExpired = false;
  const windows$ = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 100 },
  }).pipe(
    // The first window begins when the connection is complete, so it is
    // complete. With `seed` and `add` no frame is stored.
    tumblingWindow({
      lengthMs: 500,
      align: 'start',
      seed: () => 0,
      add: (frames) => frames + 1,
    }),
    tap(({ start, value, complete, gaps }) => {
      windows += 1;
      outages += gaps.length;
      const note = complete ? '' : ', incomplete: frames may be missing';
      console.log(`window ${windows}: ${value} frames${note}`);
      for (const { from, durationMs } of gaps)
        console.log(
          `  ${durationMs} ms without a connection, ${from - start} ms into it`,
        );
      // On the local service, an outage begins after the first window with
      // frames: the connection is open.
      if (value > 0 && !hasExpired) {
        hasExpired = true;
        local?.account.expireAccess();
      }
    }),
    // Until a window is complete again after the outage. Another service: four
    // windows.
    takeWhile(
      ({ complete }) => (local ? outages === 0 || !complete : windows < 4),
      true,
    ),
  );
  await lastValueFrom(windows$);
});
