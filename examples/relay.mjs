// @ts-check
// Forwards one feed to three clients with a relay. The connections break, and a
// client resumes where it was.
//
//   node examples/relay.mjs
import { once } from 'node:events';
import { createServer } from 'node:http';
import {
  filter,
  finalize,
  lastValueFrom,
  map,
  merge,
  take,
  tap,
  toArray,
} from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { relayFeed$ } from 'rx-trade-feed/browser';
import { frames } from 'rx-trade-feed/operators';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { withService } from './support/with-service.mjs';

await withService(async (options) => {
  const relay = createRelay(tradeFeedEvents$('market', options));
  // This example accepts every client.
  const server = createServer(
    relayHandler(relay, { authorize: () => true }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (
    server.address()
  );
  const url = `http://127.0.0.1:${port}/feed`;
  const backoff = { initialDelayMs: 50 };

  let joined = 0;
  relay.events$.subscribe(
    ({ type }) => (joined += Number(type === 'client-joined')),
  );

  let reading = 2;
  const sizes$ = ['one', 'two'].map((name) =>
    relayFeed$(url, { backoff }).pipe(
      frames(),
      take(3),
      map((frame) => frame.data.byteLength),
      toArray(),
      tap((bytes) =>
        console.log(`client ${name}: frames of ${bytes.join(', ')} bytes`),
      ),
      finalize(() => (reading -= 1)),
    ),
  );
  // When the others have left, all connections break. Client three goes on
  // where it was.
  let isBroken = false;
  const numbers$ = relayFeed$(url, { backoff }).pipe(
    tap((event) => {
      if (event.type === 'disconnected')
        console.log(`client three: ${event.failure.code}`);
      if (event.type === 'gap') console.log('client three: frames are missing');
    }),
    frames(),
    tap(() => {
      if (reading > 0 || isBroken) return;
      isBroken = true;
      server.closeAllConnections();
    }),
    filter(() => isBroken),
    take(5),
    toArray(),
    tap(({ length, 4: last }) => {
      const { connection } = last ?? {};
      console.log(
        `client three: ${length} frames, over connection ${connection}`,
      );
    }),
  );
  await lastValueFrom(merge(...sizes$, numbers$));
  console.log(`joined the relay: ${joined} times`);
  relay.close();
  server.close();
});
