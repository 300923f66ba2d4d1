// What frames cost: the CPU time of each process, and the delay between the owner and a follower.
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../lib/stats.mjs';
import { startBare, startReplica } from './processes.mjs';

/**
 * At full rate, by frames a message: no process waits, so the figures contain no idle time and no wake-ups. Two frames of 900 B don't fit into the
 * smallest message.
 */
export const fullRates = {
  1: { size: 900, window: 5_000 },
  8: { size: 200, window: 20_000 },
  64: { size: 200, window: 20_000 },
};
/** Most processes wait most of the time: one frame after the other. */
export const paced = { size: 200, framesPerSecond: 20_000 };

/** Time in which the code is optimized. */
const warmUpMs = 1_000;
/** At least the head of a message, and the frames of 200 B with their heads. The smallest value that `batchBytes` can have is 1024. */
const messageBytes = (frames) => Math.max(1_024, 150 + frames * 209);

let accounts = 0;

/** Starts an owner and a follower for messages of at most so many frames of 200 B. */
export const startPair = async (port, sender, frames) => {
  const account = `pair-${(accounts += 1)}`;
  const env = { TRADE_FEED_BASE_URL: sender.baseUrl };
  const start = async (name) => {
    const replica = startReplica({ port, account, name, batchBytes: messageBytes(frames) }, env);
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

const measureReplicas = async (replicas, nats, seconds) => {
  for (const replica of replicas) replica.send('begin');
  const before = nats.cpuNs();
  await delay(seconds * 1_000);
  const serverNs = nats.cpuNs() - before;
  return { serverNs, reports: await Promise.all(replicas.map((replica) => replica.report())) };
};

/** Tells the sender which frames have arrived at a replica, so that it sends the next ones: four times in a window, because a report has a cost, too. */
export const reportFrom = (replica, sender, { window }) => {
  replica.on('received', ({ frames }) => sender.send({ received: frames }));
  if (window) replica.send({ reportEvery: window / 4 });
};

/**
 * Sends frames for some seconds.
 *
 * @returns the CPU time of a frame in each process in ns, the added delays in ms, and the frames a second
 */
export const measurePair = async ({ nats, sender, pair: { owner, follower } }, plan, seconds) => {
  sender.send({ plan });
  await delay(warmUpMs);
  const { serverNs, reports } = await measureReplicas([owner, follower], nats, seconds);
  sender.send({});
  const [ofOwner, ofFollower] = reports;
  if (ofFollower.gaps > 0 || ofFollower.frames === 0)
    throw new Error(`The follower received ${ofFollower.frames} frames, with ${ofFollower.gaps} gaps.`);
  const known = new Map(ofOwner.times);
  const delays = ofFollower.times.flatMap(([frame, at]) => (known.has(frame) ? [at - known.get(frame)] : []));
  return {
    owner: ofOwner.cpuNs / ofOwner.frames,
    server: serverNs / ofFollower.frames,
    follower: ofFollower.cpuNs / ofFollower.frames,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    rate: ofFollower.frames / seconds,
  };
};

/** Measures the same frames in a process without a cluster. Returns the CPU time of a frame in ns. */
export const measureAlone = async ({ nats, sender }, plan, seconds) => {
  const alone = startReplica({ isAlone: true }, { TRADE_FEED_BASE_URL: sender.baseUrl });
  await alone.opened();
  reportFrom(alone, sender, plan);
  sender.send({ plan });
  await delay(warmUpMs);
  const { reports } = await measureReplicas([alone], nats, seconds);
  sender.send({});
  await alone.kill();
  return reports[0].cpuNs / reports[0].frames;
};

/**
 * Measures messages of the same size between two clients of NATS without a cluster.
 *
 * @param workUs - how long the sender and the receiver work for each message
 * @returns the CPU time of so many bytes as a frame has, in each process in ns
 */
export const measureBare = async (nats, frames, workUs, seconds) => {
  const { window } = fullRates[frames];
  const options = { port: nats.port, bytes: messageBytes(frames), window: Math.ceil(window / frames / 4) * 4 };
  const receiver = await startBare({ ...options, isSender: false, workUs: workUs.receiver });
  const sender = await startBare({ ...options, isSender: true, workUs: workUs.sender });
  receiver.on('received', ({ count }) => sender.send({ received: count }));
  sender.send({ received: 0 });
  await delay(warmUpMs);
  const { serverNs, reports } = await measureReplicas([sender, receiver], nats, seconds);
  await receiver.kill();
  await sender.kill();
  const [ofSender, ofReceiver] = reports;
  const arrived = ofReceiver.count * frames;
  return {
    owner: ofSender.cpuNs / ofSender.count / frames,
    server: serverNs / arrived,
    follower: ofReceiver.cpuNs / arrived,
    rate: arrived / seconds,
  };
};

/** Measures a pair without frames. Returns the CPU time of each process in ms a second. */
export const measureIdle = async ({ nats, pair: { owner, follower } }, seconds) => {
  const { serverNs, reports } = await measureReplicas([owner, follower], nats, seconds);
  return [reports[0].cpuNs, serverNs, reports[1].cpuNs].map((ns) => ns / 1e6 / seconds);
};
