import { defer, filter, finalize, fromEvent, map, merge, NEVER, noop, type Observable } from 'rxjs';
import type { CliContext, Interrupt } from '../context.js';

const endKeys = /[q\x03]/i;

/**
 * Adds the keys q and Ctrl-C to the interrupts of a command that draws a full screen.
 *
 * While they are read, Ctrl-C sends no signal. The signal would also end the shell between npm and the command (`npm start`, `npx`), and npm would
 * return 130.
 */
export const withKeys = (context: CliContext): CliContext => ({
  ...context,
  interrupt$: merge(context.interrupt$, keys$(context)),
});

const keys$ = ({ stdin }: CliContext): Observable<Interrupt> =>
  defer(() => {
    if (!stdin.isTTY) return NEVER;
    stdin.setRawMode?.(true);
    const typed$ = fromEvent(stdin, 'data').pipe(
      filter((typed) => endKeys.test(String(typed))),
      map(() => 'SIGINT' as const),
    );
    // A terminal that is gone, for example after an ssh session was lost, causes errors, also at the end. Without a listener they would crash the
    // process.
    stdin.on('error', noop);
    const gone$ = fromEvent(stdin, 'error').pipe(map(() => 'SIGHUP' as const));
    return merge(typed$, gone$).pipe(
      finalize(() => {
        stdin.setRawMode?.(false);
        stdin.pause();
      }),
    );
  });
