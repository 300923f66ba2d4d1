// @ts-check
// Counts frames in windows of half a second, and does not trust a window that a gap reaches into: the service replays nothing, so
// such a window counts too little. The gap comes in its place among the frames, as an event of `tradeFeedEvents$`.
//
//   node examples/window.mjs
import { bufferTime, filter, lastValueFrom, map, take, tap } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { withService } from './support/with-service.mjs';

const windowMs = 500;

/** @param {import('rx-trade-feed').FeedEvent[]} events what came within a window */
const summary = (events) => ({
  frames: events.filter((event) => event.type === 'frame').length,
  outages: events.filter((event) => event.type === 'disconnected' || event.type === 'gap').length,
});

await withService(async (options, local) => {
  let windows = 0;
  const windows$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 100 } }).pipe(
    bufferTime(windowMs),
    map(summary),
    filter(({ frames, outages }) => frames + outages > 0),
    tap(({ frames, outages }) => {
      windows += 1;
      console.log(`window ${windows}: ${frames} frames${outages > 0 ? ', incomplete: frames may be missing' : ''}`);
      // With the local service: an outage in the second window.
      if (windows === 1) local?.account.expireAccess();
    }),
    take(4),
  );
  await lastValueFrom(windows$);
});
