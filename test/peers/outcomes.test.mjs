// `settle` and `ledger` with a real Ethereum node (Anvil, from npm), through ticket, service and feed. Reads blocks over
// JSON-RPC with the fields that viem returns, because viem isn't a dependency.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filter, tap } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { settle } from 'rx-trade-feed/settle';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { nodeLedger$, transactionKeys } from '../../examples/outcomes/node-ledger.mjs';
import { installAnvil, startAnvil } from '../../examples/real-chain/anvil.mjs';
import { nodeTransactions$ } from '../../examples/real-chain/node-transactions.mjs';
import { run, start as startProgram, waitUntil } from '../apps/support.mjs';

installAnvil();

/** A contract whose constructor reverts. With a limit for its gas, because the node can't estimate it. */
const reverting = { to: undefined, value: '0x0', data: '0x60006000fd', gas: '0x186a0' };

/** The payload of a transaction that the service does not send. */
const secret = '0xdeadbeef';

/** A chain that mines on request, its service and feed, and the outcomes so far. */
const start = async (t) => {
  const node = await startAnvil();
  await node.call('evm_setAutomine', false);
  let subscribed = () => undefined;
  const isReady = new Promise((done) => (subscribed = done));
  const raw = nodeTransactions$(node.url, subscribed).pipe(filter((text) => !text.includes(secret)));
  const service = await startTradeFeedService({ sources: { raw } });
  await isReady;
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const outcomes = [];
  const shown = new Set();
  const marks = [];
  const link = { isDown: false };
  const call = (...args) => (link.isDown ? Promise.reject(new Error('no node')) : node.call(...args));
  const subscription = tradeFeedEvents$('raw', { baseUrl: service.baseUrl, apiKey })
    .pipe(
      tap((event) => {
        if (event.type === 'frame') shown.add(event.json().hash);
      }),
      settle(nodeLedger$(call), { ...transactionKeys, keep: () => undefined, withinMs: 8_000, graceMs: 500 }),
    )
    .subscribe((event) => {
      if (event.type === 'outcome') outcomes.push(event);
      if (event.type === 'watermark') marks.push(event.at);
    });
  t.after(async () => {
    subscription.unsubscribe();
    await service.shutdown();
    await node.close();
  });
  // Both sides were observed for longer than graceMs.
  await waitUntil(() => marks.at(-1) > marks[0] + 1_000);
  const accounts = await node.call('eth_accounts');
  const usual = { to: accounts[9], value: '0x1', gasPrice: '0x2540be400' };
  const send = (n, more = {}) => node.call('eth_sendTransaction', { from: accounts[n], ...usual, ...more });
  return {
    node,
    link,
    send,
    mine: () => node.call('evm_mine'),
    isShown: (hash) => waitUntil(() => shown.has(hash)),
    outcome: (key, state) => waitUntil(() => outcomes.find((each) => each.key === key && each.state === state)),
    statesOf: (key) => outcomes.filter((each) => each.key === key).map(({ state }) => state),
  };
};

test('the outcomes of transactions of Anvil', async (t) => {
  const { node, link, send, mine, isShown, outcome, statesOf } = await start(t);

  await t.test('confirmed, with its lead', async () => {
    const hash = await send(0);
    await isShown(hash);
    await mine();
    const { leadMs, seenAt, confirmedAt, late } = await outcome(hash, 'confirmed');
    assert.equal(leadMs, confirmedAt - seenAt);
    assert.ok(leadMs >= 0);
    assert.equal(late, undefined);
  });

  await t.test('failed, with its lead, if it is mined and reverts; its rival is replaced', async () => {
    const nonce = await node.call('eth_getTransactionCount', (await node.call('eth_accounts'))[6], 'pending');
    const rival = await send(6, { nonce });
    await isShown(rival);
    const hash = await send(6, { nonce, gasPrice: '0x4a817c800', ...reverting });
    await isShown(hash);
    await mine();
    const { leadMs, seenAt, confirmedAt } = await outcome(hash, 'failed');
    assert.equal(leadMs, confirmedAt - seenAt);
    assert.equal((await outcome(rival, 'replaced')).by, hash);
    assert.deepEqual([statesOf(hash), statesOf(rival)], [['failed'], ['replaced']]);
  });

  await t.test('replaced by one with its nonce and a higher price', async () => {
    const nonce = await node.call('eth_getTransactionCount', (await node.call('eth_accounts'))[1], 'pending');
    const hash = await send(1, { nonce });
    await isShown(hash);
    const other = await send(1, { nonce, gasPrice: '0x4a817c800' });
    await mine();
    assert.equal((await outcome(hash, 'replaced')).by, other);
    await outcome(other, 'confirmed');
  });

  await t.test('expired, if the node drops it', async () => {
    const hash = await send(2);
    await isShown(hash);
    await node.call('anvil_dropTransaction', hash);
    await outcome(hash, 'expired');
  });

  await t.test('unseen, if the service does not send it', async () => {
    const hash = await send(3, { data: secret });
    await mine();
    await outcome(hash, 'unseen');
  });

  for (const [state, account, more] of [
    ['confirmed', 4],
    ['failed', 7, reverting],
  ])
    await t.test(`reorged, if the block in which it was ${state} is taken back`, async () => {
      const hash = await send(account, more);
      await isShown(hash);
      await mine();
      await outcome(hash, state);
      await node.call('anvil_reorg', 1, []);
      await mine();
      await outcome(hash, 'reorged');
      assert.deepEqual(statesOf(hash).slice(0, 2), [state, 'reorged']);
    });

  await t.test('confirmed late, if the node was away when it was mined', async () => {
    link.isDown = true;
    const hash = await send(5);
    await isShown(hash);
    await mine();
    await mine();
    await mine();
    link.isDown = false;
    assert.equal((await outcome(hash, 'confirmed')).late, true);
    assert.deepEqual(statesOf(hash), ['confirmed']);
  });
});

test('the ledger goes on with a chain that begins again, after a gap', async (t) => {
  let node = await startAnvil();
  const { port } = node;
  t.after(() => node.close());
  const events = [];
  const call = (...args) => node.call(...args);
  await call('anvil_mine', '0x64');
  const subscription = nodeLedger$(call).subscribe((event) => events.push(event));
  t.after(() => subscription.unsubscribe());
  const [from, to] = await call('eth_accounts');
  const send = (more = {}) => call('eth_sendTransaction', { from, to, value: '0x1', ...more });
  const stepWith = (hash) =>
    waitUntil(() => events.find((each) => each.type === 'ledger' && each.confirmed.some(({ key }) => key === hash)));
  const old = await send();
  await stepWith(old);
  await node.close();
  node = await startAnvil({ port });
  const began = await waitUntil(() => events.find(({ type }) => type === 'gap'));
  assert.match(began.failure.message, /far below/);
  const doubting = events.find(({ doubted }) => doubted?.length > 0);
  assert.deepEqual(
    doubting.doubted.map(({ key }) => key),
    [old],
  );
  const hash = await send();
  assert.equal((await stepWith(hash)).confirmed[0].failed, undefined);
  const failing = await send(reverting);
  assert.equal((await stepWith(failing)).confirmed[0].failed, true);
});

test('examples/outcomes', async (t) => {
  const program = startProgram(t, process.execPath, ['examples/outcomes/run.mjs']);
  // A busy machine needs longer for the first block.
  await program.printed(
    /What became of it\n {2}confirmed +[1-9]\d*\n {2}failed +[1-9]\d*\n {2}replaced +\d+\n(.*\n){4} {2}coverage +[\d.]+ %\n {2}lead +half \d+ ms/,
  );
  assert.deepEqual([await program.stop('SIGINT'), program.output.stderr], [0, '']);
});

test('npm run demo:chain', async () => {
  const stdout = await run(process.execPath, ['examples/real-chain/run.mjs', '--count', '3']);
  assert.match(stdout, /the contract shows no payload format/i);
  assert.equal(stdout.match(/^0x[0-9a-f]{8}… {2}0x[0-9a-f]{8}… sends 0\.00\d ETH to 0x\S+$/gm).length, 3);
});
