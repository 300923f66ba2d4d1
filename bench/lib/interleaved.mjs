// Measures in the order A B C A B C …, so that a busy phase of the machine slows all contenders down.
import { loadavg } from 'node:os';
import { ROUNDS } from './options.mjs';
import { sample } from './sample.mjs';

/**
 * Measures the contenders in turn, `rounds` times. Resolves with the samples of each, by round. Prints its progress to stderr.
 */
export const interleaved = async ({ contenders, rounds = ROUNDS, title = 'bench' }) => {
  const names = Object.keys(contenders);
  const samples = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    console.error(`${title}: round ${round + 1} of ${rounds}, load ${loadavg()[0].toFixed(1)}`);
    for (const name of names) samples[name].push(await contenders[name]());
  }
  return samples;
};

/**
 * Measures cells in turn. A cell is a name, or a list of names and numbers: the arguments of `run`, which takes a sample of `file` unless it
 * is set. Returns a function from a cell to its samples.
 */
export const measured = async ({ cells, file, run = (...cell) => sample(file, cell), ...options }) => {
  const lists = cells.map((cell) => [cell].flat());
  const contenders = Object.fromEntries(lists.map((cell) => [cell.join(' '), () => run(...cell)]));
  const samples = await interleaved({ ...options, contenders });
  return (...cell) => samples[cell.join(' ')];
};
