import { concat, defer, finalize, ignoreElements, materialize, merge, type Observable, of, tap } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import type { ResumePoint } from '../resume-point.js';
import type { Notification } from './notification.js';
import { Outbox } from './outbox.js';
import type { Loss, Tab } from './tab.js';
import type { TabChannel } from './tab-channel.js';

/**
 * Leads the other tabs: has the one stream, posts what comes, and answers tabs that join. Goes on at the place that this tab has reached.
 *
 * @param loss - how the leader before has gone, if there was one
 * @param own$ - makes the stream of this page, from a place on
 */
export const lead$ = (
  tab: Tab,
  { messages$, post }: TabChannel,
  loss: Loss,
  own$: (place: ResumePoint) => Observable<Received>,
): Observable<Notification> =>
  defer(() => {
    tab.lead();
    const { term, place } = tab;
    const leads = () => post({ type: 'leads', term });
    const outbox = new Outbox(place, (from, to, events) =>
      post({ type: 'batch', term, from, to, shiftMs: place.shiftMs, events }),
    );
    const end = (error: unknown) => {
      outbox.flush();
      if (error === undefined || error instanceof TradeFeedError) post({ type: 'ended', term, failure: error });
    };
    leads();
    return merge(
      messages$.pipe(
        tap((message) => {
          if (message.type === 'join') post(tab.welcome(message.tab));
          if (message.type === 'ping') leads();
        }),
        ignoreElements(),
      ),
      concat(of(...tab.interrupted(loss)), own$(outbox.place())).pipe(
        tap((event) => outbox.add(event)),
        materialize(),
      ),
    ).pipe(
      tap((notification) => {
        if (notification.kind === 'C') end(undefined);
        if (notification.kind === 'E') end(notification.error);
      }),
      finalize(() => outbox.clear()),
    );
  });
