// @ts-check
// The service of the soak, in a process of its own: numbered batches at a rate, and an outage when the parent says so.
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';

const rate = Number(process.argv[2]);
const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate, batchSize: 1 }) } });
const account = service.createAccount({ plan: 'developer' });

process.on('message', (command) => {
  if (command === 'outage') {
    service.failCredentials(true);
    account.expireAccess();
  } else service.failCredentials(false);
});
process.once('disconnect', () => void service.shutdown());
process.send?.({ baseUrl: service.baseUrl, apiKey: account.createApiKey() });
