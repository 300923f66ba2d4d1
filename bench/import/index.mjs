// The cost of a start, each in a new process: the import of an entry point, and opening the first feed.
import { goal, measured, medianOf, pairedRatio, report, ROUNDS } from '../lib/bench.mjs';

const imports = [
  ...['nothing', 'rxjs', 'the dependencies', 'ours alone', 'ours'],
  ...['./operators', './browser', './relay', './testing'],
];
const feeds = ['a feed', 'a feed in a worker'];
// A sample takes a fraction of a second, and varies more than those of the other benchmarks.
const rounds = Math.max(ROUNDS, 15);
const of = await measured({
  title: 'import',
  rounds,
  cells: [...imports, ...feeds],
  file: new URL('sample.mjs', import.meta.url),
});

const middle = (name, key) => medianOf(of(name), key).toFixed(1);
const tableOf = (title, names) => ({
  title,
  columns: ['what', 'wall', 'CPU'],
  rows: names.map((name) => [name, middle(name, 'wallMs'), middle(name, 'cpuMs')]),
});

report({
  bench: 'import',
  rounds,
  goals: [
    goal({
      id: 'import/ours',
      what: 'CPU time of importing this package over that of its dependencies',
      ratio: pairedRatio(of('ours'), of('the dependencies'), 'cpuMs'),
      atMost: 1.1,
    }),
    goal({
      id: 'import/operators',
      what: 'CPU time of importing ./operators over that of rxjs',
      ratio: pairedRatio(of('./operators'), of('rxjs'), 'cpuMs'),
      atMost: 1.1,
    }),
    goal({
      id: 'import/worker',
      what: 'CPU time in ms from subscribing to the first frame, in a worker',
      ratio: Number(middle('a feed in a worker', 'cpuMs')),
      atMost: 150,
    }),
  ],
  tables: [
    tableOf('An import in a new process, in ms', imports),
    tableOf('From subscribing to the first frame in a new process, after the import, in ms', feeds),
  ],
});
