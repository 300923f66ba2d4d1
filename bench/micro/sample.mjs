// One sample: the CPU time of one step, in ns. `node bench/micro/sample.mjs <what> [size of the payload]`
import { isUtf8 } from 'node:buffer';
import { isRight } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { filter, map, Subject } from 'rxjs';
import { decodeWith, Frame, shareFeed } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { payloads } from '../support/payloads.mjs';

const [what, size = '200'] = process.argv.slice(2);
const COUNT = 64;
const data = payloads(Number(size), COUNT);
const texts = data.map(String);
const framesOf = (buffers) => buffers.map((each) => new Frame('market', each, false, 1, 1));
const frames = framesOf(data);

const codec = t.type({
  ...{ hash: t.string, from: t.string, nonce: t.number, value: t.string },
  ...{ gas: t.string, fee: t.string, input: t.string },
});
const documents = texts.map((text) => JSON.parse(text));
// The value is parsed before the clock starts, so only the operator is measured.
const parsed = framesOf(data).map((frame, n) => Object.assign(frame, { json: () => documents[n] }));

// Stored, as a consumer may do: the optimizer can remove an object that isn't stored.
const stored = new Array(COUNT);
const store = (n, value) => {
  stored[n] = value;
  return n;
};
const through = (pipe, input = frames) => {
  const source = new Subject();
  let seen = 0;
  source.pipe(...pipe).subscribe(() => (seen += 1));
  return (n) => {
    const before = seen;
    source.next(input[n]);
    if (seen === before) throw new Error(`${what}: nothing was emitted for number ${n}.`);
    return seen;
  };
};
const checked = (isValid) => (n) => {
  if (!isValid(documents[n])) throw new Error(`${what}: number ${n} is not valid.`);
  return n;
};

/** Each returns a function from a number to a number. The sum of its results keeps the optimizer from removing the work. */
const steps = {
  'an empty turn': () => (n) => n,
  'new Frame': () => (n) => store(n, new Frame('market', data[n], false, n, 1)),
  'a literal': () => (n) =>
    store(n, { type: 'frame', feed: 'market', data: data[n], isBinary: false, receivedAt: n, connection: 1 }),
  isUtf8: () => (n) => Number(isUtf8(data[n])),
  toString: () => (n) => data[n].toString().length,
  'text()': () => (n) => frames[n].text().length,
  'json()': () => (n) => Object.keys(frames[n].json()).length,
  'JSON.parse': () => (n) => Object.keys(JSON.parse(texts[n])).length,
  'a Subject': () => through([]),
  'a Subject, six operators': () =>
    through(Array.from({ length: 3 }, () => [map((frame) => frame), filter((frame) => frame.connection > 0)]).flat()),
  'a Subject, shareFeed': () => through([shareFeed()]),
  'JSON.parse of its text': () => (n) => Number(typeof JSON.parse(texts[n]) === 'object'),
  'io-ts, codec.decode': () => checked((document) => isRight(codec.decode(document))),
  'io-ts, codec.is': () => checked((document) => codec.is(document)),
  'an operator that only reads: map': () => through([map((frame) => frame.json())], parsed),
  decodeWith: () => through([decodeWith(codec)], parsed),
};

const step = await steps[what]();
let sum = 0;
const turns = (count) => {
  for (let turn = 0; turn < count; turn += COUNT) for (let n = 0; n < COUNT; n += 1) sum += step(n);
};

// Doubles the number of turns until they take long enough. This is the warm-up as well.
let count = 1 << 12;
for (let spent = 0; spent < 100e6; count *= 2) {
  const before = cpuNs();
  turns(count);
  spent = cpuNs(before);
}
const before = cpuNs();
turns(count);
console.log(JSON.stringify({ what, ns: cpuNs(before) / count, sum }));
