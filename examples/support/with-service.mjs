// @ts-check
// Runs an example with a service: the one of TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY if they are set, otherwise a local service with a new
// account, which is shut down at the end.
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';

/**
 * @typedef {object} Local the controls of the local service, to show an outage
 * @property {import('rx-trade-feed/testing').TradeFeedService} service
 * @property {import('rx-trade-feed/testing').TradeFeedAccount} account
 */

/**
 * @param {(options: import('rx-trade-feed').TradeFeedOptions, local?: Local) => Promise<void>} example
 * @param {import('rx-trade-feed/testing').ServiceSources} [sources] the payloads of the local service
 */
export const withService = async (example, sources = { market: marketBatches$(), raw: pendingTransactions$() }) => {
  if (process.env['TRADE_FEED_BASE_URL']) return example({});
  const service = await startTradeFeedService({ sources });
  const account = service.createAccount({ plan: 'developer' });
  try {
    await example({ baseUrl: service.baseUrl, apiKey: account.createApiKey() }, { service, account });
  } finally {
    await service.shutdown();
  }
};
