// Transactions of an Ethereum node arrive through the whole contract: a local service sends them, and a feed receives them with a ticket.
// The contract shows no payload format: these payloads are those of the node, and the real service may send others. Ctrl-C ends it.
//
//   npm run demo:chain                                       with Anvil, a node for development: the first run installs it (43 MB)
//   node examples/real-chain/run.mjs ws://127.0.0.1:8545     with your node
//   npm run demo:chain -- --count 5                          ends after 5 transactions
import { parseArgs } from 'node:util';
import {
  concatMap,
  filter,
  fromEvent,
  lastValueFrom,
  map,
  merge,
  share,
  switchMap,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { installAnvil, isAnvilInstalled, startAnvil } from './anvil.mjs';
import { nodeTransactions$, sourcesOf } from './node-transactions.mjs';

const { values, positionals } = parseArgs({ options: { count: { type: 'string' } }, allowPositionals: true });
const count = Number(values.count ?? Infinity);
const [url] = positionals;
const everyMs = 500;

/** @param {string} wei */
const ether = (wei) => `${Number(BigInt(wei) / 10n ** 14n) / 10_000} ETH`;
/** @param {string | null} hex */
const short = (hex) => `${hex?.slice(0, 10)}…`;

/**
 * Sends transactions between the accounts of Anvil, one after the other.
 *
 * @param {import('./anvil.mjs').Anvil} node
 */
const sending$ = (node) =>
  timer(0, everyMs).pipe(
    concatMap(async (index) => {
      /** @type {string[]} */
      const accounts = await node.call('eth_accounts');
      const [from, to] = [0, 1].map((next) => accounts[(index + next) % accounts.length]);
      return node.call('eth_sendTransaction', {
        from,
        to,
        value: `0x${(BigInt(index + 1) * 10n ** 15n).toString(16)}`,
      });
    }),
  );

if (url === undefined && !isAnvilInstalled()) console.log('Installing Anvil from npm into temp/anvil (43 MB) …');
if (url === undefined) installAnvil();
const anvil = url === undefined ? await startAnvil() : undefined;
const transactions$ = nodeTransactions$(url ?? String(anvil?.url), (text) => console.log(text));
const service = await startTradeFeedService({ sources: sourcesOf(transactions$) });
try {
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  console.log('The contract shows no payload format: these payloads are those of the node. Ctrl-C ends it.\n');
  const events$ = tradeFeedEvents$('raw', { baseUrl: service.baseUrl, apiKey }).pipe(share());
  const sent$ = events$.pipe(
    filter(({ type }) => type === 'opened'),
    switchMap(() => (anvil ? sending$(anvil) : [])),
    filter(() => false),
  );
  const shown$ = events$.pipe(
    frames(),
    map((frame) => /** @type {Record<'hash' | 'from' | 'to' | 'value', string>} */ (frame.json())),
    tap(({ hash, from, to, value }) => {
      console.log(`${short(hash)}  ${short(from)} sends ${ether(value)} to ${short(to)}`);
    }),
    take(count),
  );
  await lastValueFrom(merge(shown$, sent$).pipe(take(count), takeUntil(fromEvent(process, 'SIGINT'))), {
    defaultValue: undefined,
  });
} finally {
  await service.shutdown();
  await anvil?.close();
}
