import { interrupts } from '../context.js';
import { ExitCode } from '../exit-code.js';
import type { Bounds } from './follow.js';
import type { Ending } from './happening.js';
import type { Tally } from './tally.js';

/**
 * Gives the exit code of an ending that is no failure. Ctrl-C is how an endless run ends, and not how one with a bound does:
 * a script must not go on with half of what it asked for.
 */
export const exitCodeOfEnding = (
  ending: Exclude<Ending, { kind: 'failed' }>,
  { count, durationMs }: Bounds,
  { connections }: Pick<Tally, 'connections'>,
): number => {
  switch (ending.kind) {
    case 'count-reached':
    case 'output-closed':
      return ExitCode.ok;
    case 'time-up':
      return count === undefined && connections > 0 ? ExitCode.ok : ExitCode.timeUp;
    case 'interrupted':
      return count === undefined && durationMs === undefined ? ExitCode.ok : interrupts[ending.signal];
  }
};
