// Compares windows with a separate count, over a feed that arrives directly, in a worker, over a relay and from a log.
//
//   npm run reliability -- windows [--seconds 60] [--rate 5000] [--block 20]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { atMost, exactly, holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const number = (text) => Number(text);
const { values } = parseArgs({
  options: { seconds: { type: 'string' }, rate: { type: 'string' }, block: { type: 'string' } },
});
const seconds = number(values.seconds ?? 60);
const rate = number(values.rate ?? 5_000);
const blockMs = number(values.block ?? 20);
const lengths = [1_000, 500, 100];
const batchMs = 16;

const children = new Set();
const start = (file, argument) => {
  const child = fork(new URL(file, import.meta.url), [JSON.stringify(argument)]);
  children.add(child);
  return child;
};
process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));
const messageOf = async (child) => {
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`A process ended with ${code}.`))),
  ]);
  return message;
};

const service = start('./service.mjs', { rate, accounts: 5 });
const { baseUrl, keys } = await messageOf(service);
const relays = start('./receiver.mjs', { mode: 'serve', baseUrl, apiKey: keys[0], url: keys[1] });
const { port } = await messageOf(relays);
const url = `http://127.0.0.1:${port}`;

const runs = [
  { mode: 'direct', apiKey: keys[2], blockMs: 0 },
  { mode: 'worker', apiKey: keys[3], blockMs },
  { mode: 'relay', url: `${url}/main`, blockMs },
  { mode: 'relay of a worker', url: `${url}/worker`, blockMs },
  { mode: 'replay', apiKey: keys[4], blockMs: 0 },
];
console.log(`${runs.length} receivers at ${rate} frames a second, for ${seconds} s …`);
const results = await Promise.all(
  runs.map(async (run) => ({
    ...run,
    lengths: await messageOf(start('./receiver.mjs', { ...run, baseUrl, seconds, lengths })),
  })),
);
for (const child of [relays, service]) child.send('end');

const rows = results.flatMap(({ mode, lengths: all }) => all.map((each) => ({ mode, ...each })));
const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
const live = rows.filter(({ mode }) => mode !== 'replay');
const command = `npm run reliability -- windows --seconds ${seconds} --rate ${rate} --block ${blockMs}`;
await report({
  name: 'windows',
  command,
  keep: seconds >= 60,
  goals: [
    exactly('windows with another count than the separate count', sum('wrong'), 0),
    exactly('windows with a wrong count and `complete: true`', sum('wrongButComplete'), 0),
    exactly('windows that do not begin where the one before ends', sum('apart'), 0),
    holds(
      'every frame is in one window',
      rows.every(({ frames, inWindows }) => frames === inWindows && frames > 0),
      `${sum('frames')} = ${sum('inWindows')}`,
    ),
    exactly('incomplete windows between the first and the last frame', sum('incomplete'), 0),
    atMost(
      'from the first frame of the next window to the emission of a window, p99: one batch',
      Math.max(...live.map(({ waitP99Ms }) => waitP99Ms)),
      batchMs,
      'ms',
    ),
  ],
  tables: [
    {
      title: `Windows at ${rate} frames a second for ${seconds} s; the receivers of worker and relay block for ${blockMs} ms now and then`,
      columns: [
        'received',
        'window',
        'frames',
        'windows',
        'complete',
        'wrong',
        'emitted after its end, p50',
        'after the next frame, p50',
        'p99',
        'maximum',
      ],
      rows: rows.map((row) => [
        row.mode,
        `${row.lengthMs} ms`,
        row.frames,
        row.windows,
        row.complete,
        row.wrong,
        row.mode === 'replay' ? '–' : `${row.latenessP50Ms} ms`,
        row.mode === 'replay' ? '–' : `${row.waitP50Ms} ms`,
        row.mode === 'replay' ? '–' : `${row.waitP99Ms} ms`,
        row.mode === 'replay' ? '–' : `${row.longestWaitMs} ms`,
      ]),
    },
  ],
});
process.exit();
