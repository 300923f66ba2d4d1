// What frames cost: the CPU time of each process, and the delay between the owner and a follower.
import { setTimeout as delay } from 'node:timers/promises';
import { startReplica } from './processes.mjs';

/** How many frames a message has, and how many frames a second. Fewer frames a message are more messages. */
export const regimes = [
  { burst: 1, framesPerSecond: 20_000 },
  { burst: 8, framesPerSecond: 80_000 },
  { burst: 64, framesPerSecond: 200_000 },
];

/** Time in which the code is optimized. */
const warmUpMs = 700;
/** At least the head of a message, and the frames of 200 B with their heads. The smallest value that `batchBytes` can have is 1024. */
const messageBytes = (burst) => Math.max(1_024, 150 + burst * 209);

let accounts = 0;

/** Starts an owner and a follower for messages of `burst` frames. */
export const startPair = async (port, sender, burst) => {
  const account = `pair-${(accounts += 1)}`;
  const env = { TRADE_FEED_BASE_URL: sender.baseUrl };
  const start = async (name) => {
    const replica = startReplica({ port, account, name, batchBytes: messageBytes(burst) }, env);
    await replica.opened();
    return replica;
  };
  const owner = await start('owner');
  const follower = await start('follower');
  return {
    ...{ account, owner, follower },
    kill: async () => {
      await owner.kill();
      await follower.kill();
    },
  };
};

/** Sends frames for some seconds, and returns the CPU time of a frame in ns and the added delays in ms. */
export const measurePair = async ({ nats, sender, pair: { owner, follower } }, regime, seconds) => {
  sender.send(regime);
  await delay(warmUpMs);
  for (const replica of [owner, follower]) replica.send('begin');
  const before = nats.cpuNs();
  await delay(seconds * 1_000);
  const serverNs = nats.cpuNs() - before;
  const [ofOwner, ofFollower] = await Promise.all([owner.report(), follower.report()]);
  sender.send({ framesPerSecond: 0 });
  const known = new Map(ofOwner.times);
  const delays = ofFollower.times.flatMap(([frame, at]) => (known.has(frame) ? [at - known.get(frame)] : []));
  const expected = regime.framesPerSecond * seconds;
  if (ofFollower.gaps > 0 || ofFollower.frames < expected * 0.8)
    throw new Error(
      `The follower received ${ofFollower.frames} frames instead of ${expected}, with ${ofFollower.gaps} gaps.`,
    );
  return {
    owner: ofOwner.cpuNs / ofOwner.frames,
    server: serverNs / ofFollower.frames,
    follower: ofFollower.cpuNs / ofFollower.frames,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
  };
};

/** Measures the same frames in a process without a cluster. Returns the CPU time of a frame in ns. */
export const measureAlone = async (sender, regime, seconds) => {
  const alone = startReplica({ isAlone: true }, { TRADE_FEED_BASE_URL: sender.baseUrl });
  await alone.opened();
  sender.send(regime);
  await delay(warmUpMs);
  alone.send('begin');
  await delay(seconds * 1_000);
  const { cpuNs, frames } = await alone.report();
  sender.send({ framesPerSecond: 0 });
  await alone.kill();
  return cpuNs / frames;
};

/** Measures a pair without frames. Returns the CPU time of each process in ms a second. */
export const measureIdle = async ({ nats, pair: { owner, follower } }, seconds) => {
  for (const replica of [owner, follower]) replica.send('begin');
  const before = nats.cpuNs();
  await delay(seconds * 1_000);
  const serverNs = nats.cpuNs() - before;
  const [ofOwner, ofFollower] = await Promise.all([owner.report(), follower.report()]);
  return [ofOwner.cpuNs, serverNs, ofFollower.cpuNs].map((ns) => ns / 1e6 / seconds);
};

/** Returns a quantile of numbers; `NaN` without numbers. */
export const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? NaN;
