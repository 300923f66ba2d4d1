import { exhaustMap, filter, retry, timer } from 'rxjs';
import { ledger } from 'rx-trade-feed/settle';

/**
 * A block of a node with its receipts, as JSON-RPC has them. The status of a transaction that was mined and reverted is `0x0`.
 *
 * @typedef {{ hash: string, parentHash: string, number: string, transactions: { hash: string, from: string, nonce: string }[] }} Header
 * @typedef {Header & { receipts: { transactionHash: string, status: string }[] }} Block
 */

/**
 * Follows the blocks of a node through reorganizations and outages.
 *
 * @param {(method: string, ...params: unknown[]) => Promise<any>} call - calls a JSON-RPC method
 */
export const nodeLedger$ = (call) => {
  /** @type {Block | undefined} */
  let newest;
  /**
   * @param {Header | null} header
   * @returns {Promise<Block | undefined>}
   */
  const withReceipts = async (header) => {
    if (header === null) return undefined;
    if (header.hash === newest?.hash) return newest;
    // By hash, so that they are those of this block. The node has none if it has just taken the block back.
    const receipts = await call('eth_getBlockReceipts', header.hash);
    return receipts === null ? undefined : { ...header, receipts };
  };
  const latest = async () => (newest = await withReceipts(await call('eth_getBlockByNumber', 'latest', true)));
  return timer(0, 100).pipe(
    exhaustMap(latest),
    retry({ delay: 250 }),
    filter((block) => block !== undefined),
    ledger({
      id: (block) => block.hash,
      parent: (block) => block.parentHash,
      height: (block) => Number(block.number),
      fetchParent: async (block) => withReceipts(await call('eth_getBlockByHash', block.parentHash, true)),
      entries: ({ transactions, receipts }) => {
        const failed = new Set(receipts.filter(({ status }) => status === '0x0').map((each) => each.transactionHash));
        return transactions.map(({ hash, from, nonce }) => {
          return { key: hash, slot: `${from}:${nonce}`, failed: failed.has(hash) || undefined };
        });
      },
    }),
  );
};

/**
 * What `settle` needs for the transactions of a node: a trade can be replaced by another one with its sender and nonce.
 *
 * @param {import('rx-trade-feed').Frame} frame
 */
const transactionOf = (frame) => /** @type {{ hash: string, from: string, nonce: string }} */ (frame.json());

export const transactionKeys = {
  /** @param {import('rx-trade-feed').Frame} frame */
  key: (frame) => transactionOf(frame).hash,
  /** @param {import('rx-trade-feed').Frame} frame */
  slot: (frame) => {
    const { from, nonce } = transactionOf(frame);
    return `${from}:${nonce}`;
  },
};
