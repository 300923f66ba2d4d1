// Runs seeds of a simulation in threads.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { runSeeds, simulation } from '../../test/support/simulation.mjs';

if (!isMainThread) {
  const { simulate } = await simulation(workerData);
  parentPort.on('message', async ({ from, count, options }) =>
    parentPort.postMessage(await runSeeds((seed) => simulate(seed, options), from, count)),
  );
}

/**
 * Runs blocks of seeds, as the threads become free. Resolves with the sums of each block. Prints a line of progress to stderr each minute.
 *
 * @param room - the simulation
 * @param blocks - `{ from, count, options }`: the seeds and the options of their runs
 */
export const runInThreads = async (room, blocks, threads) => {
  const sums = [];
  const startedAt = performance.now();
  let [next, done, bad, toldAt] = [0, 0, 0, startedAt];
  const tell = () => {
    if (performance.now() - toldAt < 60_000) return;
    toldAt = performance.now();
    const leftMinutes = ((toldAt - startedAt) / done) * ((blocks.length - done) / 60_000);
    console.error(`${done} of ${blocks.length} blocks, ${bad} bad runs, about ${Math.ceil(leftMinutes)} minutes left`);
  };
  const work = () =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: room });
      const give = () => {
        if (next >= blocks.length) return resolve(worker.terminate());
        const at = next;
        next += 1;
        worker.once('message', (block) => {
          sums[at] = block;
          done += 1;
          bad += block.bad;
          tell();
          give();
        });
        worker.postMessage(blocks[at]);
      };
      worker.on('error', reject);
      give();
    });
  await Promise.all(Array.from({ length: threads }, work));
  return sums;
};
