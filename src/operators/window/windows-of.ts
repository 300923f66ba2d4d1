import { defer, filter, NEVER, type OperatorFunction, repeat, type SchedulerLike, switchMap, timer } from 'rxjs';
import { clampMs } from '../../protocol/rules.js';
import { gathered } from '../timing/collect.js';
import { WindowBook, type WindowShape } from './window-book.js';
import type { WindowContents } from './window-contents.js';

/**
 * Emits the windows of a feed, each when its time is over: by an event, or by the clock where the source sends no watermarks.
 *
 * No timer runs before the first event. A timer that fires early (Node's may, by up to 1 ms) is set again for the rest.
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
      return gathered(source, book, (turns) =>
        turns.pipe(
          switchMap(() => nextEnd.pipe(repeat())),
          filter(() => book.tick()),
        ),
      );
    });
