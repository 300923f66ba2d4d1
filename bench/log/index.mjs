// A log: what appending, reading and a commit cost, compared with the same work written by hand, and the delay to another process.
import { goal, measured, medianOf, pairedRatio, report, spreadOf, summary } from '../lib/bench.mjs';
import { sizeLabel } from '../support/payloads.mjs';

const sizes = [200, 1024];
const ways = ['append', 'fs.write', 'read', 'JSON.parse', 'consume, batches of 1'];

const of = await measured({
  title: 'log',
  cells: [...sizes.flatMap((size) => ways.map((way) => [way, size])), ['delay']],
  file: new URL('sample.mjs', import.meta.url),
});
/** What one commit adds to reading a record, in ns. */
const cursor = (size) =>
  summary(of('consume, batches of 1', size).map(({ ns }, round) => ns - of('read', size)[round].ns));

report({
  bench: 'log',
  goals: [
    ...sizes.flatMap((size) => [
      goal({
        id: `log/append/${size}`,
        what: `append / the line and fs.write of the same bytes, ${sizeLabel(size)}`,
        ratio: pairedRatio(of('append', size), of('fs.write', size), 'ns'),
        atMost: 1.3,
      }),
      goal({
        id: `log/read/${size}`,
        what: `read / JSON.parse and a frame of each line, ${sizeLabel(size)}`,
        ratio: pairedRatio(of('read', size), of('JSON.parse', size), 'ns'),
        atMost: 0.85,
        note: '`read` also checks each line and gives it a position',
      }),
      goal({
        id: `log/cursor/${size}`,
        what: `a batch of one record and its commit, ns, ${sizeLabel(size)}`,
        ratio: cursor(size),
        atMost: 10_000,
      }),
    ]),
    goal({
      id: 'log/delay',
      what: 'from append to another process, median, ms',
      ratio: spreadOf(of('delay'), 'p50'),
      atMost: 1,
    }),
  ],
  tables: [
    {
      title: 'CPU time of all threads of the process for each frame, in ns',
      columns: ['', ...sizes.map(sizeLabel)],
      rows: ways.map((way) => [way, ...sizes.map((size) => Math.round(medianOf(of(way, size), 'ns')))]),
    },
    {
      title: 'From append to a reader in another process, 200 frames a second, in ms',
      columns: ['', 'p50', 'p99'],
      rows: [['delay', ...['p50', 'p99'].map((key) => medianOf(of('delay'), key).toFixed(2))]],
    },
  ],
});
