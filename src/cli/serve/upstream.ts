import { bufferTime, filter, map, type Observable, retryWhen, share } from 'rxjs';
import { backoff, type Feed, proxyFromEnvironment } from '../../index.js';
import { printable } from '../../protocol/printable.js';
import type { CliContext } from '../context.js';
import { duration } from '../view/units.js';
import { logLine } from '../view/views.js';
import { nodeTransactions$ } from './node-transactions.js';

/** The payloads of both feeds, made of the pending transactions of a node, and their description. */
export interface Upstream {
  readonly sources: Readonly<Record<Feed, Observable<string>>>;
  readonly feeds: Readonly<Record<Feed, string>>;
}

/** A batch of `market` has the transactions of this period, in ms, but no more than {@link maxBatch}. */
const batchMs = 250;
const maxBatch = 100;

/**
 * Creates the payloads of `serve --upstream`. Both feeds share one connection to the node. When it fails, a new one is made after a wait that
 * grows, and stderr shows why. A path in the address may be a secret, so only the host is shown.
 */
export const openUpstream = async (
  url: string,
  { env, stderr }: Pick<CliContext, 'env' | 'stderr'>,
): Promise<Upstream> => {
  const node = `the node at ${new URL(url).host}`;
  const log = (text: string): unknown => stderr.write(logLine(Date.now(), printable(text)));
  const { agent } = await proxyFromEnvironment({ env });
  const transactions$ = nodeTransactions$({ url, agent, onSubscribed: () => log(`${node} sends transactions`) }).pipe(
    retryWhen(
      backoff({}, ({ failure, delayMs }) =>
        log(`no connection to ${node}: ${failure.detail}; connecting again in ${duration(delayMs)}`),
      ),
    ),
    share(),
  );
  return {
    sources: {
      raw: transactions$,
      market: transactions$.pipe(
        bufferTime(batchMs, null, maxBatch),
        filter(({ length }) => length > 0),
        map((batch, index) => `{"batch":${index + 1},"transactions":[${batch.join(',')}]}`),
      ),
    },
    feeds: {
      raw: `pending transactions of ${node}, as it sends them`,
      market: `batches of these transactions, one per ${duration(batchMs)}`,
    },
  };
};
