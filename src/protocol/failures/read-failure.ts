import { isText } from '../type-guards.js';
import { knownFields, TradeFeedError } from './trade-feed-error.js';

/**
 * Reads a failure from the JSON of a recording or of a relay's message.
 *
 * `toPublic()` of the result keeps `meaning` and `advice`. They need no more trust than the payloads, which the same writer wrote.
 *
 * @param shiftMs - how far the clock of this machine is ahead of the writer's clock, in ms
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
  // The writer may use another version, which composes the message differently.
  failure.message = message as string;
  return failure;
};

/**
 * Checks fields that were received from another process or read from a file.
 *
 * @throws TypeError that names the kind of data and quotes nothing of it
 */
export const checkFields: (isValid: boolean, what: string) => asserts isValid = (isValid, what) => {
  if (!isValid) throw new TypeError(`a field of the ${what} is missing or wrong`);
};
