import { distinctUntilChanged, fromEvent, map, merge, type Observable, startWith } from 'rxjs';

/**
 * Emits whether scripts of this page run: `false` before the browser freezes it, puts it into its back/forward cache or unloads it, `true`
 * when it is back, and `true` at first.
 */
export const awake$ = (page: EventTarget): Observable<boolean> =>
  merge(
    ...Object.entries(events).map(([type, isAwake]) =>
      fromEvent(page, type, { capture: true }).pipe(map(() => isAwake)),
    ),
  ).pipe(startWith(true), distinctUntilChanged());

// `freeze` and `resume` are events of the document: the window gets them while they go down to it.
const events = { pagehide: false, freeze: false, pageshow: true, resume: true };
