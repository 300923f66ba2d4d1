// A service that the test controls. The test knows its events and every secret.
import { createServer } from 'node:http';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

/** Starts a service with a source of payloads, and a proxy in front of it that stores the tickets. */
export const startTestService = async ({ folder }, { source } = {}) => {
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

  const proxy = createServer((request, response) => {
    const headers = { 'X-API-Key': request.headers['x-api-key'], 'Content-Type': 'application/json' };
    void (async () => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks);
      const answer = await fetch(`${service.baseUrl}${request.url}`, { method: 'POST', headers, body });
      const text = await answer.text();
      if (answer.ok) tickets.push(JSON.parse(text).ticket);
      response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text);
    })().catch(() => response.destroy()); // The service is stopping.
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    service,
    account,
    /** The environment of the app. */
    variables: { TRADE_FEED_BASE_URL: `http://127.0.0.1:${proxy.address().port}`, TRADE_FEED_API_KEY: apiKey },
    secrets: () => [apiKey, ...tickets],
    /** Returns how many connections the service has opened. */
    handshakes: () => events.filter(({ type }) => type === 'handshake-accepted').length,
    async stop() {
      proxy.closeAllConnections();
      proxy.close();
      await service.shutdown();
    },
  };
};
