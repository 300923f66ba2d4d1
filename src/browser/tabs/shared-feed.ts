import {
  catchError,
  defer,
  delayWhen,
  dematerialize,
  EMPTY,
  endWith,
  finalize,
  map,
  NEVER,
  type Observable,
} from 'rxjs';
import { race, repeat, startWith, switchMap, tap, throwError } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { type ResumePoint, resumePoint } from '../resume-point.js';
import { awake$ } from './awake.js';
import { follow$, silence$ } from './follow.js';
import { heldLock$, type Locks } from './held-lock.js';
import { lead$ } from './lead.js';
import type { Notification } from './notification.js';
import { type Loss, Tab } from './tab.js';
import { openChannel } from './tab-channel.js';

/**
 * Receives a feed over one stream for all tabs of a browser that have the same address open.
 *
 * The tab that holds a lock of that name leads: it has the stream, and posts what comes to the others. When it goes, the lock passes to
 * the next tab, which goes on at the place that it has reached. A leader that is silent loses the lock. The end of the feed ends it in
 * all tabs. Where there are no locks (a page over plain `http:`, Node), a tab has a stream for itself.
 *
 * @param own$ - makes the stream of this page, from a place on
 */
export const sharedFeed$ = (
  settings: RelayFeedSettings,
  own$: (place: ResumePoint) => Observable<Received>,
): Observable<Received> =>
  defer(() => {
    const page = globalThis as unknown as Page;
    const place = resumePoint(settings);
    const locks = page.isSecureContext ? page.navigator?.locks : undefined;
    if (locks === undefined) return own$(place);
    const tab = new Tab(place, () => settings.scheduler.now());
    return awake$(page).pipe(
      // A page that is frozen can neither lead nor read its messages: it leaves, and joins again.
      switchMap((isAwake) => (isAwake ? member$(tab, locks, settings, own$) : NEVER)),
      dematerialize(),
      tap((event) => tab.emitted(event)),
      // A browser can refuse locks and channels to a page: to a frame of another site, for example.
      catchError((error: unknown) => (error instanceof DOMException ? own$(place) : throwError(() => error))),
    );
  });

/** What is used of a page. The types of Node do not have it. */
interface Page extends EventTarget {
  readonly isSecureContext?: boolean;
  readonly navigator?: { readonly locks?: Locks };
}

type Role = Loss | 'follow' | 'robbed';

const member$ = (
  tab: Tab,
  locks: Locks,
  settings: RelayFeedSettings,
  own$: (place: ResumePoint) => Observable<Received>,
): Observable<Notification> =>
  defer(() => {
    // The number is that of this protocol: tabs of an app's older version may be open as well.
    const name = `rx-trade-feed/tabs-1:${settings.url}`;
    const channel = openChannel(name);
    const lock$ = (steal: boolean, loss: Loss) => heldLock$(locks, name, steal).pipe(map((): Role => loss));
    return race(
      lock$(false, 'relay-lost'),
      silence$(tab, channel, settings).pipe(switchMap(() => lock$(true, 'relay-stalled'))),
    ).pipe(
      // The lock can be here sooner than the last messages of the leader that has released it.
      delayWhen(() => channel.caughtUp$),
      startWith<Role>('follow'),
      endWith<Role>('robbed'),
      switchMap((role) => {
        if (role === 'robbed') return EMPTY;
        return role === 'follow' ? follow$(tab, channel) : lead$(tab, channel, role, own$);
      }),
      repeat(),
      finalize(() => channel.close()),
    );
  });
