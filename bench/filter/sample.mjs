// One sample: the CPU time of one way to filter pending transactions, in ns a frame. `node bench/filter/sample.mjs <way> <size>`
import { firstValueFrom, Subject } from 'rxjs';
import { tradeFeed$, whereBytes, whereField } from '../../dist/index.js';
import { startTradeFeedService } from '../../dist/testing/index.js';
import { cpuNs } from '../support/cpu.mjs';
import { transactions } from './transactions.mjs';

const [way, size = '250'] = process.argv.slice(2);

// The class of received frames isn't public. One frame of a feed has it.
const service = await startTradeFeedService({ sources: {} });
const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
const pump = setInterval(() => service.push('market', '{}'), 5);
const received = await firstValueFrom(tradeFeed$('market', { baseUrl: service.baseUrl, apiKey }));
clearInterval(pump);
await service.shutdown();
const { constructor: ReceivedFrame, payload } = received;
const { constructor: Payload } = payload;

const COUNT = 1_000;
const all = transactions(Number(size), COUNT);
const memory = Buffer.concat(all);
const places = [];
for (const { length } of all) places.push([places.at(-1)?.[1] ?? 0, (places.at(-1)?.[1] ?? 0) + length]);
/** Frames in a read buffer of ASCII text, in the state they have during `next`. A frame keeps its text, so each is used once. */
const frames = () =>
  places.map(([start, end], n) => new ReceivedFrame('raw', new Payload(memory, start, end, 2, 0), n, 1));

/** One of the transactions is wanted. */
const wanted = JSON.parse(all[COUNT / 2].toString()).to;
const wallets = (count) => [
  ...Array.from({ length: count - 1 }, (_, n) => `0x${String(n).padStart(40, 'ab17')}`),
  wanted,
];

let passed = 0;
const through = (operator) => {
  const source = new Subject();
  source.pipe(operator).subscribe(() => (passed += 1));
  return (frame) => source.next(frame);
};
const ways = {
  'JSON.parse': () => (frame) => (passed += Number(JSON.parse(frame.text()).to === wanted)),
  'one value': () => through(whereField('to', wanted)),
  'a list of 10,000': () => through(whereField('to', wallets(10_000))),
  'a list of 10,000, ignoreCase': () => through(whereField('to', wallets(10_000), { ignoreCase: true })),
  'a Set of 500': () => through(whereField('to', new Set(wallets(500)))),
  'a Set of 10,000': () => through(whereField('to', new Set(wallets(10_000)))),
  'one needle': () => through(whereBytes(wanted)),
  '500 needles': () => through(whereBytes(...wallets(500))),
};

const run = ways[way]();
const ROUNDS = Number(size) > 4_096 ? 10 : 20;
const measure = () => {
  const rounds = Array.from({ length: ROUNDS }, frames);
  passed = 0;
  const before = cpuNs();
  for (const round of rounds) for (const frame of round) run(frame);
  const usedNs = cpuNs(before);
  if (passed !== ROUNDS) throw new Error(`${way}: ${passed} of ${ROUNDS} frames passed`);
  return usedNs / (ROUNDS * COUNT);
};
measure();
measure();
// Another process of this machine can only add time.
console.log(JSON.stringify({ way, ns: Math.min(...Array.from({ length: 7 }, measure)) }));
process.exit();
