// Pages that come back together after 20 s: how long they hold the event loop of the relay's process, and how old a frame is when a live page gets
// it. Fails if they held it for more than 50 ms of CPU time.
import { goal, isQuick, report } from '../lib/bench.mjs';
import { startChild, startListening } from '../support/child.mjs';

const awayMs = 20_000;
const counts = isQuick ? [1_000] : [500, 1_000];
const fileOf = (name) => new URL(`${name}.mjs`, import.meta.url);

const measure = async (count) => {
  const server = await startListening(fileOf('server'));
  const pages = startChild(fileOf('pages'), [server.port, count, awayMs]);
  await pages.next('away');
  const before = await server.report();
  const [joined, caughtUp] = [await pages.next('joined'), await pages.next('caughtUp')];
  const after = await server.report();
  for (const child of [pages, server]) await child.stop();
  return {
    pages: count,
    'event loop held': after.heldMs,
    'of that CPU time': after.heldCpuMs,
    'oldest live frame': after.liveMs,
    'all joined': joined.ms,
    'all caught up': caughtUp.ms,
    'CPU time': (after.cpuNs - before.cpuNs) / 1e6,
  };
};

const rows = [];
for (const count of counts) rows.push(await measure(count));
const { goals } = report({
  bench: 'rejoin',
  rounds: 1,
  goals: rows.map((row) =>
    goal({
      id: `rejoin/${row.pages}`,
      what: `CPU time for which ${row.pages} pages that return held the event loop, in ms`,
      ratio: row['of that CPU time'],
      atMost: 50,
    }),
  ),
  tables: [
    {
      title: `Pages that return after ${awayMs / 1_000} s, in ms`,
      columns: Object.keys(rows[0]),
      rows: rows.map((row) => Object.values(row).map(Math.round)),
    },
  ],
});
if (goals.some(({ met }) => !met)) process.exitCode = 1;
