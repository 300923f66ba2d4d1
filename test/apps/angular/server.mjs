// The app's server, run in the app's folder. Serves the built page and a relay of the local service, and does what its
// parent process orders.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { filter, firstValueFrom, interval, map, mergeMap, range } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { startTradeFeedService } from 'rx-trade-feed/testing';

const [page] = process.argv.slice(2);
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.ico': 'image/x-icon' };

let n = 0;
const fiveThousandASecond$ = interval(10).pipe(
  mergeMap(() => range(50)),
  map(() => `{"n":${(n += 1)}}`),
);
const service = await startTradeFeedService({ sources: { market: fiveThousandASecond$ } });
const account = service.createAccount({ plan: 'developer' });
const feed$ = () => tradeFeedEvents$('market', { baseUrl: service.baseUrl, apiKey: account.createApiKey() });
const relay = createRelay(feed$());
const handler = relayHandler(relay, { authorize: () => true });
const resumes = [];

const server = createServer((request, response) => {
  if (request.url === '/feed') {
    resumes.push(request.headers['last-event-id'] ?? 'new');
    handler(request, response);
    return;
  }
  const path = request.url === '/' ? '/index.html' : request.url;
  readFile(join(page, path)).then(
    (bytes) => response.writeHead(200, { 'content-type': types[extname(path)] }).end(bytes),
    () => response.writeHead(404).end(),
  );
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

// The parent sends one order at a time.
const orders = {
  'begin outage': () => {
    service.failCredentials(true);
    account.expireAccess();
  },
  'end outage': () => service.failCredentials(false),
  'take over': async () => {
    const stopped = firstValueFrom(relay.events$.pipe(filter(({ type }) => type === 'source-stopped')));
    await firstValueFrom(feed$().pipe(filter(({ type }) => type === 'opened')));
    await stopped;
  },
  report: () => ({ resumes, clients: relay.status().clients.length }),
};
process.on('message', async ({ order }) => process.send({ answer: await orders[order]() }));
process.on('disconnect', () => process.exit());
process.send({ port: server.address().port });
