// @ts-check
// Gives an example the service that it talks to: the one of TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY when they are set,
// else a local one with an account of its own, which is shut down at the end.
import { marketBatches$, pendingTransactions$, startTradeFeedService } from 'rx-trade-feed/testing';

/**
 * @typedef {object} Local what an example can do to the local service, to show an outage
 * @property {import('rx-trade-feed/testing').TradeFeedService} service
 * @property {import('rx-trade-feed/testing').TradeFeedAccount} account
 */

/**
 * @param {(options: import('rx-trade-feed').TradeFeedOptions, local?: Local) => Promise<void>} example
 * @param {import('rx-trade-feed/testing').ServiceSources} [sources] what the local service delivers
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
