// A blocked main thread, with and without a worker: disconnects, lost frames, and the cost while it isn't blocked.
import { goal, measured, medianOf, pairedRatio, report, sample, summary } from '../lib/bench.mjs';

const run = (what, options) => sample(new URL('sample.mjs', import.meta.url), [what, JSON.stringify(options)]);
const threads = ['main', 'worker'];
const MB = 1e6;

// Blocked once, for 8 s. The buffer of 256 MiB is smaller than the frames of that time at 50 MB/s.
const stalls = {
  'main thread, 10 MB/s': { receiveIn: 'main', bytesPerSecond: 10 * MB },
  'worker, 10 MB/s': { receiveIn: 'worker', bytesPerSecond: 10 * MB },
  'worker, 50 MB/s': { receiveIn: 'worker', bytesPerSecond: 50 * MB },
};
const names = Object.keys(stalls);
// Counts don't depend on the load, so one round is enough.
const stalled = await measured({
  title: 'stall',
  rounds: 1,
  cells: names,
  run: (name) => run('stalled', { ...stalls[name], blockedMs: 8_000 }),
});
const [inRoom, tight] = ['worker, 10 MB/s', 'worker, 50 MB/s'];
const countOf = (name) => stalled(name)[0];

// Blocked 200 ms of every 220: more frames than the buffers of the kernel hold. For so long that a disconnected client waits for the backoff of an unstable connection.
const busy = await measured({
  title: 'busy',
  rounds: 1,
  cells: threads,
  run: (receiveIn) => run('stalled', { receiveIn, bytesPerSecond: 70 * MB, busyMs: 200, freeMs: 20, forMs: 30_000 }),
});

// Not blocked.
const latency = await measured({
  title: 'latency',
  cells: threads,
  run: (receiveIn) => run('latency', { receiveIn, warmUpMs: 500, forMs: 500 }),
});
const extraUs = latency('worker').map(({ p50 }, round) => p50 - latency('main')[round].p50);
const middle = (samples, key) => Number(medianOf(samples, key).toPrecision(3));

report({
  bench: 'stall',
  goals: [
    ...[inRoom, tight].map((name) =>
      goal({
        id: `stall/cut/${name}`,
        what: `disconnects with 1013: ${name}`,
        ratio: countOf(name).cutOff,
        atMost: 0,
      }),
    ),
    goal({
      id: 'stall/lost',
      what: `lost frames although the buffer has room: ${inRoom}`,
      ratio: Math.max(countOf(inRoom).missing, countOf(inRoom).reported),
      atMost: 0,
    }),
    goal({
      id: 'stall/reported',
      what: `frames lost because the buffer is full, and not reported: ${tight}`,
      ratio: Math.max(0, countOf(tight).missing - countOf(tight).reported),
      atMost: 0,
    }),
    goal({
      id: 'stall/busy',
      what: 'frames while blocked 200 ms of every 220, worker over main thread, 70 MB/s, backlog 1 MiB',
      ratio: pairedRatio(busy('worker'), busy('main'), ({ during }) => during.frames),
      atLeast: 20,
      note: 'The main thread loses the frames of its reconnects, so the ratio grows with the length of the run.',
    }),
    goal({
      id: 'stall/latency',
      what: 'p50 latency at 10,000 frames/s, worker minus main thread, µs',
      ratio: summary(extraUs),
      atMost: 100,
    }),
  ],
  tables: [
    {
      title: 'Blocked for 8 s, a backlog of 1 MiB at the server, frames of 1 KB',
      columns: ['receiver', 'disconnects', 'sent', 'received', 'missing', 'reported', 'peak memory, MB'],
      rows: names.map((name) => {
        const { cutOff, sent, frames, missing, reported } = countOf(name);
        return [name, cutOff, sent, frames, missing, reported, middle(stalled(name), ({ rss }) => rss / 1000)];
      }),
    },
    {
      title: 'Blocked 200 ms of every 220 for 30 s, 70 MB/s, a backlog of 1 MiB at the server',
      columns: ['receiver', 'disconnects', 'frames in this time'],
      rows: threads.map((name) => [name, busy(name)[0].cutOff, busy(name)[0].during.frames]),
    },
    {
      title: 'Latency at 10,000 frames a second while it is not blocked, in µs',
      columns: ['receiver', 'p50', 'p99'],
      rows: threads.map((name) => [name, ...['p50', 'p99'].map((key) => middle(latency(name), key))]),
    },
  ],
});
