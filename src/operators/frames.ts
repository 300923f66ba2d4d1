import { filter, type Observable } from 'rxjs';
import { isLifecycle, type ItemOf } from './items/item.js';

/**
 * Keeps the frames, or what was made of them, and leaves out what happens around them.
 *
 * Emits what is no lifecycle event. Completes and errors with the source. Holds nothing.
 *
 * An item of your own is told from an event by its `type` and time: one such as `{ type: 'opened', at: 1 }` passes for an event, and is
 * left out. Give mapped items other names.
 *
 * ```ts
 * // source      --opened--frame--frame--disconnected--gap--frame--|
 * // frames()    ----------frame--frame---------------------frame--|
 * ```
 *
 * @example
 * ```ts
 * import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market').pipe(frames()).subscribe((frame) => console.log(frame.text()));
 * ```
 */
export const frames = (): (<E>(source: Observable<E>) => Observable<ItemOf<E>>) => (source) =>
  source.pipe(filter(isItem));

const isItem = <E>(event: E): event is ItemOf<E> => !isLifecycle(event);
