// @ts-check
// Tests a pipeline in two ways: alone, with created frames and without I/O; and end to end, with the local service, where the test controls the
// moment of an outage.
//
//   node --test examples/test-your-app/trade-counter.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filter, from, lastValueFrom, take } from 'rxjs';
import { Frame, tradeFeed$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { tradeCounter } from './trade-counter.mjs';

/** @typedef {import('rx-trade-feed/testing').TradeFeedService} TradeFeedService */
/** @typedef {import('rx-trade-feed/testing').TradeFeedAccount} TradeFeedAccount */

/** @param {readonly string[]} markets */
const batch = (...markets) => JSON.stringify({ trades: markets.map((market) => ({ market })) });

test('counts the trades of each market', async () => {
  const frames = [batch('ETH-USD', 'BTC-USD'), batch('ETH-USD')].map(
    (text) => new Frame('market', Buffer.from(text), false, 0, 1),
  );
  assert.deepEqual(await lastValueFrom(from(frames).pipe(tradeCounter())), { 'ETH-USD': 2, 'BTC-USD': 1 });
});

/** @type {Record<string, (service: TradeFeedService, account: TradeFeedAccount) => unknown>} */
const outages = {
  'the access expired': (_, account) => account.expireAccess(),
  'the network broke': (service) => service.dropConnections(),
  'the service restarted': (service) => service.restart(),
};
for (const [what, cause] of Object.entries(outages)) {
  test(`continues to count after ${what}`, async (t) => {
    const service = await startTradeFeedService();
    t.after(() => service.shutdown());
    const account = service.createAccount({ plan: 'developer' });
    service.events$.pipe(filter((event) => event.type === 'handshake-accepted')).subscribe(({ connection }) => {
      service.push('market', batch('ETH-USD'));
      if (connection === 1) cause(service, account);
    });

    const options = { baseUrl: service.baseUrl, apiKey: account.createApiKey(), backoff: { initialDelayMs: 10 } };
    const counts$ = tradeFeed$('market', options).pipe(tradeCounter(), take(2));
    assert.deepEqual(await lastValueFrom(counts$), { 'ETH-USD': 2 });
  });
}

test('ends with the failure when the account has no access', async (t) => {
  const service = await startTradeFeedService();
  t.after(() => service.shutdown());
  const apiKey = service.createAccount({ entitled: false }).createApiKey();

  const counts$ = tradeFeed$('market', { baseUrl: service.baseUrl, apiKey }).pipe(tradeCounter());
  await assert.rejects(lastValueFrom(counts$), { code: 'not-entitled', verdict: 'stop' });
});
