import { type Observable, of, ReplaySubject } from 'rxjs';
import { openConnection, type Ticket, type TradeFeedOptions } from '../../index.js';

/** A connection to examine. Each Observable errors with the failure that ended the connection. */
export interface StreamProbe {
  /** Emits when the connection is open. */
  readonly opened$: Observable<void>;
  /** Emits the time of the first frame after the opening, in ms. */
  readonly firstFrame$: Observable<number>;
  /** Closes the connection. */
  close(): void;
}

/** Opens a connection with a ticket, and stores what happens for later checks. */
export const streamProbe = (ticket: Ticket, options: TradeFeedOptions): StreamProbe => {
  const opened$ = new ReplaySubject<void>(1);
  const frames$ = new ReplaySubject<number>(1);
  let openedMs = 0;
  let hasFrame = false;
  const onOpen = (): number => {
    openedMs = performance.now();
    opened$.next();
    return 1;
  };
  const subscription = of(ticket)
    .pipe(openConnection(options, onOpen))
    .subscribe({
      next: () => {
        if (!hasFrame) frames$.next(performance.now() - openedMs);
        hasFrame = true;
      },
      error: (failure: unknown) => {
        opened$.error(failure);
        frames$.error(failure);
      },
    });
  return { opened$, firstFrame$: frames$, close: () => subscription.unsubscribe() };
};
