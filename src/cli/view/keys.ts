import { catchError, defer, filter, finalize, fromEvent, map, merge, mergeMap, NEVER, noop } from 'rxjs';
import { type Observable, of, throwError } from 'rxjs';
import type { CliContext, Interrupt } from '../context.js';

const endKeys = /[q\x03]/i;

/**
 * Adds the keys q and Ctrl-C to the interrupts of a command that draws a full screen.
 *
 * While they are read, Ctrl-C sends no signal. The signal would also end the shell between npm and the command (`npm start`, `npx`), and npm would
 * return 130.
 *
 * @param typed$ - the keys, if the command also reads others
 */
export const withKeys = (context: CliContext, typed$ = keys$(context)): CliContext => ({
  ...context,
  interrupt$: merge(context.interrupt$, interruptsOf(typed$)),
});

const interruptsOf = (typed$: Observable<string>): Observable<Interrupt> =>
  typed$.pipe(
    filter((key) => endKeys.test(key)),
    map(() => 'SIGINT' as const),
    catchError(() => of('SIGHUP' as const)),
  );

/**
 * Emits each key of a terminal. Emits nothing if stdin is not a terminal. Errors when the terminal is gone, for example after an ssh session was
 * lost.
 */
export const keys$ = ({ stdin }: Pick<CliContext, 'stdin'>): Observable<string> =>
  defer(() => {
    if (!stdin.isTTY) return NEVER;
    stdin.setRawMode?.(true);
    const typed$ = fromEvent(stdin, 'data').pipe(mergeMap((typed) => String(typed)));
    // A terminal that is gone causes errors, also at the end. Without a listener they would crash the process.
    stdin.on('error', noop);
    const gone$ = fromEvent(stdin, 'error').pipe(mergeMap((error) => throwError(() => error)));
    return merge(typed$, gone$).pipe(
      finalize(() => {
        stdin.setRawMode?.(false);
        stdin.pause();
      }),
    );
  });
