// What the application does with its transactions. Both versions of it call these functions.

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
