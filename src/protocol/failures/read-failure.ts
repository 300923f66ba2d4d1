import { type FailureFields, knownFields, TradeFeedError } from './trade-feed-error.js';

/**
 * Reads a failure from JSON: of a recording, or of a message of a relay.
 *
 * Its `meaning` and `advice` stay public. The writer of a recording or of a relay's stream also writes the payloads that pages receive.
 *
 * @param shiftMs - how far the clock of this machine is ahead of the writer's
 * @throws TypeError that says what is wrong
 */
export const readFailure = (value: unknown, shiftMs = 0): TradeFeedError => {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const known = knownFields(fields);
  const { message, previous } = fields;
  if (typeof message !== 'string' || !required.every((name) => name in known))
    throw new TypeError('a field of the failure is missing or wrong');
  const failure = new TradeFeedError({
    ...known,
    ...partsOf(message, known),
    endedAt: known.endedAt === undefined ? undefined : known.endedAt + shiftMs,
    previous: previous === undefined ? undefined : readFailure(previous, shiftMs),
  });
  // Another version may compose it differently.
  failure.message = message;
  return failure;
};

const required = ['code', 'stage', 'verdict', 'advice'];

const partsOf = (
  message: string,
  { meaning = '', advice }: Pick<FailureFields, 'meaning' | 'advice'>,
): Pick<FailureFields, 'summary' | 'detail'> => {
  const happened = message.endsWith(` ${advice}`) ? message.slice(0, -advice.length - 1) : message;
  const start = `${meaning.slice(0, -1)} (`;
  if (meaning === '' || !happened.startsWith(start) || !happened.endsWith(').')) return { summary: happened };
  return { summary: meaning, detail: happened.slice(start.length, -2) };
};
