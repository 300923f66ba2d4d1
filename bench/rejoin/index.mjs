// Pages that come back together after 20 s: how long they hold the event loop of the relay's process, and what live pages and a health probe
// notice. Fails if they held it for more than 50 ms of CPU time.
//
//   npm run bench -- rejoin [500 1000]
import { startChild, startListening } from '../support/child.mjs';

const awayMs = 20_000;
const mostMs = 50;
const counts = process.argv.slice(2).map(Number);
const fileOf = (name) => new URL(`${name}.mjs`, import.meta.url);

const measure = async (count) => {
  const server = await startListening(fileOf('server'));
  const probe = await startListening(fileOf('probe'), [server.port]);
  const pages = startChild(fileOf('pages'), [server.port, count, awayMs]);
  await pages.next('away');
  const before = await server.report();
  await probe.report();
  const [joined, caughtUp] = [await pages.next('joined'), await pages.next('caughtUp')];
  const [after, { healthMs }] = [await server.report(), await probe.report()];
  for (const child of [pages, probe, server]) await child.stop();
  return {
    pages: count,
    'event loop held': after.heldMs,
    '… in CPU time': after.heldCpuMs,
    'oldest live frame': after.liveMs,
    'slowest probe': healthMs,
    'all joined': joined.ms,
    'all caught up': caughtUp.ms,
    'CPU time': (after.cpuNs - before.cpuNs) / 1e6,
  };
};

const rows = [];
for (const count of counts.length > 0 ? counts : [500, 1_000]) rows.push(await measure(count));
console.log('In ms:');
console.table(rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, ms]) => [name, Math.round(ms)]))));
if (rows.some((row) => row['… in CPU time'] > mostMs)) process.exitCode = 1;
