import { defer, filter, mergeMap, type Observable } from 'rxjs';
import type { Gap } from '../protocol/event.js';
import { FeedFollower } from './items/follow-feed.js';

/**
 * Emits the gaps: outages that are over and may have cost you frames.
 *
 * Emits each `gap` event once the new connection is complete. After a `retry` the feed emits no gap, so this operator
 * emits one from the stop on. Completes and errors with the source. Memory: the ongoing outage. An item you map to the
 * `type`, time and failure of a `gap` counts as a gap as well: choose other names for your own items.
 * ```ts
 * // source    --opened--frame--disconnected--reconnecting--opened--gap+frame--|
 * // gaps()    -----------------------------------------------------gap--------|
 * ```
 *
 * @example
 * ```ts
 * import { gaps, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(gaps())
 *   .subscribe(({ failure }) =>
 *     console.log(`frames may be missing: ${failure.code}`),
 *   );
 * ```
 */
export const gaps = (): ((source: Observable<unknown>) => Observable<Gap>) => (source) =>
  defer(() => {
    const feed = new FeedFollower();
    return source.pipe(
      filter((event) => feed.next(event).gaps.length > 0),
      mergeMap(() => feed.state.gaps),
    );
  });
