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
import { type ObservableNotification, race, repeat, startWith, switchMap, tap, throwError } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import { pageGlobals } from '../page-globals.js';
import type { RelayFeedSettings } from '../relay-feed-options.js';
import { type ResumePoint, resumePoint } from '../resume-point.js';
import { follow$, silence$ } from './follow.js';
import { tabLock$, type Locks } from './tab-lock.js';
import { lead$ } from './lead.js';
import { pageActive$ } from './page-active.js';
import { openChannel } from './tab-channel.js';
import { type LeaderLoss, TabState } from './tab-state.js';

/**
 * Receives a feed over one stream for all tabs of a browser with the same address.
 *
 * The tab that holds the lock of that address leads: it receives the stream, and posts the events to the other tabs. When the leader leaves, the next
 * tab receives the lock, and resumes at the id that it has reached. A silent leader loses the lock. When the feed ends, it ends in all tabs. A page
 * over plain `http:`, and Node, have a separate stream, because they have no locks or no secure context.
 *
 * @param page$ - creates the stream of this page, which resumes at a point
 */
export const sharedFeed$ = (
  settings: RelayFeedSettings,
  page$: (point: ResumePoint) => Observable<Received>,
): Observable<Received> =>
  defer(() => {
    const point = resumePoint(settings);
    const locks = pageGlobals.isSecureContext ? pageGlobals.navigator?.locks : undefined;
    if (locks === undefined) return page$(point);
    const tab = new TabState(point, () => settings.scheduler.now());
    return pageActive$(pageGlobals as EventTarget).pipe(
      // A frozen page can neither lead nor read messages. So it leaves, and joins again when it is active.
      switchMap((isActive) => (isActive ? member$(tab, locks, settings, page$) : NEVER)),
      dematerialize(),
      tap((event) => tab.emitted(event)),
      // A browser can refuse locks and channels, for example to a frame of another site.
      catchError((error: unknown) => (error instanceof DOMException ? page$(point) : throwError(() => error))),
    );
  });

/** The role of a tab: a leader after the loss of the previous one, a follower, or a leader whose lock was stolen. */
type Role = LeaderLoss | 'follower' | 'replaced';

const member$ = (
  tab: TabState,
  locks: Locks,
  settings: RelayFeedSettings,
  page$: (point: ResumePoint) => Observable<Received>,
): Observable<ObservableNotification<Received>> =>
  defer(() => {
    // The number is the version of this protocol: tabs with an older version of an app may be open.
    const name = `rx-trade-feed/tabs-2:${settings.url}`;
    const channel = openChannel(name);
    const lock$ = (steal: boolean, loss: LeaderLoss) => tabLock$(locks, name, steal).pipe(map((): Role => loss));
    return race(
      lock$(false, 'relay-lost'),
      silence$(tab, channel, settings).pipe(switchMap(() => lock$(true, 'relay-stalled'))),
    ).pipe(
      // The lock may arrive before the last messages of the previous leader.
      delayWhen(() => channel.caughtUp$),
      startWith<Role>('follower'),
      endWith<Role>('replaced'),
      switchMap((role) => {
        if (role === 'replaced') return EMPTY;
        return role === 'follower' ? follow$(tab, channel) : lead$(tab, channel, role, page$);
      }),
      repeat(),
      finalize(() => channel.close()),
    );
  });
