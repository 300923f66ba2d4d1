// The payloads of the senders: pending transactions as JSON of an exact size, the same bytes in every run.

/** The sizes of the goals, in bytes of payload. */
export const sizes = [200, 1024, 4096, 65_536];

/** Returns the label of a size in a table. */
export const sizeLabel = (bytes) => (bytes < 1024 ? `${bytes} B` : `${bytes / 1024} KB`);

// A fixed generator, so that the bytes are the same on every Node version.
const seeded = (seed) => () => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0);
const hexOf = (random, digits) =>
  Array.from({ length: Math.ceil(digits / 4) }, () => ((random() >>> 16) | 0x10000).toString(16).slice(1))
    .join('')
    .slice(0, digits);

const transaction = (random, inputDigits) =>
  `{"hash":"0x${hexOf(random, 16)}","from":"0x${hexOf(random, 40)}","nonce":${random() % 5000},` +
  `"value":"0x${hexOf(random, 10)}","gas":"0x${hexOf(random, 4)}","fee":"0x${hexOf(random, 8)}","input":"0x${hexOf(random, inputDigits)}"}`;

/** Returns one payload: a transaction, or an array of them if `bytes` is large. The last `input` fills the remaining bytes. */
export const payload = (bytes, seed = 1) => {
  const random = seeded(seed);
  const many = [];
  let left = bytes - 2;
  while (bytes > 2048 && left > 2048) {
    const next = transaction(random, 200 + (random() % 600));
    many.push(next);
    left -= next.length + 1;
  }
  const last = transaction(random, 0);
  const space = (many.length > 0 ? left : bytes) - last.length;
  if (space < 0) throw new RangeError(`A transaction does not fit into ${bytes} bytes.`);
  const filled = last.replace('"input":"0x', `"input":"0x${hexOf(random, space)}`);
  return Buffer.from(many.length > 0 ? `[${[...many, filled].join(',')}]` : filled, 'latin1');
};

/** Returns `count` different payloads. */
export const payloads = (bytes, count) => Array.from({ length: count }, (_, n) => payload(bytes, n + 1));

/** Returns a copy with one letter near the end that isn't ASCII. */
export const beyondAscii = (data) => {
  const copy = Buffer.from(data);
  copy.write('é', copy.length - 6);
  return copy;
};

/** 500 addresses: the first one sends one in a thousand of the {@link tradeBatches}. */
export const wallets = Array.from({ length: 500 }, (_, n) => `0x${hexOf(seeded(1_000_000 + n), 40)}`);

const trade = (random, wallet = `0x${hexOf(random, 40)}`) =>
  `{"transaction":"0x${hexOf(random, 64)}","wallet":"${wallet}","market":"${['ETH', 'BTC', 'UNI'][random() % 3]}-USD",` +
  `"side":"${['buy', 'sell'][(random() >>> 16) % 2]}","price":"${((random() >>> 8) / 1e4).toFixed(2)}","amount":"${((random() >>> 12) / 1e4).toFixed(3)}"}`;

/** Returns a batch of as many trades as fit, as `marketBatches$` writes it, with a wallet in each trade. Its `id` fills the rest. */
const tradeBatch = (bytes, seed, wallet) => {
  const random = seeded(seed);
  const textOf = (trades, id) => `{"batch":${seed},"id":"${id}","trades":[${trades.join(',')}]}`;
  const trades = [trade(random, wallet)];
  let next = trade(random);
  while (textOf([...trades, next], '').length <= bytes) {
    trades.push(next);
    next = trade(random);
  }
  // The wanted trade is in the middle.
  trades.push(...trades.splice(0, Math.ceil(trades.length / 2)));
  return Buffer.from(textOf(trades, hexOf(random, bytes - textOf(trades, '').length)), 'latin1');
};

/** Returns 4 000 batches of trades of exactly `bytes`, 256 different ones and that of the first wallet: one in a thousand. */
export const tradeBatches = (bytes) => {
  const others = Array.from({ length: 256 }, (_, n) => tradeBatch(bytes, n + 1));
  const wanted = tradeBatch(bytes, 257, wallets[0]);
  return Array.from({ length: 4_000 }, (_, n) => (n % 1_000 === 500 ? wanted : others[n % 256]));
};
