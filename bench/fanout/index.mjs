// A server and its pages: the CPU time of the relay for a frame and a page, and its memory, next to Server-Sent Events written by hand.
import { setTimeout as delay } from 'node:timers/promises';
import { goal, measured, medianOf, pairedRatio, report } from '../lib/bench.mjs';
import { startChild, startListening } from '../support/child.mjs';
import { FRAME_BYTES } from './frames.mjs';

const counts = [10, 100, 1_000];
const versions = { 'by-hand': 'by hand', ours: 'ours' };
const warmUpMs = 8_000;
const measuredMs = 4_000;

const fileOf = (name) => new URL(`${name}.mjs`, import.meta.url);

const measure = async (version, count) => {
  const server = await startListening(fileOf('server'), [version], { execArgv: ['--expose-gc'] });
  const before = await server.report();
  const pages = startChild(fileOf('pages'), [server.port, count]);
  await pages.next('open');
  await delay(warmUpMs);
  const begin = [await server.report(), await pages.report()];
  await delay(measuredMs);
  const end = [await server.report(), await pages.report()];
  const frames = end[0].frames - begin[0].frames;
  for (const child of [server, pages]) await child.stop();
  const bytesOfFrame = (end[1].bytes - begin[1].bytes) / frames / count;
  if (end[0].pages !== count) throw new Error(`${version}: ${end[0].pages} of ${count} pages are left.`);
  if (bytesOfFrame < FRAME_BYTES * 0.9)
    throw new Error(`${version}: a page has received ${Math.round(bytesOfFrame)} bytes of each frame.`);
  return {
    usPerFrame: (end[0].cpuNs - begin[0].cpuAfterGcNs) / frames / 1_000,
    kbPerPage: (end[0].rssBytes - before.rssBytes) / count / 1_024,
    framesPerSecond: (frames * 1_000) / measuredMs,
  };
};

const samples = await measured({
  title: 'fanout',
  cells: counts.flatMap((count) => Object.keys(versions).map((version) => [version, count])),
  run: measure,
});
const of = (version, count, key) => medianOf(samples(version, count), key);
const ratioOf = (count) => pairedRatio(samples('by-hand', count), samples('ours', count), 'usPerFrame');
const both = (read) => Object.keys(versions).map((version) => Math.round(read(version)));

report({
  bench: 'fanout',
  goals: counts.map((count) =>
    goal({
      id: `fanout/${count}`,
      what: `CPU time of a server with ${count} pages: Server-Sent Events by hand over ours`,
      atLeast: 1,
      ratio: ratioOf(count),
    }),
  ),
  tables: [
    {
      title: 'CPU time of a server for a frame of 1 KB, to all pages, at 500 frames a second, in µs',
      columns: ['pages', ...Object.values(versions), 'by hand over ours', 'min', 'max'],
      rows: counts.map((count) => {
        const { median: middle, min, max } = ratioOf(count);
        return [count, ...both((version) => of(version, count, 'usPerFrame')), middle, min, max];
      }),
    },
    {
      // With fewer pages, the memory of a process changes by more than that of its pages.
      title:
        'Memory of a server for each of 1 000 pages, in KB of its resident set, and the frames a second that it sent',
      columns: ['version', 'KB for a page', 'frames a second'],
      rows: Object.entries(versions).map(([version, title]) => [
        title,
        Math.round(of(version, 1_000, 'kbPerPage')),
        Math.round(of(version, 1_000, 'framesPerSecond')),
      ]),
    },
  ],
});
process.exit();
