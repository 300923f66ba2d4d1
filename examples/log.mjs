// @ts-check
// Keeps a feed with an outage in a log. Reads it again into the same pipeline,
// with an equal result, so you can test a pipeline with yesterday's stream.
// Then a consumer stops after some records, and the next run of it goes on
// there.
//
//   node examples/log.mjs
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, reduce, take, tap } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { feedLog } from 'rx-trade-feed/log';
import { withService } from './support/with-service.mjs';

/** The pipeline, the same for live events and for those of a log. */
const summary = reduce(
  (
    /** @type {{ frames: number, bytes: number, gaps: number }} */ sums,
    /** @type {import('rx-trade-feed').FeedEvent} */ event,
  ) => {
    if (event.type === 'frame')
      return {
        ...sums,
        frames: sums.frames + 1,
        bytes: sums.bytes + event.data.length,
      };
    return event.type === 'gap' ? { ...sums, gaps: sums.gaps + 1 } : sums;
  },
  { frames: 0, bytes: 0, gaps: 0 },
);

const folder = await mkdtemp(join(tmpdir(), 'log-'));
const log = feedLog(join(folder, 'market'));

await withService(async (options, local) => {
  let frames = 0;
  const appended$ = tradeFeedEvents$('market', {
    ...options,
    backoff: { initialDelayMs: 50 },
  }).pipe(
    // On the local service, an outage begins after ten frames.
    tap(
      (event) =>
        event.type === 'frame' &&
        ++frames === 10 &&
        local?.account.expireAccess(),
    ),
    take(40),
    log.append(),
  );
  const live = JSON.stringify(await lastValueFrom(appended$.pipe(summary)));
  console.log(`live   ${live}`);
  const again = JSON.stringify(
    await lastValueFrom(log.read$({ follow: false }).pipe(summary)),
  );
  console.log(`again  ${again}`);
  console.log(live === again ? 'the results are equal' : 'the results differ');

  /** @type {number[]} */
  const seen = [];
  const work = async (
    /** @type {readonly import('rx-trade-feed/log').LogRecord[]} */ records,
  ) => {
    for (const record of records)
      if ('offset' in record && record.offset !== undefined)
        seen.push(record.offset);
  };
  const consume = () => log.consume$('example', work, { maxBatch: 15 });
  const { committed } = await lastValueFrom(consume().pipe(take(1)));
  console.log(`the consumer stops at ${committed}`);
  await lastValueFrom(consume().pipe(take(1)));
  const [next] = seen.filter((offset) => offset >= committed);
  console.log(`the next one goes on at ${next}`);
});
await rm(folder, { recursive: true });
