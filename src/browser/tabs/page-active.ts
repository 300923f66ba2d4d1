import { distinctUntilChanged, fromEvent, map, merge, type Observable, startWith } from 'rxjs';

/**
 * Emits whether the scripts of a page run: at first `true`, then `false` before the browser freezes the page, moves it into the back/forward cache
 * or unloads it, and `true` when the page is active again.
 */
export const pageActive$ = (page: EventTarget): Observable<boolean> =>
  merge(
    ...Object.entries(events).map(([type, isActive]) =>
      fromEvent(page, type, { capture: true }).pipe(map(() => isActive)),
    ),
  ).pipe(startWith(true), distinctUntilChanged());

// `freeze` and `resume` are events of the document. The window receives them in the capture phase.
const events = { pagehide: false, freeze: false, pageshow: true, resume: true };
