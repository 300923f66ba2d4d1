// What became of the transactions of a local chain: a panel with outcomes, coverage and leads. Ctrl-C ends it.
//
//   npm run build && node examples/outcomes/run.mjs      the first run installs Anvil, an Ethereum node (43 MB)
//   node examples/outcomes/run.mjs --seconds 10          ends after 10 s
import { parseArgs } from 'node:util';
import {
  concatMap,
  filter,
  fromEvent,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  scan,
  switchMap,
  takeUntil,
} from 'rxjs';
import { sampleTime, shareReplay, tap, timer } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { coverage, leadAt, outcomeStats, settle } from 'rx-trade-feed/settle';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { installAnvil, startAnvil } from '../real-chain/anvil.mjs';
import { nodeTransactions$, sourcesOf } from '../real-chain/node-transactions.mjs';
import { nodeLedger$, transactionKeys } from './node-ledger.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string' } } });
const seconds = Number(values.seconds ?? Infinity);

/**
 * Sends transactions between the accounts of the node. Some fail, some are replaced by one with a higher price, some are dropped, and some blocks are
 * taken back. Mines between two transactions, because a transaction that is in a block can't be replaced.
 *
 * @param {import('../real-chain/anvil.mjs').Anvil} node
 */
const sending$ = (node) =>
  timer(0, 150).pipe(
    concatMap(async (index) => {
      /** @type {string[]} */
      const accounts = await node.call('eth_accounts');
      const [from, to] = [0, 1].map((next) => accounts[(index + next) % accounts.length]);
      const gwei = (/** @type {bigint} */ price) => `0x${(price * 10n ** 9n).toString(16)}`;
      const send = (/** @type {object} */ more) =>
        node.call('eth_sendTransaction', { from, to, value: '0x1', ...more });
      const nonce = await node.call('eth_getTransactionCount', from, 'pending');
      const hash = await send({ nonce, gasPrice: gwei(10n), ...(index % 5 === 2 && reverting) });
      if (index % 6 === 4) await send({ nonce, gasPrice: gwei(20n) });
      if (index % 10 === 9) await node.call('anvil_dropTransaction', hash);
      if (index % 7 === 6) await node.call('evm_mine');
      if (index % 20 === 19) await node.call('anvil_reorg', 1, []);
    }),
    ignoreElements(),
  );

/** A contract whose constructor reverts. With a limit for its gas, because the node can't estimate it. */
const reverting = { to: undefined, value: '0x0', data: '0x60006000fd', gas: '0x186a0' };

/** @param {number | undefined} share */
const percent = (share) => (share === undefined ? '–' : `${(share * 100).toFixed(1)} %`);
/** @param {number | undefined} ms */
const inMs = (ms) => (ms === undefined ? '–' : `${Math.round(ms)} ms`);

/** @param {import('rx-trade-feed/settle').OutcomeStats} stats */
const panel = (stats) =>
  [
    'What became of it',
    ...['confirmed', 'failed', 'replaced', 'expired', 'reorged', 'unseen', 'unknown'].map(
      (state) =>
        `  ${state.padEnd(10)}${String(stats[/** @type {import('rx-trade-feed/settle').OutcomeState} */ (state)]).padStart(6)}`,
    ),
    `  coverage  ${percent(coverage(stats)).padStart(6)}`,
    `  lead      half ${inMs(leadAt(stats, 0.5))}, 9 of 10 ${inMs(leadAt(stats, 0.9))}`,
  ].join('\n');

installAnvil();
const anvil = await startAnvil();
const transactions$ = nodeTransactions$(anvil.url, (text) => console.log(text));
const service = await startTradeFeedService({ sources: sourcesOf(transactions$) });
try {
  await anvil.call('evm_setAutomine', false);
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const settled$ = tradeFeedEvents$('raw', { baseUrl: service.baseUrl, apiKey }).pipe(
    settle(nodeLedger$(anvil.call), { ...transactionKeys, keep: () => undefined, withinMs: 4_000, graceMs: 500 }),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
  const sent$ = settled$.pipe(
    filter(({ type }) => type === 'opened'),
    switchMap(() => sending$(anvil)),
  );
  const shown$ = settled$.pipe(
    filter((event) => event.type === 'outcome'),
    scan(outcomeStats.add, outcomeStats.seed()),
    sampleTime(1_000),
    map(panel),
    tap((text) => console.log(process.stdout.isTTY ? `\x1b[2J\x1b[H${text}` : text)),
  );
  const end$ = merge(fromEvent(process, 'SIGINT'), ...(seconds < Infinity ? [timer(seconds * 1_000)] : []));
  await lastValueFrom(merge(shown$, sent$).pipe(takeUntil(end$)), { defaultValue: undefined });
} finally {
  await service.shutdown();
  await anvil.close();
}
