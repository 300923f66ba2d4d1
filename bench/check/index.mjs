// Checks that receiving, filtering and an import haven't become slower, for whoever touches a hot path: CI measures no time. It uses samples of replay, filter and import that need no network.
//
//   npm run bench -- check              exits with 1 if a ratio is below its goal minus the margin
//   npm run bench -- check --plain      measures the slower receive path instead of the fast one: it must fail
import { interleaved, pairedRatio, sample } from '../lib/bench.mjs';
import { machine, machineLine } from '../lib/machine.mjs';
import { figure, table } from '../lib/table.mjs';
import { brokenOf, contendersOf, guards, hasReached, MARGIN, minimumOf } from './guards.mjs';
import { receiveSample } from '../support/receiving.mjs';

/** How often a guard is measured before it counts as broken. */
const TIMES = 5;
const isPlain = process.argv.includes('--plain');
const files = {
  replay: receiveSample,
  filter: new URL('../filter/sample.mjs', import.meta.url),
  import: new URL('../import/sample.mjs', import.meta.url),
};
const keys = { replay: 'ns', filter: 'ns', import: 'cpuMs' };

const run = ([file, name, ...args]) => {
  if (file !== 'replay') return sample(files[file], [name, ...args]);
  const measured = isPlain && name.startsWith('ours') ? 'oursPlain' : name;
  return sample(files[file], [measured, ...args, 'text', 0]);
};

/**
 * Measures the samples of some guards, in at most this number of rounds. A guard that has reached its goal isn't measured again.
 * Returns a function from a guard to its ratio.
 */
const measure = async (some, rounds) => {
  const samplesOf = new Map(some.map(({ id }) => [id, { over: [], under: [] }]));
  const ratioOf = ({ id, over }) => pairedRatio(samplesOf.get(id).over, samplesOf.get(id).under, keys[over[0]]);
  let open = some;
  for (let round = 0; round < rounds && open.length > 0; round += 1) {
    const contenders = Object.fromEntries(contendersOf(open).map((each) => [each.join(' '), () => run(each)]));
    const samples = await interleaved({ title: 'check', rounds: 1, contenders });
    for (const { id, over, under } of open) {
      samplesOf.get(id).over.push(...samples[over.join(' ')]);
      samplesOf.get(id).under.push(...samples[under.join(' ')]);
    }
    open = open.filter((guard) => !hasReached(guard, ratioOf(guard)));
  }
  return ratioOf;
};

const print = (some, ratioOf) =>
  console.log(
    table(
      ['ratio', 'goal', `goal - ${MARGIN * 100} %`, 'measured', 'min', 'max'],
      some.map((guard) => {
        const { median, min, max } = ratioOf(guard);
        return [guard.what, guard.atLeast, minimumOf(guard), median, min, max];
      }),
    ),
  );

console.log(machineLine(machine()));
const ratioOf = await measure(guards, 5);
print(guards, ratioOf);

// Measure again, for longer: other work on the machine isn't there each time, slower code is.
let broken = brokenOf(guards, ratioOf);
for (let time = 1; broken.length > 0 && time < TIMES; time += 1) {
  const again = await measure(broken, 7);
  print(broken, again);
  broken = brokenOf(broken, again);
}

for (const { what, ratio, ...guard } of broken) {
  process.exitCode = 1;
  const [measured, minimum] = [ratio.median, minimumOf(guard)].map(figure);
  console.error(
    `TOO SLOW: ${what}: ${measured}, ${TIMES} times in a row below ${minimum} (the goal of ${guard.atLeast} minus ${MARGIN * 100} %).`,
  );
}
console.log(
  process.exitCode === 1
    ? 'Receiving, filtering or an import became slower.'
    : 'Receiving, filtering and an import are fast enough.',
);
