// @ts-check
// Forwards one feed to three clients with a relay. The connections break, and a client resumes where it was.
//
//   node examples/relay.mjs
import { once } from 'node:events';
import { createServer } from 'node:http';
import { lastValueFrom, map, merge, take, tap, toArray } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { frames } from 'rx-trade-feed/operators';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { withService } from './support/with-service.mjs';

await withService(async (options) => {
  const relay = createRelay(tradeFeedEvents$('market', options));
  // This example accepts every client.
  const server = createServer(relayHandler(relay, { authorize: () => true })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const url = `http://127.0.0.1:${port}/feed`;
  const backoff = { initialDelayMs: 50 };

  let joined = 0;
  relay.events$.subscribe(({ type }) => (joined += Number(type === 'client-joined')));

  const sizes$ = ['one', 'two'].map((name) =>
    relayFeed$(url, { backoff }).pipe(
      frames(),
      take(3),
      map((frame) => frame.data.byteLength),
      toArray(),
      tap((bytes) => console.log(`client ${name}: frames of ${bytes.join(', ')} bytes`)),
    ),
  );
  // After four frames all connections break.
  const numbers$ = relayFeed$(url, { backoff }).pipe(
    tap((event) => {
      if (event.type === 'disconnected') console.log(`client three: ${event.failure.code}`);
      if (event.type === 'gap') console.log('client three: frames are missing');
    }),
    frames(),
    map((frame, index) => ({ index, frame })),
    tap(({ index }) => index === 3 && server.closeAllConnections()),
    take(8),
    toArray(),
    tap((all) => console.log(`client three: ${all.length} frames, over connection ${all[7]?.frame.connection}`)),
  );
  await lastValueFrom(merge(...sizes$, numbers$));
  console.log(`joined the relay: ${joined} times`);
  relay.close();
  server.close();
});
