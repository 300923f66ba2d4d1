import { defer, EMPTY, filter, fromEvent, merge, type Observable } from 'rxjs';
import { pageGlobals } from './page-globals.js';

/**
 * Emits when a connection is likely to work again: the browser is online, the page is shown again from the back/forward cache, or the page becomes
 * visible.
 *
 * Emits nothing without a page, for example in Node. Adds its listeners on subscription.
 */
export const pageWakes$: Observable<Event> = defer(() =>
  pageGlobals.addEventListener === undefined
    ? EMPTY
    : merge(...names.map((name) => fromEvent<Event>(pageGlobals as EventTarget, name))),
).pipe(filter(({ type }) => type !== 'visibilitychange' || pageGlobals.document?.visibilityState === 'visible'));

// `visibilitychange` is an event of the document, and bubbles to the window.
const names = ['online', 'pageshow', 'visibilitychange'];
