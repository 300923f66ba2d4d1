// One receiver, in a separate process: windows of three lengths over one shared feed, and the separate count.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, finalize, ignoreElements, lastValueFrom, merge, share, takeUntil, tap, timer, endWith } from 'rxjs';
import { tradeFeedEvents$, tumblingWindow } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { feedLog } from 'rx-trade-feed/log';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { separateCount } from './separate-count.mjs';

const { mode, baseUrl, apiKey, url, seconds, lengths, blockMs } = JSON.parse(process.argv[2] ?? '{}');
const feed = (options) => tradeFeedEvents$('market', { baseUrl, apiKey, ...options });

/** Blocks this thread now and then, as a page does while it draws. Returns a function that ends this. */
const blockNowAndThen = () => {
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

const compare = async (events$) => {
  const counts = lengths.map((lengthMs) => separateCount(lengthMs));
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

const limited = (events$) => defer(() => events$.pipe(takeUntil(timer(seconds * 1_000)), finalize(blockNowAndThen())));

const modes = {
  direct: () => compare(limited(feed())),
  worker: () => compare(limited(feed({ receiveIn: 'worker' }))),
  relay: () => compare(limited(relayFeed$(url))),
  'relay of a worker': () => compare(limited(relayFeed$(url))),
  replay: async () => {
    const path = join(tmpdir(), `windows-${process.pid}`);
    const log = feedLog(path);
    try {
      await lastValueFrom(limited(feed()).pipe(log.append(), ignoreElements(), endWith(undefined)));
      return await compare(log.read$({ follow: false }));
    } finally {
      rmSync(path, { force: true, recursive: true });
    }
  },
};

if (mode === 'serve') {
  // Two relays in one process: one receives on this thread, the other one in a worker.
  const relays = { main: createRelay(feed()), worker: createRelay(feed({ apiKey: url, receiveIn: 'worker' })) };
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
