// The cost of a start, each in a new process: the import of an entry point, and opening the first feed.
import { goal, interleaved, median, pairedRatio, report, ROUNDS, sample } from '../lib/bench.mjs';

const file = new URL('sample.mjs', import.meta.url);
const imports = [
  ...['nothing', 'rxjs', 'io-ts and fp-ts', 'ws', 'undici', 'the dependencies'],
  ...['ours alone', 'ours', './operators', './browser', './relay', './testing'],
];
const feeds = ['a feed', 'a feed in a worker'];
const workers = ['a worker', 'a worker with ws and undici'];
// A sample takes a fraction of a second, and varies more than those of the other benchmarks.
const rounds = Math.max(ROUNDS, 15);
const samples = await interleaved({
  title: 'import',
  rounds,
  contenders: Object.fromEntries([...imports, ...feeds, ...workers].map((name) => [name, () => sample(file, [name])])),
});

const medianOf = (name, key) => median(samples[name].map((each) => each[key])).toFixed(1);
const rowsOf = (names) => names.map((name) => [name, medianOf(name, 'wallMs'), medianOf(name, 'cpuMs')]);
const cpuRatio = (over, under) => pairedRatio(samples[over], samples[under], 'cpuMs');

await report({
  bench: 'import',
  command: 'npm run bench -- import',
  rounds,
  goals: [
    goal({
      id: 'import/ours',
      what: 'CPU time of importing this package over that of its dependencies',
      ratio: cpuRatio('ours', 'the dependencies'),
      atMost: 1.1,
    }),
    goal({
      id: 'import/operators',
      what: 'CPU time of importing ./operators over that of rxjs',
      ratio: cpuRatio('./operators', 'rxjs'),
      atMost: 1.1,
    }),
    goal({
      id: 'import/worker',
      what: 'CPU time in ms from subscribing to the first frame, in a worker',
      ratio: Number(medianOf('a feed in a worker', 'cpuMs')),
      atMost: 150,
    }),
  ],
  tables: [
    { title: 'An import in a new process, in ms', columns: ['what', 'wall', 'CPU'], rows: rowsOf(imports) },
    {
      title: 'From subscribing to the first frame in a new process, after the import, in ms',
      columns: ['what', 'wall', 'CPU'],
      rows: rowsOf(feeds),
    },
    {
      title: 'A worker that only imports the packages that a feed in a worker needs, in ms',
      columns: ['what', 'wall', 'CPU'],
      rows: rowsOf(workers),
    },
  ],
});
