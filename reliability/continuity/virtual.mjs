// Runs cuts of each case of the simulation in threads.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { runSeeds, simulation } from '../../test/support/simulation.mjs';

/** How many connections one run cuts. Every second run has stops and no relays. */
const cutsPerRun = 20;

const cutCase = async (simulate, { case: of, number }, { cuts, seed }) => {
  const runs = Math.ceil(cuts / cutsPerRun);
  const run = (each) => simulate(each, { case: of, cuts: Math.min(cutsPerRun, cuts) });
  // Cases that differ in `deliveryDelayMs` only have the same cuts.
  return { case: of, ...(await runSeeds(run, seed + number * 1_000, runs)) };
};

if (!isMainThread) {
  const { simulate } = await simulation('continuity');
  parentPort.on('message', async (work) => parentPort.postMessage(await cutCase(simulate, work, workerData)));
}

const sameCuts = ({ perSecond, jitterMs, answerJitterMs }) => [perSecond, jitterMs, answerJitterMs].join();

/** Cuts each case `cuts` times. Resolves with the sums of each. */
export const cutInThreads = async (cases, { threads, ...options }) => {
  const worlds = [...new Set(cases.map(sameCuts))];
  const work = cases.map((each) => ({ case: each, number: worlds.indexOf(sameCuts(each)) }));
  const results = [];
  let next = 0;
  const inThread = () =>
    new Promise((done, fail) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: options });
      const give = () => {
        if (next >= work.length) {
          void worker.terminate();
          return done();
        }
        const index = next++;
        worker.once('message', (sums) => {
          results[index] = sums;
          if (results.filter(Boolean).length % 20 === 0)
            console.error(`${results.filter(Boolean).length} of ${work.length} cases`);
          give();
        });
        worker.postMessage(work[index]);
      };
      worker.on('error', fail);
      give();
    });
  await Promise.all(Array.from({ length: threads }, inThread));
  return results;
};
