// One sample: the CPU time of one step of receiving, in ns. `node bench/micro/cost-sample.mjs <what> <size>`
import { isUtf8 } from 'node:buffer';
import { filter, map, Subject } from 'rxjs';
import { Frame } from '../../dist/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { payloads } from '../support/payloads.mjs';

const [what, sizeText = '200'] = process.argv.slice(2);
const data = payloads(Number(sizeText), 64);
const frames = data.map((each) => new Frame('market', each, false, 1, 1));
const texts = data.map(String);

const through = (pipe) => {
  const source = new Subject();
  let seen = 0;
  source.pipe(...pipe).subscribe(() => (seen += 1));
  return (n) => {
    source.next(frames[n]);
    return seen;
  };
};

// Stored, as a consumer may do: the optimizer can remove an object that isn't stored.
const stored = new Array(64);
const store = (n, value) => {
  stored[n] = value;
  return n;
};

/** Each takes a number from 0 to 63 and returns a number. The sum of them keeps the optimizer from removing the work. */
const costs = {
  'an empty turn': () => (n) => n,
  'new Frame': () => (n) => store(n, new Frame('market', data[n], false, n, 1)),
  'a literal': () => (n) =>
    store(n, { type: 'frame', feed: 'market', data: data[n], isBinary: false, receivedAt: n, connection: 1 }),
  'a view': () => (n) => store(n, data[n].subarray(1)),
  isUtf8: () => (n) => Number(isUtf8(data[n])),
  toString: () => (n) => data[n].toString().length,
  'text()': () => (n) => frames[n].text().length,
  'json()': () => (n) => Object.keys(frames[n].json()).length,
  'JSON.parse': () => (n) => Object.keys(JSON.parse(texts[n])).length,
  'a Subject': () => through([]),
  'a Subject, one operator': () => through([map((frame) => frame)]),
  'a Subject, six operators': () =>
    through(Array.from({ length: 3 }, () => [map((frame) => frame), filter((frame) => frame.connection > 0)]).flat()),
};

const cost = costs[what]();
let sum = 0;
const turns = (count) => {
  for (let turn = 0; turn < count; turn += 64) for (let n = 0; n < 64; n += 1) sum += cost(n);
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
