import {
  connect,
  defer,
  endWith,
  filter,
  ignoreElements,
  interval,
  merge,
  mergeMap,
  type OperatorFunction,
} from 'rxjs';
import { pipe, type SchedulerLike, takeUntil } from 'rxjs';
import { EventTime } from '../operators/timing/event-time.js';
import { timeOf } from '../operators/items/item.js';
import type { RelayedEvent } from '../protocol/event.js';
import { nextSnapshot, openedIn, type Snapshot } from '../protocol/snapshot.js';

/**
 * Completes the events of a feed for the operator of a topic: adds `opened` before the first frame of a source without lifecycle events, and
 * watermarks to a source that sends none.
 */
export const topicInput = (scheduler: SchedulerLike): OperatorFunction<RelayedEvent, RelayedEvent> =>
  pipe(withOpened(), withWatermarks(scheduler));

/** How often a watermark is added, in ms. */
const watermarkMs = 100;

const withOpened = (): OperatorFunction<RelayedEvent, RelayedEvent> => (source) =>
  defer(() => {
    let snapshot: Snapshot = [];
    return source.pipe(
      mergeMap((event) => {
        if (event.type === 'stopped') return [event];
        const before = snapshot;
        snapshot = nextSnapshot(before, event);
        const opened = event.type === 'frame' && snapshot !== before ? openedIn(snapshot) : undefined;
        return opened === undefined ? [event] : [opened, event];
      }),
    );
  });

// An operator that delays values delays the watermarks too, so the topic knows the time that the operator has reached.
const withWatermarks =
  (scheduler: SchedulerLike): OperatorFunction<RelayedEvent, RelayedEvent> =>
  (source) =>
    defer(() => {
      const time = new EventTime(() => scheduler.now());
      let at = -Infinity;
      const watermark = (): readonly RelayedEvent[] => {
        const now = time.now();
        if (time.isWithoutClock || now <= at) return [];
        at = now;
        return [{ type: 'watermark', at }];
      };
      return source.pipe(
        connect((events$) =>
          merge(
            events$.pipe(
              mergeMap((event) => {
                const isFirst = at === -Infinity;
                time.receive(event, timeOf(event) ?? time.newestAt);
                return isFirst ? [...watermark(), event] : [event];
              }),
            ),
            interval(watermarkMs, scheduler).pipe(
              filter(() => at !== -Infinity),
              mergeMap(watermark),
              takeUntil(events$.pipe(ignoreElements(), endWith(undefined))),
            ),
          ),
        ),
      );
    });
