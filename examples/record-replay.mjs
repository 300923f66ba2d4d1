// @ts-check
// Records a feed with an outage, then replays the recording as fast as possible into the same pipeline. The results are equal, so you can test a
// pipeline with yesterday's stream.
//
//   node examples/record-replay.mjs
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, reduce, take, tap } from 'rxjs';
import { recordTo, replay$, tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

/** The pipeline, the same for live and for recorded events. */
const summary = reduce(
  (
    /** @type {{ frames: number, bytes: number, gaps: number }} */ sums,
    /** @type {import('rx-trade-feed').FeedEvent} */ event,
  ) => {
    if (event.type === 'frame') return { ...sums, frames: sums.frames + 1, bytes: sums.bytes + event.data.length };
    return event.type === 'gap' ? { ...sums, gaps: sums.gaps + 1 } : sums;
  },
  { frames: 0, bytes: 0, gaps: 0 },
);

const folder = await mkdtemp(join(tmpdir(), 'recording-'));
const file = join(folder, 'market.ndjson');

await withService(async (options, local) => {
  let frames = 0;
  const recorded$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 50 } }).pipe(
    // On the local service, an outage begins after ten frames.
    tap((event) => event.type === 'frame' && ++frames === 10 && local?.account.expireAccess()),
    take(40),
    recordTo(file),
  );
  const live = JSON.stringify(await lastValueFrom(recorded$.pipe(summary)));
  console.log(`live      ${live}`);

  const startedAt = performance.now();
  const again = JSON.stringify(await lastValueFrom(replay$(file, { speed: Infinity }).pipe(summary)));
  console.log(`replayed  ${again} in ${Math.ceil(performance.now() - startedAt)} ms`);
  console.log(live === again ? 'the results are equal' : 'the results differ');
});
await rm(folder, { recursive: true });
