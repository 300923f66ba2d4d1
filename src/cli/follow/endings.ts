import { defer, fromEvent, map, merge, type Observable, of } from 'rxjs';
import { localError } from '../cli-error.js';
import type { CliContext, Output } from '../context.js';
import type { Ending } from './happening.js';

/** Emits when somebody or something ends the command from outside: a signal, the reader of stdout that is gone. */
export const endings$ = ({ interrupt$, stdout }: Pick<CliContext, 'interrupt$' | 'stdout'>): Observable<Ending> =>
  merge(interrupt$.pipe(map((signal) => ({ kind: 'interrupted' as const, signal }))), brokenOutput$(stdout));

/** Gives the ending that an output brought about, once it is broken. */
export const endingOf = ({ errored }: Output): Ending | undefined => (errored ? brokenBy(errored) : undefined);

const brokenOutput$ = (output: Output): Observable<Ending> =>
  defer(() => (output.errored ? of(output.errored) : fromEvent(output, 'error'))).pipe(map(brokenBy));

const brokenBy = (error: unknown): Ending =>
  (error as NodeJS.ErrnoException).code === 'EPIPE'
    ? { kind: 'output-closed' }
    : { kind: 'failed', error: localError('Cannot write to stdout', error) };
