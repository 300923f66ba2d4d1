import { isText } from '../type-guards.js';
import { knownFields, TradeFeedError } from './trade-feed-error.js';

/**
 * Reads a failure from JSON: of a recording, or of a message of a relay.
 *
 * Its `meaning` and `advice` stay public. The writer of a recording or of a relay's stream also writes the payloads that pages receive.
 *
 * @param shiftMs - how far the clock of this machine is ahead of the writer's
 * @throws TypeError that describes the error
 */
export const readFailure = (value: unknown, shiftMs = 0): TradeFeedError => {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const known = knownFields(fields);
  const { code, stage, verdict, advice, endedAt } = known;
  const { message, previous } = fields;
  checkFields([message, code, stage, verdict, advice].every(isText), 'failure');
  const failure = new TradeFeedError({
    ...known,
    summary: (message as string).replace(` ${advice}`, ''),
    endedAt: endedAt === undefined ? undefined : endedAt + shiftMs,
    previous: previous === undefined ? undefined : readFailure(previous, shiftMs),
  });
  // Another version may compose it differently.
  failure.message = message as string;
  return failure;
};

/**
 * Checks the fields of data from elsewhere.
 *
 * @throws TypeError that names the data and shows none of it
 */
export const checkFields: (isValid: boolean, what: string) => asserts isValid = (isValid, what) => {
  if (!isValid) throw new TypeError(`a field of the ${what} is missing or wrong`);
};
