// One receiver, in a process of its own: windows of three lengths over one shared feed, and the count outside of them.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, finalize, ignoreElements, lastValueFrom, merge, share, takeUntil, tap, timer, endWith } from 'rxjs';
import { recordTo, replay$, tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { outsideCount } from './outside-count.mjs';

const { mode, baseUrl, apiKey, url, seconds, lengths, blockMs } = JSON.parse(process.argv[2] ?? '{}');
const feed = (options) => tradeFeedEvents$('market', { baseUrl, apiKey, ...options });

/** Blocks this thread now and then, as a page does that draws. */
const blocks = () => {
  if (blockMs === 0) return () => undefined;
  let handle;
  const again = () => {
    handle = setTimeout(
      () => {
        const until = performance.now() + blockMs;
        while (performance.now() < until);
        again();
      },
      50 + Math.random() * 200,
    );
  };
  again();
  return () => clearTimeout(handle);
};

const watched = async (events$) => {
  const counts = lengths.map((lengthMs) => outsideCount(lengthMs));
  const shared$ = events$.pipe(
    tap((event) => {
      if (event.type === 'frame') for (const count of counts) count.frame(event.receivedAt);
    }),
    share(),
  );
  const windows = counts.map((count) =>
    shared$.pipe(
      tumblingWindow({ lengthMs: count.lengthMs, seed: () => 0, add: (sum) => sum + 1 }),
      tap((window) => count.window(window)),
    ),
  );
  await lastValueFrom(merge(...windows).pipe(ignoreElements(), endWith(undefined)));
  return counts.map((count) => count.result());
};

const forAWhile = (events$) => defer(() => events$.pipe(takeUntil(timer(seconds * 1_000)), finalize(blocks())));

const modes = {
  direct: () => watched(forAWhile(feed())),
  worker: () => watched(forAWhile(feed({ receiveIn: 'worker' }))),
  relay: () => watched(forAWhile(relayFeed$(url))),
  'relay of a worker': () => watched(forAWhile(relayFeed$(url))),
  replay: async () => {
    const path = join(tmpdir(), `windows-${process.pid}.ndjson`);
    try {
      await lastValueFrom(forAWhile(feed()).pipe(recordTo(path), ignoreElements(), endWith(undefined)));
      return await watched(replay$(path, { speed: Infinity }));
    } finally {
      rmSync(path, { force: true });
    }
  },
};

if (mode === 'serve') {
  // Two relays in one process: one of a feed that is received here, one of a worker's.
  const relays = { here: createRelay(feed()), worker: createRelay(feed({ apiKey: url, receiveIn: 'worker' })) };
  const handlers = Object.fromEntries(
    Object.entries(relays).map(([name, relay]) => [`/${name}`, relayHandler(relay, { authorize: () => true })]),
  );
  const server = createServer((request, response) => handlers[request.url]?.(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send?.({ port: server.address().port });
  process.on('message', () => process.exit());
} else process.send?.(await modes[mode]());
process.on('disconnect', () => process.exit());
if (mode !== 'serve') process.disconnect?.();
