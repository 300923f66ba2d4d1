// A blocked main thread, with and without a worker: disconnects, lost frames, and the cost while it isn't blocked.
import { goal, interleaved, median, pairedRatio, report, sample } from '../lib/bench.mjs';

const run = (file, options) => sample(new URL(file, import.meta.url), [JSON.stringify(options)]);
const both = (file, options) =>
  Object.fromEntries(['main', 'worker'].map((receiveIn) => [receiveIn, () => run(file, { receiveIn, ...options })]));
const MB = 1e6;
const MiB = 2 ** 20;
/** Counts don't depend on the load, so one round is enough. */
const stallRounds = 1;

// Blocked once, for 8 s. The buffer of the last one is smaller than the frames of that time.
const stalls = {
  'main thread, 10 MB/s': { receiveIn: 'main', bytesPerSecond: 10 * MB },
  'main thread, 50 MB/s': { receiveIn: 'main', bytesPerSecond: 50 * MB },
  'worker, 10 MB/s': { receiveIn: 'worker', bytesPerSecond: 10 * MB },
  'worker, 50 MB/s, 512 MiB': { receiveIn: 'worker', bytesPerSecond: 50 * MB, receiveBufferBytes: 512 * MiB },
  'worker, 50 MB/s, 256 MiB': { receiveIn: 'worker', bytesPerSecond: 50 * MB },
};
const stalled = await interleaved({
  title: 'stall',
  rounds: stallRounds,
  contenders: Object.fromEntries(
    Object.entries(stalls).map(([name, options]) => [name, () => run('stalled.mjs', { ...options, blockedMs: 8_000 })]),
  ),
});

// Blocked 200 ms of every 220: more frames than the buffers of the kernel hold. For so long that a disconnected client waits for the backoff of an unstable connection.
const busy = await interleaved({
  title: 'busy',
  rounds: stallRounds,
  contenders: both('stalled.mjs', { bytesPerSecond: 70 * MB, busyMs: 200, freeMs: 20, forMs: 30_000 }),
});

// Not blocked.
const sizes = [200, 1024, 4096];
const floods = {};
for (const size of sizes)
  floods[size] = await interleaved({
    title: `flood ${size}`,
    contenders: both('flooded.mjs', { size, warmUpMs: 500, forMs: 500 }),
  });
const latencies = await interleaved({
  title: 'latency',
  contenders: both('latency.mjs', { warmUpMs: 500, forMs: 500 }),
});

const worst = (samples, read) => Math.max(...samples.map(read));
const lost = ({ missing, reported }) => Math.max(missing, reported);
const fits = ['worker, 10 MB/s', 'worker, 50 MB/s, 512 MiB'];
const few = (value) => Number(value.toPrecision(3));
const mid = (samples, read) => few(median(samples.map(read)));
const extraUs = latencies.worker.map(({ p50 }, round) => p50 - latencies.main[round].p50);

await report({
  bench: 'stall',
  command: 'npm run bench -- stall',
  goals: [
    ...[...fits, 'worker, 50 MB/s, 256 MiB'].map((name) =>
      goal({
        id: `stall/cut/${name}`,
        what: `disconnects with 1013: ${name}`,
        ratio: worst(stalled[name], ({ cutOff }) => cutOff),
        atMost: 0,
      }),
    ),
    ...fits.map((name) =>
      goal({
        id: `stall/lost/${name}`,
        what: `lost frames although the buffer has room: ${name}`,
        ratio: worst(stalled[name], lost),
        atMost: 0,
      }),
    ),
    goal({
      id: 'stall/reported',
      what: 'frames lost because the buffer is full, and not reported: worker, 50 MB/s, 256 MiB',
      ratio: worst(stalled['worker, 50 MB/s, 256 MiB'], ({ missing, reported }) => Math.max(0, missing - reported)),
      atMost: 0,
    }),
    goal({
      id: 'stall/busy',
      what: 'frames while blocked 200 ms of every 220, worker over main thread, 70 MB/s, backlog 1 MiB',
      ratio: pairedRatio(busy.worker, busy.main, ({ during }) => during.frames),
      atLeast: 20,
      note: 'The main thread loses the frames of its reconnects, so the ratio grows with the length of the run.',
    }),
    ...sizes.map((size) =>
      goal({
        id: `stall/free/${size}`,
        what: `frames a second when not blocked, worker over main thread, ${size} B, flood`,
        ratio: pairedRatio(floods[size].worker, floods[size].main, 'framesPerSecond'),
        atLeast: 0.9,
        note: 'The sender, the worker and the main thread need three cores.',
      }),
    ),
    goal({
      id: 'stall/latency',
      what: 'p50 latency at 10,000 frames/s, worker minus main thread, µs',
      ratio: { median: median(extraUs), min: Math.min(...extraUs), max: Math.max(...extraUs), rounds: extraUs.length },
      atMost: 100,
    }),
  ],
  tables: [
    {
      title: 'Blocked for 8 s, a backlog of 1 MiB at the server, frames of 1 KB',
      columns: ['receiver', 'disconnects', 'sent', 'received', 'missing', 'reported', 'peak memory, MB'],
      rows: Object.entries(stalled).map(([name, samples]) => [
        name,
        worst(samples, ({ cutOff }) => cutOff),
        ...['sent', 'frames', 'missing', 'reported'].map((key) => median(samples.map((each) => each[key]))),
        mid(samples, ({ rss }) => rss / 1000),
      ]),
    },
    {
      title: 'Blocked 200 ms of every 220 for 30 s, 70 MB/s, a backlog of 1 MiB at the server',
      columns: ['receiver', 'disconnects', 'frames in this time'],
      rows: Object.entries(busy).map(([name, samples]) => [
        name,
        worst(samples, ({ cutOff }) => cutOff),
        median(samples.map(({ during }) => during.frames)),
      ]),
    },
    {
      title: 'Not blocked',
      columns: [
        'receiver',
        ...sizes.flatMap((size) => [`frames/s, ${size} B`, `CPU ns a frame, ${size} B`]),
        'p50 µs',
        'p99 µs',
      ],
      rows: ['main', 'worker'].map((name) => [
        name,
        ...sizes.flatMap((size) => [
          mid(floods[size][name], ({ framesPerSecond }) => framesPerSecond),
          mid(floods[size][name], ({ cpuNs }) => cpuNs),
        ]),
        ...['p50', 'p99'].map((key) => mid(latencies[name], (each) => each[key])),
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
      log: false,
      series: [
        {
          name: 'received',
          // A disconnected client is sent nothing, so compute the number of frames from the rate.
          points: Object.entries(stalled).map(([name, samples]) => [
            name,
            mid(samples, ({ frames }) => Math.min(100, (frames / ((stalls[name].bytesPerSecond / 1024) * 8.6)) * 100)),
          ]),
        },
      ],
    },
  ],
});
