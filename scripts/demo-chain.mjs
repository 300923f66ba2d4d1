// Shows transactions of a real Ethereum node that arrive through the whole contract: Anvil, `serve --upstream`, a ticket, and `tradeFeedEvents$`.
// The contract shows no payload format: these payloads are those of the node. Ctrl-C ends it.
//
//   npm run demo:chain                 installs Anvil (43 MB) into temp at the first run
//   npm run demo:chain -- --count 5    ends after 5 transactions
import { parseArgs } from 'node:util';
import { concatMap, filter, fromEvent, lastValueFrom, map, share, switchMap, take, takeUntil, tap, timer } from 'rxjs';
import { frames, tradeFeedEvents$ } from '../dist/index.js';
import { installAnvil, isAnvilInstalled, startAnvil } from './anvil.mjs';
import { serveUpstream } from './serve-upstream.mjs';

const { values } = parseArgs({ options: { count: { type: 'string' } } });
const count = Number(values.count ?? Infinity);
const everyMs = 500;

const ether = (wei) => `${Number(BigInt(wei) / 10n ** 14n) / 10_000} ETH`;
const short = (hex) => `${hex.slice(0, 10)}…`;

const show = async (node, { options }) => {
  const accounts = await node.call('eth_accounts');
  // By value, because a transaction may arrive before the node has answered with its hash.
  const sentAt = new Map();
  const send = (index) => {
    const [from, to] = [0, 1].map((next) => accounts[(index + next) % accounts.length]);
    const value = `0x${(BigInt(index + 1) * 10n ** 15n).toString(16)}`;
    sentAt.set(value, performance.now());
    return node.call('eth_sendTransaction', { from, to, value });
  };
  const print = ({ hash, from, to, value }) => {
    const afterMs = performance.now() - sentAt.get(value);
    console.log(
      `${short(hash)}  ${short(from)} sends ${ether(value)} to ${short(to)}, ${afterMs.toFixed(0)} ms after it was sent`,
    );
  };
  const events$ = tradeFeedEvents$('raw', options).pipe(share());
  const shown$ = events$.pipe(
    frames(),
    map((frame) => frame.json()),
    tap(print),
    take(count),
    takeUntil(fromEvent(process, 'SIGINT')),
  );
  const sent$ = events$.pipe(
    filter(({ type }) => type === 'opened'),
    switchMap(() => timer(0, everyMs)),
    concatMap(send),
  );
  const shown = lastValueFrom(shown$, { defaultValue: undefined });
  const sending = sent$.subscribe();
  await shown.finally(() => sending.unsubscribe());
};

if (!isAnvilInstalled()) console.log('Installing Anvil from npm into temp/anvil (43 MB) …');
installAnvil();
const node = await startAnvil();
try {
  const service = await serveUpstream(node.url);
  try {
    await service.until(/sends transactions/);
    console.log(`Anvil runs at ${node.url}. A local service at ${service.options.baseUrl} sends its transactions.`);
    console.log('The contract shows no payload format: these payloads are those of the node. Ctrl-C ends it.\n');
    await show(node, service);
  } finally {
    await service.close();
  }
} finally {
  await node.close();
}
