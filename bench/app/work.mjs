// What the application does with its transactions and trades. Both versions of it call these functions.

/** How many transactions are in a window. */
export const WINDOW = 1_000;

/** Returns the figures of a window. */
export const summaryOf = (transactions) => {
  const senders = new Set();
  let [nonces, gas] = [0, 0];
  for (const transaction of transactions) {
    senders.add(transaction.from);
    nonces += transaction.nonce;
    gas += Number.parseInt(transaction.gas, 16);
  }
  return { transactions: transactions.length, senders: senders.size, nonces, gas };
};

/** Returns whether a transaction is shown at once. */
export const isLarge = ({ value }) => value.length > 2 && value.charCodeAt(2) >= 'f'.charCodeAt(0);

/**
 * The tasks and their payloads. Pending transactions: the app decodes, shares and windows all of them. Batches of trades: it wants those with a
 * trade of one of 500 wallets, or of one wallet.
 */
export const tasks = {
  everything: { sizes: [200, 1_024], kind: 'text' },
  wallets: { sizes: [250, 1_024, 4_096], kind: 'batches' },
  wallet: { sizes: [250, 1_024, 4_096], kind: 'batches' },
};
