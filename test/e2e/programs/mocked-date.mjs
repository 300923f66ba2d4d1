// Runs the local service and a client with a Date that node:test mocks, and prints the events of the client. Argument: epoch ms.
import { mock } from 'node:test';
import { filter, map, take } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';

mock.timers.enable({ apis: ['Date'], now: Number(process.argv[2]) });

const service = await startTradeFeedService();
const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
service.events$.pipe(filter(({ type }) => type === 'handshake-accepted')).subscribe(() => service.push('market', 'hi'));

const response = await fetch(`${service.baseUrl}/v1/wss/tickets`, { method: 'POST', headers: { 'X-API-Key': apiKey } });
const { expires_at: expiresAt } = await response.json();
console.log(expiresAt, Date.parse(expiresAt) - Date.parse(response.headers.get('date')));

tradeFeedEvents$('market', { baseUrl: service.baseUrl, apiKey })
  .pipe(
    map((event) => (event.type === 'frame' ? event.text() : event.type)),
    take(4),
  )
  .subscribe({ next: (line) => console.log(line), complete: () => void service.shutdown() });
