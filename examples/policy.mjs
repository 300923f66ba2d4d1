// @ts-check
// A custom reconnect policy: each delay is three times the previous one,
// without jitter, and at most four reconnects in a row. A refused account
// doesn't stop the feed, because `classify` overrides the verdict of the table.
// The local service first refuses access, then restores it, then fails
// permanently.
//
//   node examples/policy.mjs
import { lastValueFrom, takeWhile, tap } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

await withService(async (options, local) => {
  const events$ = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 20, factor: 3, jitter: 'none', maxAttempts: 4 },
    classify: (failure, verdict) =>
      failure.code === 'not-entitled' ? 'backoff' : verdict,
  });
  const shown$ = events$.pipe(
    tap((event) => {
      if (event.type === 'disconnected')
        console.log(`${event.failure.code} (${event.failure.verdict})`);
      if (event.type === 'reconnecting')
        console.log(`  attempt ${event.attempt} in ${event.delayMs} ms`);
      if (event.type === 'opened') console.log('open');
    }),
  );

  local?.account.revokeAccess();
  const untilOpen$ = shown$.pipe(
    tap((event) => {
      if (event.type === 'reconnecting' && event.attempt === 2)
        local?.account.restoreAccess();
    }),
    takeWhile((event) => event.type !== 'opened'),
  );
  await lastValueFrom(untilOpen$);

  if (local === undefined) return;
  local.service.failCredentials(true);
  await lastValueFrom(shown$).catch((failure) =>
    console.log(`gave up: ${failure.code}, last ${failure.cause.code}`),
  );
});
