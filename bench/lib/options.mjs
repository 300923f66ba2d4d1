// What the command line of every bench may say: `--rounds N`, or `--quick`, a look that is never written down as a result.
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { rounds: { type: 'string' }, quick: { type: 'boolean', default: false } },
  strict: false,
  allowPositionals: true,
});
const asked = Number(values.rounds ?? (values.quick ? 3 : 9));
if (!Number.isInteger(asked) || asked < 1)
  throw new RangeError(`--rounds must be a whole number from 1, not ${values.rounds}.`);

/** How often each contender is measured. */
export const ROUNDS = asked;

/** Fewer rounds than a figure needs: shown, and kept out of `bench/results`. */
export const isQuick = ROUNDS < 9;
