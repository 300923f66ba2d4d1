import { lastValueFrom, type Observable } from 'rxjs';
import { exitCodeOfEnding } from '../follow/exit-code-of-ending.js';
import type { Bounds, Step } from '../follow/follow.js';
import type { Ended, Ending } from '../follow/happening.js';
import type { Tally } from '../follow/tally.js';

/** How it ended, and all that had come by then. */
export interface Outcome {
  readonly ending: Ending;
  readonly tally: Tally;
}

/** Waits for the last step, which is always the ending. */
export const outcomeOf = async (steps$: Observable<Step>): Promise<Outcome> => {
  const { happening, tally } = await lastValueFrom(steps$);
  return { ending: (happening as Ended).ending, tally };
};

/** Gives the exit code of an outcome, or throws the failure that it was. */
export const finish = ({ ending, tally }: Outcome, bounds: Bounds): number => {
  if (ending.kind === 'failed') throw ending.error;
  return exitCodeOfEnding(ending, bounds, tally);
};
