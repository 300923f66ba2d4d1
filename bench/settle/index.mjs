// What became of each trade: the CPU time of `settle` for a trade with its step and outcome, over that of a bare join with a Map, which knows no gaps,
// no reorganizations and no bounds. And the memory of a trade that waits.
import { goal, interleaved, median, pairedRatio, report, sample } from '../lib/bench.mjs';

const file = new URL('sample.mjs', import.meta.url);
const ways = { map: 'a bare Map', settle: '`settle`', slots: '`settle` with `slot`' };
const memory = (way) => () => sample(file, [way, 'memory'], { nodeArgs: ['--expose-gc'] });

const samples = await interleaved({
  title: 'settle',
  contenders: Object.fromEntries(
    Object.keys(ways).flatMap((way) => [
      [way, () => sample(file, [way])],
      [`${way} memory`, memory(way)],
    ]),
  ),
});
const ratioOf = (way) => pairedRatio(samples[way], samples.map, 'ns');
const bytesOf = (way) => Math.round(median(samples[`${way} memory`].map(({ bytes }) => bytes)));

await report({
  bench: 'settle',
  command: 'npm run bench -- settle',
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
        const ns = Math.round(median(samples[way].map((each) => each.ns)));
        return [name, ns, ratio.median, ratio.min, ratio.max, bytesOf(way)];
      }),
    },
  ],
});
