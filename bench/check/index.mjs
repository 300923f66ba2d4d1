// Checks that receiving, filtering and an import haven't become slower, for whoever touches a hot path. CI measures no time.
//
//   npm run bench -- check              exits with 1 if a ratio is below its goal minus the margin
//   npm run bench -- check --plain      measures the slower receive path instead of the fast one: it must fail
import { pairedRatio, sample } from '../lib/bench.mjs';
import { machine, machineLine } from '../lib/machine.mjs';
import { figure, table } from '../lib/table.mjs';
import { brokenOf, guards, hasReached, MARGIN, minimumOf } from './guards.mjs';

/** How often a guard is measured before it counts as broken. */
const TIMES = 5;
const isPlain = process.argv.includes('--plain');
const fileOf = (name) => new URL(`../${name}/sample.mjs`, import.meta.url);

const run = ([bench, name, ...args]) => {
  if (bench !== 'replay') return sample(fileOf(bench), [name, ...args]);
  const peer = isPlain && name.startsWith('ours') ? 'oursPlain' : name;
  return sample(fileOf('receiving'), [peer, ...args, 'text', 0]);
};

/**
 * Measures the pairs of some guards, in at most this number of rounds. A guard that has reached its goal isn't measured again.
 * Returns a function from a guard to its ratio.
 */
const measure = async (some, rounds) => {
  const samples = new Map(some.map((guard) => [guard, { over: [], under: [] }]));
  const ratioOf = (guard) => {
    const { over, under } = samples.get(guard);
    return pairedRatio(over, under, guard.over[0] === 'import' ? 'cpuMs' : 'ns');
  };
  let open = some;
  for (let round = 1; round <= rounds && open.length > 0; round += 1) {
    console.error(`check: round ${round} of at most ${rounds}, ${open.length} ratios`);
    for (const guard of open)
      for (const side of ['over', 'under']) samples.get(guard)[side].push(await run(guard[side]));
    open = open.filter((guard) => !hasReached(guard, ratioOf(guard)));
  }
  const rows = some.map((guard) => {
    const { median, min, max } = ratioOf(guard);
    return [guard.what, guard.atLeast, minimumOf(guard), median, min, max];
  });
  console.log(table(['ratio', 'goal', `goal - ${MARGIN * 100} %`, 'measured', 'min', 'max'], rows));
  return ratioOf;
};

console.log(machineLine(machine()));
let broken = brokenOf(guards, await measure(guards, 5));
// Measure again, for longer: other work on the machine isn't there each time, slower code is.
for (let time = 1; broken.length > 0 && time < TIMES; time += 1) broken = brokenOf(broken, await measure(broken, 7));

for (const { what, ratio, ...guard } of broken) {
  process.exitCode = 1;
  const [measured, minimum] = [ratio.median, minimumOf(guard)].map(figure);
  console.error(`TOO SLOW: ${what}: ${measured}, ${TIMES} times in a row below ${minimum}, the goal minus the margin.`);
}
if (broken.length === 0) console.log('Receiving, filtering and an import are fast enough.');
