import { exhaustMap, filter, retry, timer } from 'rxjs';
import { ledger } from 'rx-trade-feed/settle';

/**
 * A block of a node, as JSON-RPC has it.
 *
 * @typedef {{ hash: string, parentHash: string, number: string, transactions: { hash: string, from: string, nonce: string }[] }} Block
 */

/**
 * Follows the blocks of a node through reorganizations and outages.
 *
 * @param {(method: string, ...params: unknown[]) => Promise<any>} call - calls a JSON-RPC method
 */
export const nodeLedger$ = (call) =>
  timer(0, 100).pipe(
    exhaustMap(() => /** @type {Promise<Block | null>} */ (call('eth_getBlockByNumber', 'latest', true))),
    retry({ delay: 250 }),
    filter((block) => block !== null),
    ledger({
      id: (block) => block.hash,
      parent: (block) => block.parentHash,
      height: (block) => Number(block.number),
      fetchParent: (block) => /** @type {Promise<Block | null>} */ (call('eth_getBlockByHash', block.parentHash, true)),
      entries: (block) => block.transactions.map(({ hash, from, nonce }) => ({ key: hash, slot: `${from}:${nonce}` })),
    }),
  );

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
