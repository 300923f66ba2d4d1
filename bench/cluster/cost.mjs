// What frames cost: the CPU time of each process, and the delay between the owner and a follower.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startBroker } from '../../test/peers/brokers.mjs';
import { quantile } from '../lib/stats.mjs';
import { startChild } from '../support/child.mjs';

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

/** Time in which the code is optimized, and the time of a measurement. */
const warmUpMs = 1_000;
const measuredSeconds = 1;
/** At least the head of a message, and the frames of 200 B with their heads. The smallest value that `batchBytes` can have is 1024. */
const messageBytes = (frames) => Math.max(1_024, 150 + frames * 209);

// In ns, unlike the ticks of 10 ms in `/proc/PID/stat`.
const cpuNsOf = (pid) =>
  readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]))
    .reduce((sum, each) => sum + each, 0);

export const startNats = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-cluster-'));
  const broker = await startBroker('nats', folder);
  return {
    port: broker.port,
    cpuNs: () => cpuNsOf(broker.pid),
    stop: async () => {
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const start = async (role, options) => {
  const child = startChild(new URL('process.mjs', import.meta.url), [JSON.stringify({ role, ...options })]);
  await child.next('ready');
  return child;
};

let accounts = 0;

/** Starts an owner and a follower for messages of at most so many frames of 200 B. */
export const startPair = async ({ nats, sender }, frames) => {
  const account = `pair-${(accounts += 1)}`;
  const options = { port: nats.port, account, baseUrl: sender.baseUrl, batchBytes: messageBytes(frames) };
  const owner = await start('replica', { ...options, name: 'owner' });
  const follower = await start('replica', { ...options, name: 'follower' });
  return { account, owner, follower, kill: () => Promise.all([owner.kill(), follower.kill()]) };
};

/** Resolves with the CPU time of the server in the time of a measurement, and the report of each process. */
const measure = async (processes, nats) => {
  for (const each of processes) each.send('begin');
  const before = nats.cpuNs();
  await delay(measuredSeconds * 1_000);
  const serverNs = nats.cpuNs() - before;
  return { serverNs, reports: await Promise.all(processes.map((each) => each.report())) };
};

/** Tells the sender how much has arrived at a process, so that it sends the next ones: four times in a window, because a report has a cost, too. */
export const reportFrom = (receiver, sender, { window }) => {
  receiver.on('received', ({ received }) => sender.send({ received }));
  if (window) receiver.send({ reportEvery: window / 4 });
};

const measurePlan = async ({ nats, sender }, plan, processes) => {
  sender.send({ plan });
  await delay(warmUpMs);
  const measured = await measure(processes, nats);
  sender.send({});
  return measured;
};

/** Sends frames. Returns the CPU time of a frame in each process in ns, the added delays in ms, and the frames a second. */
export const measurePair = async (running, plan, { owner, follower }) => {
  const { serverNs, reports } = await measurePlan(running, plan, [owner, follower]);
  const [ofOwner, ofFollower] = reports;
  if (ofFollower.gaps > 0 || ofFollower.count === 0)
    throw new Error(`The follower received ${ofFollower.count} frames, with ${ofFollower.gaps} gaps.`);
  const known = new Map(ofOwner.times);
  const delays = ofFollower.times.flatMap(([frame, at]) => (known.has(frame) ? [at - known.get(frame)] : []));
  return {
    owner: ofOwner.cpuNs / ofOwner.count,
    server: serverNs / ofFollower.count,
    follower: ofFollower.cpuNs / ofFollower.count,
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    rate: ofFollower.count / measuredSeconds,
  };
};

/** Measures the same frames in a process without a cluster. Returns the CPU time of a frame in ns. */
export const measureAlone = async (running, plan) => {
  const alone = await start('alone', { baseUrl: running.sender.baseUrl });
  reportFrom(alone, running.sender, plan);
  const { reports } = await measurePlan(running, plan, [alone]);
  await alone.kill();
  return reports[0].cpuNs / reports[0].count;
};
