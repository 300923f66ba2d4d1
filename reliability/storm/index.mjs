// Connects many clients to one service and restarts it. Checks that all clients reconnect, that their attempts don't come in waves,
// and that they keep the limits of the service.
//
//   npm run reliability -- storm [--clients 2000] [--seed 1]
import { parseArgs } from 'node:util';
import { ensureOpenFiles } from './open-files.mjs';
import { storm } from './storm.mjs';
import { reportStorm } from './storm-report.mjs';

const { values } = parseArgs({
  options: { clients: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' } },
});
const count = Number(values.clients);
const seed = Number(values.seed);
if (!(Number.isInteger(count) && count >= 20))
  throw new RangeError(`--clients must be a whole number of at least 20, not ${values.clients}.`);
if (!Number.isInteger(seed)) throw new RangeError(`--seed must be a whole number, not ${values.seed}.`);
ensureOpenFiles(count);

// A short run has few clients, and all times are shorter.
const isShort = count < 500;
const pace = isShort ? 0.15 : 1;
/** The default policy, with shorter times in a short run. */
const policy = { initialDelayMs: 500 * pace, maxDelayMs: 30_000 * pace, factor: 2, jitter: 'full' };
const limits = { ticketsPerWindow: 1, windowMs: isShort ? 1_000 : 8_000 };
const common = { count, seed, downMs: 3_000 * pace, apartMs: 3 * pace, roomAfterMs: 1_000 * pace, limits };
const scenarios = [
  { name: 'restart', title: 'shutdown (1001)', ending: 'shutdown', settleMs: 0, backoff: policy },
  { name: 'killed', title: 'killed', ending: 'killed', settleMs: 5_500, backoff: policy },
  // The control: without jitter the rules must be broken.
  {
    name: 'none',
    title: 'shutdown, no jitter',
    ending: 'shutdown',
    settleMs: 0,
    isControl: true,
    backoff: { ...policy, jitter: 'none' },
  },
];

const run = async (scenario) => {
  console.log(`${scenario.title}: ${count} clients`);
  return {
    ...scenario,
    ...(await storm({ ...common, ...scenario, ...(!scenario.isControl && { capacity: Math.floor(count / 2) }) })),
  };
};
const some = scenarios.filter(({ name }) => !isShort || name !== 'killed');
const storms = isShort ? await Promise.all(some.map(run)) : [];
if (!isShort) for (const scenario of some) storms.push(await run(scenario));
await reportStorm({ storms, policy, limits, seed, count, waveMs: 50 * pace, keep: !isShort });
