// Guards the receive path and the decode guard in CI: replay and micro alone, so that no kernel and no port decides.
//
//   npm run bench:check                 fails with 1 when a ratio is below its goal minus the margin
//   npm run bench:check -- --plain      measures the plain path in the place of the fast one: it must fail
import { interleaved, pairedRatio, sample } from '../lib/bench.mjs';
import { machine, machineLine } from '../lib/machine.mjs';
import { figure, table } from '../lib/table.mjs';
import { brokenOf, contendersOf, guards, leastOf, MARGIN } from './guards.mjs';
import { nodeArgs } from '../support/receiving.mjs';

/** How often a guard is measured before it counts as broken. */
const TIMES = 5;
const isPlain = process.argv.includes('--plain');
const files = {
  replay: new URL('../replay/sample.mjs', import.meta.url),
  decode: new URL('../micro/decode-sample.mjs', import.meta.url),
};
const keys = { replay: 'ns', decode: 'nsPerDocument' };

const run = ([file, name, ...args]) => {
  const measured = isPlain && name.startsWith('ours') ? 'oursPlain' : name;
  const rest = file === 'replay' ? [...args, 'text', 'short'] : args;
  return sample(files[file], [measured, ...rest], { nodeArgs });
};

/** Measures what some guards need; gives the ratio of each. */
const measure = async (some, rounds) => {
  const samples = await interleaved({
    title: 'check',
    rounds,
    contenders: Object.fromEntries(contendersOf(some).map((each) => [each.join(' '), () => run(each)])),
  });
  return ({ over, under }) => pairedRatio(samples[over.join(' ')], samples[under.join(' ')], keys[over[0]]);
};

const print = (some, ratioOf) =>
  console.log(
    table(
      ['guarded', 'goal', `goal - ${MARGIN * 100} %`, 'measured', 'min', 'max'],
      some.map((guard) => {
        const { median, min, max } = ratioOf(guard);
        return [guard.what, guard.atLeast, leastOf(guard), median, min, max];
      }),
    ),
  );

console.log(machineLine(machine()));
const ratioOf = await measure(guards, 5);
print(guards, ratioOf);

// Again, for longer: other work on the machine does not come each time, a slower receive path does.
let broken = brokenOf(guards, ratioOf);
for (let time = 1; broken.length > 0 && time < TIMES; time += 1) {
  const again = await measure(broken, 7);
  print(broken, again);
  broken = brokenOf(broken, again);
}

for (const { what, ratio, ...guard } of broken) {
  process.exitCode = 1;
  const [found, least] = [ratio.median, leastOf(guard)].map(figure);
  console.error(
    `TOO SLOW: ${what}: ${found}, ${TIMES} times in a row below ${least} (the goal of ${guard.atLeast} minus ${MARGIN * 100} %).`,
  );
}
console.log(process.exitCode === 1 ? 'The receive path or the decode guard became slower.' : 'As fast as it must be.');
