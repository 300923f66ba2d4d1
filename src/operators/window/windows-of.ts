import { defer, filter, NEVER, type OperatorFunction, repeat, type SchedulerLike, switchMap, timer } from 'rxjs';
import { clampMs } from '../../protocol/rules.js';
import { collect$ } from '../timing/collect.js';
import { TimeWindowCollector, type WindowShape } from './time-window-collector.js';
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
      const collector = new TimeWindowCollector<unknown, unknown, unknown>(shape, contents, () => scheduler.now());
      const nextEnd = defer(() => {
        const waitMs = collector.waitMs();
        return waitMs === Infinity ? NEVER : timer(clampMs(Math.ceil(waitMs)), scheduler);
      });
      return collect$(source, collector, (turns) =>
        turns.pipe(
          switchMap(() => nextEnd.pipe(repeat())),
          filter(() => collector.tick()),
        ),
      );
    });
