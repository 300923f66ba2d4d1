// A blocked main thread, with and without a worker: disconnects, lost frames, and the cost while it isn't blocked.
import { goal, measured, medianOf, pairedRatio, report, sample, summary } from '../lib/bench.mjs';

const run = (what, options) => sample(new URL('sample.mjs', import.meta.url), [what, JSON.stringify(options)]);
const threads = ['main', 'worker'];
const MB = 1e6;
const MiB = 2 ** 20;

// Blocked once, for 8 s. The buffer of the last one is smaller than the frames of that time.
const stalls = {
  'main thread, 10 MB/s': { receiveIn: 'main', bytesPerSecond: 10 * MB },
  'main thread, 50 MB/s': { receiveIn: 'main', bytesPerSecond: 50 * MB },
  'worker, 10 MB/s': { receiveIn: 'worker', bytesPerSecond: 10 * MB },
  'worker, 50 MB/s, 512 MiB': { receiveIn: 'worker', bytesPerSecond: 50 * MB, receiveBufferBytes: 512 * MiB },
  'worker, 50 MB/s, 256 MiB': { receiveIn: 'worker', bytesPerSecond: 50 * MB },
};
const names = Object.keys(stalls);
// Counts don't depend on the load, so one round is enough.
const stalled = await measured({
  title: 'stall',
  rounds: 1,
  cells: names,
  run: (name) => run('stalled', { ...stalls[name], blockedMs: 8_000 }),
});
const [inRoom, tight] = [['worker, 10 MB/s', 'worker, 50 MB/s, 512 MiB'], 'worker, 50 MB/s, 256 MiB'];
const countOf = (name) => stalled(name)[0];

// Blocked 200 ms of every 220: more frames than the buffers of the kernel hold. For so long that a disconnected client waits for the backoff of an unstable connection.
const busy = await measured({
  title: 'busy',
  rounds: 1,
  cells: threads,
  run: (receiveIn) => run('stalled', { receiveIn, bytesPerSecond: 70 * MB, busyMs: 200, freeMs: 20, forMs: 30_000 }),
});

// Not blocked.
const sizes = [200, 1024, 4096];
const times = { warmUpMs: 500, forMs: 500 };
const flooded = await measured({
  title: 'flood',
  cells: sizes.flatMap((size) => threads.map((receiveIn) => [receiveIn, size])),
  run: (receiveIn, size) => run('flooded', { receiveIn, size, ...times }),
});
const latency = await measured({
  title: 'latency',
  cells: threads,
  run: (receiveIn) => run('latency', { receiveIn, ...times }),
});
const extraUs = latency('worker').map(({ p50 }, round) => p50 - latency('main')[round].p50);
const middle = (samples, key) => Number(medianOf(samples, key).toPrecision(3));

await report({
  bench: 'stall',
  goals: [
    ...[...inRoom, tight].map((name) =>
      goal({
        id: `stall/cut/${name}`,
        what: `disconnects with 1013: ${name}`,
        ratio: countOf(name).cutOff,
        atMost: 0,
      }),
    ),
    ...inRoom.map((name) =>
      goal({
        id: `stall/lost/${name}`,
        what: `lost frames although the buffer has room: ${name}`,
        ratio: Math.max(countOf(name).missing, countOf(name).reported),
        atMost: 0,
      }),
    ),
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
    ...sizes.map((size) =>
      goal({
        id: `stall/free/${size}`,
        what: `frames a second when not blocked, worker over main thread, ${size} B, flood`,
        ratio: pairedRatio(flooded('worker', size), flooded('main', size), 'framesPerSecond'),
        atLeast: 0.9,
        note: 'The sender, the worker and the main thread need three cores.',
      }),
    ),
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
      title: 'Not blocked',
      columns: [
        'receiver',
        ...sizes.flatMap((size) => [`frames/s, ${size} B`, `CPU ns a frame, ${size} B`]),
        ...['p50 µs', 'p99 µs'],
      ],
      rows: threads.map((name) => [
        name,
        ...sizes.flatMap((size) => ['framesPerSecond', 'cpuNs'].map((key) => middle(flooded(name, size), key))),
        ...['p50', 'p99'].map((key) => middle(latency(name), key)),
      ]),
    },
  ],
  charts: [
    {
      id: 'stall-blocked',
      title: 'Share of frames received in a stall of 8 s',
      kind: 'bars',
      x: 'receiver',
      y: '% of the frames sent',
      series: [
        {
          name: 'received',
          // A disconnected client is sent nothing, so compute the number of frames from the rate.
          points: names.map((name) => [
            name,
            middle(stalled(name), ({ frames }) =>
              Math.min(100, (frames / ((stalls[name].bytesPerSecond / 1024) * 8.6)) * 100),
            ),
          ]),
        },
      ],
    },
  ],
});
