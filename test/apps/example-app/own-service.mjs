// A service of the test's own behind the app: what it saw is known, and so is every secret.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

/** Starts a service with a source of payloads, and an endpoint before it that keeps the tickets. */
export const startOwnService = async ({ folder }, { source } = {}) => {
  const { startTradeFeedService, marketBatches$ } = await import(
    pathToFileURL(join(folder, 'node_modules/rx-trade-feed/dist/testing/index.js')).href
  );
  const market = source ?? marketBatches$({ rate: 200 });
  const service = await startTradeFeedService({ sources: { market }, limits: { ticketsPerWindow: 1_000 } });
  const account = service.createAccount({ plan: 'developer' });
  const apiKey = account.createApiKey();
  const events = [];
  service.events$.subscribe((event) => events.push(event));
  const tickets = [];

  const endpoint = createServer((request, response) => {
    const headers = { 'X-API-Key': request.headers['x-api-key'], 'Content-Type': 'application/json' };
    void (async () => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const answer = await fetch(`${service.baseUrl}${request.url}`, { method: 'POST', headers, body });
      const text = await answer.text();
      if (answer.ok) tickets.push(JSON.parse(text).ticket);
      response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text);
    })().catch(() => response.destroy()); // The service is being stopped.
  });
  endpoint.listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  return {
    service,
    account,
    /** What the app is told by its environment. */
    variables: { TRADE_FEED_BASE_URL: `http://127.0.0.1:${endpoint.address().port}`, TRADE_FEED_API_KEY: apiKey },
    secrets: () => [apiKey, ...tickets],
    /** How many connections the service has opened. */
    handshakes: () => events.filter(({ type }) => type === 'handshake-accepted').length,
    async stop() {
      endpoint.closeAllConnections();
      endpoint.close();
      await service.shutdown();
    },
  };
};
