import { knownFields, TradeFeedError } from './failure.js';

/**
 * Reads a failure that was written as JSON: into a recording, or by a relay.
 *
 * Its `meaning` and `advice` stay public words: the writer of a recording or of a relay's stream also writes the payloads that pages receive.
 *
 * @param shiftMs - by how much the clock of this machine is ahead of the writer's
 * @throws TypeError that says what is wrong with it
 */
export const readFailure = (value: unknown, shiftMs = 0): TradeFeedError => {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const known = knownFields(fields);
  if (!required.every((name) => name in known)) throw new TypeError('a field of its failure is wrong');
  const { previous } = fields;
  return new TradeFeedError({
    ...known,
    endedAt: known.endedAt === undefined ? undefined : known.endedAt + shiftMs,
    previous: previous === undefined ? undefined : readFailure(previous, shiftMs),
  });
};

const required = ['code', 'message', 'stage', 'verdict', 'advice'];
