// @ts-check
// Records a feed with an outage in it, then replays the recording as fast as possible into the same pipeline: the results are equal, so a
// pipeline can be tested on yesterday's stream.
//
//   node examples/record-replay.mjs
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, reduce, take, tap } from 'rxjs';
import { recordTo, replay$, tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

/** The pipeline: it does not know whether its events are of now or of yesterday. */
const summary = reduce(
  (
    /** @type {{ frames: number, bytes: number, gaps: number }} */ so,
    /** @type {import('rx-trade-feed').FeedEvent} */ event,
  ) => {
    if (event.type === 'frame') return { ...so, frames: so.frames + 1, bytes: so.bytes + event.data.length };
    return event.type === 'gap' ? { ...so, gaps: so.gaps + 1 } : so;
  },
  { frames: 0, bytes: 0, gaps: 0 },
);

const folder = await mkdtemp(join(tmpdir(), 'recording-'));
const file = join(folder, 'market.ndjson');

await withService(async (options, local) => {
  let frames = 0;
  const recorded$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 50 } }).pipe(
    // With the local service: an outage after ten frames.
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
