// `examples/real-chain` with a real Ethereum node: Anvil, from npm.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { lastValueFrom, take, tap, toArray } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { frames } from 'rx-trade-feed/operators';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { installAnvil, startAnvil } from '../../examples/real-chain/anvil.mjs';
import { nodeTransactions$, sourcesOf } from '../../examples/real-chain/node-transactions.mjs';
import { waitUntil } from '../apps/support.mjs';
import { freePort } from './program.mjs';

installAnvil();

/** Sends transactions between the node's accounts once the feed is open. Resolves with the feed's frames as JSON, and the hashes. */
const exchange = async (node, feed, options, { transactions, frames: count }) => {
  const accounts = await node.call('eth_accounts');
  let sent = Promise.resolve([]);
  // Each account sends one, because the node numbers an account's transactions.
  const send = (from) =>
    node.call('eth_sendTransaction', { from, to: accounts.at(-1), value: '0x1', data: '0xc0ffee' });
  const payloads = await lastValueFrom(
    tradeFeedEvents$(feed, options).pipe(
      tap(({ type }) => {
        if (type === 'opened') sent = Promise.all(accounts.slice(0, transactions).map(send));
      }),
      frames(),
      take(count),
      toArray(),
    ),
  );
  return { payloads: payloads.map((frame) => frame.json()), hashes: await sent };
};

/** Starts a service that sends a node's transactions. `until` resolves when the log matches. */
const serve = async (url) => {
  let text = '';
  const log = (line) => (text += `${line}\n`);
  const service = await startTradeFeedService({ sources: sourcesOf(nodeTransactions$(url, log)) });
  const until = (pattern) => waitUntil(() => pattern.test(text), String(pattern));
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return { options: { baseUrl: service.baseUrl, apiKey }, until, close: () => service.shutdown() };
};

test('Anvil', async (t) => {
  // A second node uses the same port later.
  const port = await freePort();
  const first = await startAnvil({ port });
  t.after(() => first.close());
  const service = await serve(first.url);
  t.after(() => service.close());
  await service.until(/sends transactions/);

  const sent = new Set();

  await t.test('sends its pending transactions to raw, with all their fields', async () => {
    const { payloads, hashes } = await exchange(first, 'raw', service.options, { transactions: 3, frames: 3 });
    assert.deepEqual(payloads.map(({ hash }) => hash).sort(), [...hashes].sort());
    for (const hash of hashes) sent.add(hash);
    for (const payload of payloads) {
      const { from, to, value, nonce, input } = await first.call('eth_getTransactionByHash', payload.hash);
      assert.deepEqual(
        { from: payload.from, to: payload.to, value: payload.value, nonce: payload.nonce, input: payload.input },
        { from, to, value, nonce, input },
      );
    }
  });

  await t.test('sends batches of them to market', async () => {
    const { payloads, hashes } = await exchange(first, 'market', service.options, { transactions: 3, frames: 1 });
    const [{ batch, transactions }] = payloads;
    assert.ok(batch >= 1);
    assert.ok(transactions.length >= 1);
    // The first batch may include the last transactions of the previous test.
    for (const hash of hashes) sent.add(hash);
    for (const { hash } of transactions) assert.ok(sent.has(hash));
  });

  await t.test('sends transactions again after a restart of the node', async (t) => {
    await first.close();
    await service.until(/no connection to the node.*connecting again in/);
    const second = await startAnvil({ port });
    t.after(() => second.close());
    await service.until(/sends transactions[^]*sends transactions/);
    const { payloads, hashes } = await exchange(second, 'raw', service.options, { transactions: 1, frames: 1 });
    assert.deepEqual(
      payloads.map(({ hash }) => hash),
      hashes,
    );
  });
});

test('npm run demo:chain', async () => {
  const args = ['examples/real-chain/run.mjs', '--count', '3'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  assert.match(stdout, /the contract shows no payload format/i);
  assert.equal(stdout.match(/^0x[0-9a-f]{8}… {2}0x[0-9a-f]{8}… sends 0\.00\d ETH to 0x\S+$/gm).length, 3);
});
