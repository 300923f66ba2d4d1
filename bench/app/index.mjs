// As an app: a program with a large heap that decodes, shares and windows a feed. With this library, and written by hand with `ws`.
import { isDeepStrictEqual } from 'node:util';
import { interleaved, median, pairedRatio, report } from '../lib/bench.mjs';
import { startLoopback, ways } from '../support/loopback.mjs';
import { sizeLabel } from '../support/payloads.mjs';
import { barChart } from '../support/receiving.mjs';

const file = new URL('sample.mjs', import.meta.url);
const HEAP = 300;
/** Frames of one transaction. */
const sizes = [200, 1024];
const versions = { 'by-hand': '`ws`, by hand', ours: 'ours' };
const cells = Object.keys(ways).flatMap((way) => sizes.map((size) => ({ way, size })));
const idOf = ({ way, size }, version) => `${way} ${size} ${version}`;

const loopback = await startLoopback();
const samples = await interleaved({
  title: 'app',
  contenders: Object.fromEntries(
    cells.flatMap((cell) =>
      Object.keys(versions).map((version) => [
        idOf(cell, version),
        () => loopback.run(cell.way, file, (origin) => [version, cell.size, origin, HEAP]),
      ]),
    ),
  ),
});
await loopback.stop();

for (const size of sizes) {
  const all = Object.keys(ways).flatMap((way) =>
    Object.keys(versions).flatMap((version) => samples[idOf({ way, size }, version)].map(({ windows }) => windows)),
  );
  if (all.some((windows) => !isDeepStrictEqual(windows, all[0])))
    throw new Error(`The versions of the app have computed different windows for ${sizeLabel(size)}.`);
}

const costOf = (cell, version) => median(samples[idOf(cell, version)].map(({ ns }) => ns));
const ratioOf = (cell) => pairedRatio(samples[idOf(cell, 'by-hand')], samples[idOf(cell, 'ours')], 'ns');
const placeOf = ({ way, size }) => `${ways[way]}, ${sizeLabel(size)}`;

await report({
  bench: 'app',
  command: 'npm run bench -- app',
  tables: [
    {
      title: `An app with ${HEAP} MB of live objects: CPU time a frame, ns`,
      columns: ['frames', ...Object.values(versions), 'by hand over ours', 'min', 'max'],
      rows: cells.map((cell) => {
        const ratio = ratioOf(cell);
        const costs = Object.keys(versions).map((version) => Math.round(costOf(cell, version)));
        return [placeOf(cell), ...costs, ratio.median, ratio.min, ratio.max];
      }),
    },
  ],
  charts: [
    {
      ...barChart({
        id: 'app',
        title: 'An app that decodes, shares and windows a feed',
        series: Object.keys(versions).map((version) => ({
          name: versions[version].replaceAll('`', ''),
          points: cells.map((cell) => [placeOf(cell), Math.round(costOf(cell, version))]),
        })),
      }),
      highlight: undefined,
    },
  ],
  ratios: Object.fromEntries(cells.map((cell) => [`app/${cell.way}/${cell.size}`, ratioOf(cell)])),
});
