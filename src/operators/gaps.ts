import { defer, filter, mergeMap, type Observable } from 'rxjs';
import type { Gap } from '../protocol/event.js';
import { afterEvent, afterItem, noOutages } from '../protocol/outage.js';
import { isLifecycle, isWatermark, timeOf } from './items/item.js';

/**
 * Keeps the gaps: the outages that are over, and in which frames may be missing.
 *
 * Emits each `gap` event when the feed is open again. After a `retry` the feed emits no gap, so this operator emits one from the stop to
 * `opened`. Completes and errors with the source. Holds the outage that is not over.
 *
 * An item of your own that has the `type`, the time and the failure of a `gap` passes for one: give mapped items other names.
 *
 * ```ts
 * // source    --opened--frame--disconnected--reconnecting--opened--gap--frame--|
 * // gaps()    -----------------------------------------------------gap---------|
 * ```
 *
 * @example
 * ```ts
 * import { gaps, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(gaps())
 *   .subscribe(({ durationMs, failure }) => console.log(`${durationMs} ms without frames: ${failure.code}`));
 * ```
 */
export const gaps = (): ((source: Observable<unknown>) => Observable<Gap>) => (source) =>
  defer(() => {
    let outages = noOutages;
    let heardAt: number | undefined;
    return source.pipe(
      filter((event) => {
        const at = timeOf(event) ?? heardAt;
        if (isLifecycle(event)) outages = afterEvent(outages, event, heardAt);
        else if (at !== undefined) outages = afterItem(outages, at);
        if (!isWatermark(event)) heardAt = at;
        return outages.gaps.length > 0;
      }),
      mergeMap(() => outages.gaps),
    );
  });
