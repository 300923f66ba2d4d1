// What the senders send: pending transactions as JSON, of an exact size, the same bytes in every run.

/** The sizes of the goals, in bytes of payload. */
export const sizes = [200, 1024, 4096, 65_536];

/** A size as a table writes it. */
export const sizeLabel = (bytes) => (bytes < 1024 ? `${bytes} B` : `${bytes / 1024} KB`);

// A small generator of its own: figures must not depend on what a Node's Math.random makes.
const seeded = (seed) => () => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0);
const hexOf = (random, digits) =>
  Array.from({ length: Math.ceil(digits / 4) }, () => ((random() >>> 16) | 0x10000).toString(16).slice(1))
    .join('')
    .slice(0, digits);

const transaction = (random, inputDigits) =>
  `{"hash":"0x${hexOf(random, 16)}","from":"0x${hexOf(random, 40)}","nonce":${random() % 5000},` +
  `"value":"0x${hexOf(random, 10)}","gas":"0x${hexOf(random, 4)}","fee":"0x${hexOf(random, 8)}","input":"0x${hexOf(random, inputDigits)}"}`;

/** One payload: a transaction, or an array of some where it is large; its last `input` fills what is left of `bytes`. */
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

/** `count` of them, each another one. */
export const payloads = (bytes, count) => Array.from({ length: count }, (_, n) => payload(bytes, n + 1));

/** The same with one letter that is not ASCII, in two bytes near its end. */
export const beyondAscii = (data) => {
  const copy = Buffer.from(data);
  copy.write('é', copy.length - 6);
  return copy;
};
