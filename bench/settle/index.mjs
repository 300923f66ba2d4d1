// What became of each trade: the CPU time of `settle` for a trade with its step and outcome, over that of a bare join with a Map, which knows no gaps,
// no reorganizations and no bounds. And the memory of a trade that waits.
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';

const ways = { map: 'a bare Map', settle: '`settle`', slots: '`settle` with `slot`' };
const of = await measured({
  title: 'settle',
  cells: Object.keys(ways).flatMap((way) => [
    [way, 'time'],
    [way, 'memory'],
  ]),
  file: new URL('sample.mjs', import.meta.url),
});
const ratioOf = (way) => pairedRatio(of(way, 'time'), of('map', 'time'), 'ns');
const bytesOf = (way) => Math.round(medianOf(of(way, 'memory'), 'bytes'));

report({
  bench: 'settle',
  goals: [
    goal({ id: 'settle/map', what: 'settle / a bare Map, CPU time of a trade', ratio: ratioOf('settle'), atMost: 4 }),
    goal({ id: 'settle/bytes', what: 'memory of a trade that waits, bytes', ratio: bytesOf('settle'), atMost: 250 }),
  ],
  tables: [
    {
      title: 'A trade with its step and its outcome',
      columns: ['join', 'CPU time, ns', 'over a Map', 'min', 'max', 'bytes while it waits'],
      rows: Object.entries(ways).map(([way, name]) => {
        const ratio = ratioOf(way);
        const ns = Math.round(medianOf(of(way, 'time'), 'ns'));
        return [name, ns, ratio.median, ratio.min, ratio.max, bytesOf(way)];
      }),
    },
  ],
});
