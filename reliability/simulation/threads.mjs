// Runs seeds of a simulation in threads, in blocks, with a line of progress for each minute.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { addSums, noSums, runSeeds, simulation } from '../../test/support/simulation.mjs';

const blockRuns = 100;
const progressMs = 60_000;

if (!isMainThread) {
  const { simulate } = await simulation(workerData);
  parentPort.on('message', async ({ from, count }) => parentPort.postMessage(await runSeeds(simulate, from, count)));
}

/** Runs seeds of the simulation of a room. Resolves with the sums of `runs` seeds from `first` on. Prints the progress to stderr. */
export const runInThreads = async (room, first, runs, threads) => {
  const sums = noSums();
  const startedAt = performance.now();
  let [next, toldAt] = [first, startedAt];
  const end = first + runs;
  const tell = () => {
    if (performance.now() - toldAt < progressMs) return;
    toldAt = performance.now();
    const leftMinutes = (((toldAt - startedAt) / sums.runs) * (runs - sums.runs)) / 60_000;
    console.error(`${sums.runs} of ${runs} runs, ${sums.bad} bad, about ${Math.ceil(leftMinutes)} minutes left`);
  };
  const work = () =>
    new Promise((done, fail) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: room });
      const give = () => {
        if (next >= end) {
          void worker.terminate();
          done();
          return;
        }
        const count = Math.min(blockRuns, end - next);
        worker.postMessage({ from: next, count });
        next += count;
      };
      worker.on('error', fail).on('message', (block) => {
        addSums(sums, block);
        tell();
        give();
      });
      give();
    });
  await Promise.all(Array.from({ length: threads }, work));
  return sums;
};
