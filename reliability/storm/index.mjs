// Connects many clients to one service and restarts it. Checks that all clients reconnect, that their attempts don't come in waves,
// and that they keep the limits of the service.
//
//   npm run reliability -- storm [--clients 2000] [--seed 1]
import { readOptions } from '../lib/options.mjs';
import { storm } from './storm.mjs';
import { reportStorm } from './storm-report.mjs';

const { clients: count, seed } = readOptions({ clients: 2_000, seed: 1 }, { least: { clients: 20 } });

// A client has one socket for the stream and may have one for ticket requests. Node raises its limit as far as the system allows.
const neededFiles = count * 2 + 200;
const allowedFiles = Number(process.report.getReport().userLimits?.open_files?.soft ?? Infinity);
if (allowedFiles < neededFiles) {
  console.error(`${count} clients need ${neededFiles} open files, but the system allows ${allowedFiles}.`);
  process.exit(2);
}

// A short run has few clients, and all times are shorter.
const isShort = count < 500;
const pace = isShort ? 0.15 : 1;
/** The default policy, with shorter times in a short run. */
const policy = { initialDelayMs: 500 * pace, maxDelayMs: 30_000 * pace, factor: 2, jitter: 'full' };
const limits = { ticketsPerWindow: 1, windowMs: isShort ? 1_000 : 8_000 };
const common = { count, seed, downMs: 3_000 * pace, apartMs: 3 * pace, roomAfterMs: 1_000 * pace, limits };
const usual = { ending: 'shutdown', settleMs: 0, backoff: policy };
const scenarios = [
  { ...usual, title: 'shutdown (1001)' },
  { ...usual, title: 'killed', ending: 'killed', settleMs: 5_500 },
  // The control: without jitter the rules must be broken.
  { ...usual, title: 'shutdown, no jitter', isControl: true, backoff: { ...policy, jitter: 'none' } },
];

const run = async (scenario) => {
  console.log(`${scenario.title}: ${count} clients`);
  const capacity = scenario.isControl ? undefined : Math.floor(count / 2);
  return { ...scenario, ...(await storm({ ...common, ...scenario, capacity })) };
};
const some = scenarios.filter(({ ending }) => !isShort || ending !== 'killed');
const storms = isShort ? await Promise.all(some.map(run)) : [];
if (!isShort) for (const scenario of some) storms.push(await run(scenario));
reportStorm({ storms, policy, limits, seed, count, waveMs: 50 * pace, keep: !isShort });
