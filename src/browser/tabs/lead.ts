import {
  concat,
  defer,
  finalize,
  ignoreElements,
  materialize,
  merge,
  type Observable,
  type ObservableNotification,
} from 'rxjs';
import { of, tap } from 'rxjs';
import type { Received } from '../../protocol/event-line.js';
import { TradeFeedError } from '../../protocol/failures/trade-feed-error.js';
import type { ResumePoint } from '../resume-point.js';
import { Outbox } from './outbox.js';
import type { TabChannel } from './tab-channel.js';
import type { LeaderLoss, TabState } from './tab-state.js';

/**
 * Leads the other tabs: receives the shared stream, posts its events, and answers tabs that join. Resumes at the point of this tab.
 *
 * @param loss - how the previous leader was lost
 * @param page$ - creates the stream of this page, which resumes at a point
 */
export const lead$ = (
  tab: TabState,
  { messages$, post }: TabChannel,
  loss: LeaderLoss,
  page$: (point: ResumePoint) => Observable<Received>,
): Observable<ObservableNotification<Received>> =>
  defer(() => {
    tab.lead();
    const { term, point } = tab;
    const leads = () => post({ type: 'leads', term });
    const outbox = new Outbox(point, (from, to, events) =>
      post({ type: 'batch', term, from, to, shiftMs: point.shiftMs, events }),
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
      concat(of(...tab.interrupted(loss)), page$(outbox.point())).pipe(
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
