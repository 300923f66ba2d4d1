import { filter, type Observable } from 'rxjs';
import { isLifecycle, type ItemOf } from './items/item.js';

/**
 * Emits the frames, or the values created from them, and drops lifecycle events.
 *
 * Completes and errors with the source. Memory: none. Lifecycle events are recognized by `type` and time, so an item
 * you map to `{ type: 'opened', at: 1 }` is dropped as well: choose other names for your own items.
 * ```ts
 * // source      --opened--frame--frame--disconnected--gap--frame--|
 * // frames()    ----------frame--frame---------------------frame--|
 * ```
 *
 * @example
 * ```ts
 * import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(frames())
 *   .subscribe((frame) => console.log(frame.text()));
 * ```
 */
export const frames = (): (<E>(source: Observable<E>) => Observable<ItemOf<E>>) => (source) =>
  source.pipe(filter(isItem));

const isItem = <E>(event: E): event is ItemOf<E> => !isLifecycle(event);
