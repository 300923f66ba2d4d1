import { filter, type Observable } from 'rxjs';
import type { Gap } from '../protocol/event.js';
import { isLifecycle } from './stream/item.js';

/**
 * Keeps the gaps: the outages that are over, and in which frames may be missing.
 *
 * Emits each `gap` event when the feed is open again. Completes and errors with the source. Holds nothing.
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
export const gaps = (): ((source: Observable<unknown>) => Observable<Gap>) => (source) => source.pipe(filter(isGap));

const isGap = (event: unknown): event is Gap => isLifecycle(event) && event.type === 'gap';
