// Tries features of the package in the runtime that runs this file. Arguments: a certificate as JSON, and the features. Prints `works` for each, and
// ends with 1 if one does not.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defer, filter, firstValueFrom, lastValueFrom, map, take, timeout, toArray } from 'rxjs';
import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { feedLog } from 'rx-trade-feed/log';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';

const [, , certificate, ...names] = process.argv;
const tls = JSON.parse(certificate);
const limitMs = 60_000;

/** Runs `use` with a local service that sends a frame on each connection, and expires the access of the first. */
const withService = async (use, settings) => {
  const service = await startTradeFeedService(settings);
  const account = service.createAccount({ plan: 'developer' });
  service.events$.pipe(filter(({ type }) => type === 'handshake-accepted')).subscribe(({ connection }) =>
    setTimeout(() => {
      service.push('market', `frame of ${connection}`);
      if (connection === 1) account.expireAccess();
    }, 20),
  );
  try {
    return await use({ baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: { initialDelayMs: 10 } });
  } finally {
    await service.shutdown();
  }
};

/** Returns whether a feed delivers a frame, a gap, and a frame of the next connection. */
const hasGap = (events$) =>
  firstValueFrom(
    events$.pipe(
      filter(({ type }) => type === 'frame' || type === 'gap'),
      map((event) => (event.type === 'gap' ? 'gap' : event.text())),
      take(3),
      toArray(),
      map((events) => events.join(', ') === 'frame of 1, gap, frame of 2'),
    ),
  );

const features = {
  'the feed, with a reconnect': () => withService((options) => hasGap(tradeFeedEvents$('market', options))),
  'over TLS, with a private CA': () =>
    withService((options) => hasGap(tradeFeedEvents$('market', { ...options, tls: { ca: tls.cert } })), { tls }),
  'in a worker thread': () =>
    withService((options) => hasGap(tradeFeedEvents$('market', { ...options, receiveIn: 'worker' }))),
  'a log on disk': async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-runtime-'));
    const log = feedLog(join(folder, 'market'));
    try {
      await withService((options) =>
        lastValueFrom(tradeFeedEvents$('market', options).pipe(log.append(), frames(), take(2))),
      );
      return await hasGap(log.read$({ follow: false }));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  'a relay and its client': () =>
    withService(async (options) => {
      const relay = createRelay(tradeFeedEvents$('market', options));
      const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        return await hasGap(relayFeed$(`http://127.0.0.1:${server.address().port}/feed`));
      } finally {
        relay.close();
        server.close();
        server.closeAllConnections();
      }
    }),
  'require()': () => typeof createRequire(import.meta.url)('rx-trade-feed').tradeFeed$ === 'function',
};

for (const name of names) {
  const works = await firstValueFrom(defer(async () => features[name]()).pipe(timeout(limitMs)));
  console.log(`${name}: ${works ? 'works' : 'returned something else'}`);
  if (!works) process.exit(1);
}
// A runtime that leaves a handle open would never exit.
process.exit(0);
