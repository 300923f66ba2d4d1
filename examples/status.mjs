// @ts-check
// Shows the status and the figures of a shared connection, during an outage.
//
//   node examples/status.mjs
import {
  delay,
  filter,
  lastValueFrom,
  merge,
  skipUntil,
  take,
  takeUntil,
  tap,
} from 'rxjs';
import {
  connectionStatus,
  feedStats,
  frames,
  shareFeed,
  tradeFeedEvents$,
} from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options, local) => {
  const feed$ = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 300, jitter: 'none' },
  }).pipe(shareFeed());

  const status$ = feed$.pipe(
    connectionStatus(),
    tap((status) => {
      if (status.state !== 'reconnecting') console.log(status.state);
      else if (status.nextAttemptAt === undefined)
        console.log('reconnecting: now');
      else
        console.log(
          `reconnecting: ${status.failure?.code}, attempt ${status.attempt}`,
        );
    }),
  );
  const figures$ = feed$.pipe(
    feedStats({ everyMs: 500 }),
    tap(({ totalFrames, gaps, lostMs, reconnects }) => {
      const lost = `${gaps} gaps, ${lostMs} ms lost`;
      const why = JSON.stringify(reconnects);
      console.log(`  ${totalFrames} frames, ${lost}, ${why}`);
    }),
  );
  // On the local service, the access expires after the third frame.
  const outage$ = feed$.pipe(
    frames(),
    take(3),
    tap({ complete: () => local?.account.expireAccess() }),
  );
  // The gap comes once the new connection is complete. Another service is shown
  // for two seconds of frames.
  const shown$ = local
    ? feed$.pipe(filter(({ type }) => type === 'gap'))
    : feed$.pipe(frames(), delay(2_200));
  await lastValueFrom(
    merge(status$, outage$).pipe(takeUntil(figures$.pipe(skipUntil(shown$)))),
  );
});
