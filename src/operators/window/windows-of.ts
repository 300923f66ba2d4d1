import { defer, filter, NEVER, type OperatorFunction, repeat, type SchedulerLike, switchMap, timer } from 'rxjs';
import { clampMs } from '../../protocol/rules.js';
import { collect$ } from '../timing/collect.js';
import { WindowBook, type WindowShape } from './window-book.js';
import type { WindowContents } from './window-contents.js';

/**
 * Emits the windows of a feed, each when its time is over: at an event, or by the clock if the source has no watermarks.
 *
 * No timer runs before the first event. A timer of Node can fire up to 1 ms early; then another timer waits for the rest.
 */
export const windowsOf =
  (
    shape: WindowShape,
    contents: WindowContents<unknown, unknown, unknown>,
    scheduler: SchedulerLike,
  ): OperatorFunction<unknown, unknown> =>
  (source) =>
    defer(() => {
      const book = new WindowBook<unknown, unknown, unknown>(shape, contents, () => scheduler.now());
      const nextEnd = defer(() => {
        const waitMs = book.waitMs();
        return waitMs === Infinity ? NEVER : timer(clampMs(Math.ceil(waitMs)), scheduler);
      });
      return collect$(source, book, (turns) =>
        turns.pipe(
          switchMap(() => nextEnd.pipe(repeat())),
          filter(() => book.tick()),
        ),
      );
    });
