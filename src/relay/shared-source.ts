import {
  defer,
  endWith,
  filter,
  finalize,
  interval,
  merge,
  mergeMap,
  Observable,
  type SchedulerLike,
  of,
  share,
  takeWhile,
} from 'rxjs';
import { EventTime } from '../operators/items/event-time.js';
import { type SourceError, timeOf } from '../operators/items/item.js';
import { fanOut } from '../operators/share-feed.js';
import { type ClusterEvent, isClusterEvent, type RelayedEvent, type Watermark } from '../protocol/event.js';
import { type FeedState, noFeed, snapshotOfNew } from '../protocol/feed-state.js';
import type { Place, PositionedFeed } from '../protocol/place.js';
import { isTime } from '../protocol/type-guards.js';
import { hasClock, stateAfter } from './event-log.js';

/** The source of a relay. It may also emit the values of another relay. */
export type RelaySource = Observable<RelayedEvent | ClusterEvent>;

/** Shares a source between the complete feed and all topics. Subscribes to an ended source only after `restart`. */
export class SharedSource implements PositionedFeed {
  /** Emits the events of the source. Late subscribers first receive the state of the feed. */
  readonly events$: Observable<RelayedEvent>;
  /**
   * Emits the events for an operator, with what a source leaves out: `opened` before a frame if there are no lifecycle
   * events, and watermarks. Operators that delay values delay watermarks too, which shows how far they've got.
   */
  readonly completed$: Observable<RelayedEvent>;
  /** The place after its last record, if the source reads a log. */
  position: Place | undefined;
  #current: Connection;
  readonly #created: () => Connection;

  /** @param onStop - called when the source errors, after its subscribers have received the error */
  constructor(source: RelaySource, scheduler: SchedulerLike, onStop: (error: unknown) => void) {
    this.#created = () => new Connection(() => scheduler.now());
    this.#current = this.#created();
    const shared$ = this.#shared$(source, onStop);
    // `merge` would cost each frame two calls.
    this.events$ = new Observable((subscriber) => {
      const { end, snapshot } = this.#current;
      for (const event of snapshot) subscriber.next(event);
      if (end === 'complete') subscriber.complete();
      else if (end !== undefined) subscriber.error(end.error);
      else subscriber.add(shared$.subscribe(subscriber));
    });
    this.completed$ = defer(() => {
      let markedAt = -Infinity;
      const mark = (at: number): readonly Watermark[] => {
        if (!this.#current.isTimedByClock || at <= markedAt) return [];
        markedAt = at;
        return [{ type: 'watermark', at }];
      };
      const completed = (event: RelayedEvent): readonly RelayedEvent[] => {
        const first = markedAt === -Infinity ? mark(timeOf(event) ?? -Infinity) : [];
        return [...first, ...this.#current.openingOf(event), event];
      };
      const ticks$ = interval(watermarkMs, scheduler).pipe(
        filter(() => markedAt > -Infinity),
        mergeMap(() => mark(this.#current.time.now())),
      );
      return untilFirstEnds(this.events$.pipe(mergeMap(completed)), ticks$);
    });
  }

  /** The error that ended the source; `undefined` while it's active, and after it has completed. */
  get failure(): SourceError | undefined {
    const { end } = this.#current;
    return end === 'complete' ? undefined : end;
  }

  restart(): void {
    if (this.#current.end !== undefined) this.#current = this.#created();
  }

  #shared$(source: RelaySource, onStop: (error: unknown) => void): Observable<RelayedEvent> {
    const follow = (event: (RelayedEvent | ClusterEvent) & Partial<PositionedFeed>): event is RelayedEvent => {
      // Watermarks have none, and a plain file that is read as a log has no line.
      if (event.position?.line) this.position = event.position;
      if (isClusterEvent(event)) return false;
      this.#current.receive(event);
      return true;
    };
    // Called before the subscribers receive the end. `tap` would cost a call for each frame.
    const ended = (end: Connection['end']) => {
      this.#current.end = end;
      return of(true);
    };
    return defer(() => {
      const current = (this.#current = this.#created());
      return source.pipe(
        filter(follow),
        // Calls `onStop` after the subscribers have received the error, because it may call `restart`.
        finalize(() => {
          if (current.end === undefined) this.#current = this.#created();
          else if (current.end !== 'complete') onStop(current.end.error);
        }),
      );
    }).pipe(
      share<RelayedEvent>({
        connector: fanOut,
        resetOnError: (error: unknown) => ended({ error }),
        resetOnComplete: () => ended('complete'),
      }),
    );
  }
}

/** How often a watermark is added, in ms. */
const watermarkMs = 100;

/** A subscription to the source: the state of the feed so far, its time, and how it ended. */
class Connection {
  end: SourceError | 'complete' | undefined;
  readonly time: EventTime;
  #state: FeedState = noFeed;
  /** The last event, if it's a frame that proved that the feed is open. */
  #opener: RelayedEvent | undefined;

  constructor(clock: () => number) {
    this.time = new EventTime(clock);
  }

  receive(event: RelayedEvent): void {
    const { newestAt } = this.time;
    this.#opener = event.type === 'frame' && this.#state.open === undefined ? event : undefined;
    this.#state = stateAfter(this.#state, event, newestAt);
    const at = event.type === 'frame' && isTime(event.receivedAt) ? event.receivedAt : timeOf(event);
    this.time.receive(event, at ?? newestAt);
  }

  /** Returns `opened` for a frame that no `opened` precedes. */
  openingOf(event: RelayedEvent): readonly RelayedEvent[] {
    return event === this.#opener ? this.#state.events : [];
  }

  get isTimedByClock(): boolean {
    return !this.time.isWithoutClock && hasClock(this.#state);
  }

  get snapshot(): readonly RelayedEvent[] {
    const { watermark } = this.#state;
    // When the source sends watermarks, a frame may be later than the last one.
    const snapshot = snapshotOfNew(this.#state, Math.max(this.time.newestAt, this.time.now()));
    return watermark === undefined ? snapshot : [...snapshot, { type: 'watermark', at: watermark }];
  }
}

/** Merges two streams until the first one completes. */
export const untilFirstEnds = <T>(first$: Observable<T>, second$: Observable<T>): Observable<T> =>
  merge(first$.pipe(endWith(ended)), second$).pipe(takeWhile((value): value is T => value !== ended));

const ended = Symbol('ended');
