// The options of every benchmark: `--rounds N`, or `--quick` for three rounds.
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
  strict: false,
  allowPositionals: true,
});
const rounds = Number(values.rounds ?? (values.quick ? 3 : 9));
if (!Number.isInteger(rounds) || rounds < 1)
  throw new RangeError(`--rounds must be a whole number of at least 1, not ${values.rounds}.`);

/** How often each contender is measured. */
export const ROUNDS = rounds;

/** Whether there are too few rounds for a result. A quick run doesn't change `bench/results`. */
export const isQuick = ROUNDS < 9;
