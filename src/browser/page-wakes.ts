import { defer, EMPTY, filter, fromEvent, merge, type Observable } from 'rxjs';
import { page } from './page.js';

/**
 * Emits when a connection is likely to work again: the browser is online, it shows the page again from its cache, the page becomes visible.
 *
 * Emits nothing where there is no page, as in Node. Listens only while it is subscribed to.
 */
export const pageWakes$: Observable<Event> = defer(() =>
  page.addEventListener === undefined
    ? EMPTY
    : merge(...names.map((name) => fromEvent<Event>(page as EventTarget, name))),
).pipe(filter(({ type }) => type !== 'visibilitychange' || page.document?.visibilityState === 'visible'));

// `visibilitychange` is an event of the document, and bubbles to the window.
const names = ['online', 'pageshow', 'visibilitychange'];
