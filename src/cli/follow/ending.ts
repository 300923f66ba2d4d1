import { defer, fromEvent, lastValueFrom, map, merge, type Observable, of } from 'rxjs';
import { localError } from '../cli-error.js';
import { type CliContext, interrupts, type Output } from '../context.js';
import { ExitCode } from '../exit-code.js';
import type { Ended, Ending } from './event.js';
import type { Bounds, Step } from './follow.js';
import type { Tally } from './tally.js';

/** Emits when a signal arrives, when the reader of stdout exits, or when a write to stdout fails. */
export const endings$ = ({ interrupt$, stdout }: Pick<CliContext, 'interrupt$' | 'stdout'>): Observable<Ending> =>
  merge(interrupt$.pipe(map((signal) => ({ kind: 'interrupted' as const, signal }))), brokenOutput$(stdout));

/** Returns the ending that a broken output causes; `undefined` if the output is not broken. */
export const endingOf = ({ errored }: Output): Ending | undefined => (errored ? brokenBy(errored) : undefined);

const brokenOutput$ = (output: Output): Observable<Ending> =>
  defer(() => (output.errored ? of(output.errored) : fromEvent(output, 'error'))).pipe(map(brokenBy));

const brokenBy = (error: unknown): Ending =>
  (error as NodeJS.ErrnoException).code === 'EPIPE'
    ? { kind: 'output-closed' }
    : { kind: 'failed', error: localError('Cannot write to stdout', error) };

/** The ending of a command, and the final tally. */
export interface Outcome {
  readonly ending: Ending;
  readonly tally: Tally;
}

/** Resolves with the outcome of the last step, which is always `ended`. */
export const outcomeOf = async (steps$: Observable<Step>): Promise<Outcome> => {
  const { event, tally } = await lastValueFrom(steps$);
  return { ending: (event as Ended).ending, tally };
};

/**
 * Returns the exit code of an outcome.
 *
 * @throws the failure of a failed outcome
 */
export const finish = ({ ending, tally }: Outcome, bounds: Bounds): number => {
  if (ending.kind === 'failed') throw ending.error;
  return exitCodeOfEnding(ending, bounds, tally);
};

/**
 * Returns the exit code of an ending without a failure. Ctrl-C is the normal end of a run without bounds. A run with bounds is incomplete then,
 * and its exit code stops a script.
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
