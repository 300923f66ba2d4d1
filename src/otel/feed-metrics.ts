import type { Attributes, Meter, Tracer } from '@opentelemetry/api';
import { defer, EMPTY, type Observable, Subscription, tap } from 'rxjs';
import type { DropReport } from '../operators/bounded/drop-report.js';
import { type KnownStatus, noStatus, statusAfter } from '../operators/connection-status.js';
import { frameOf, isLifecycle } from '../operators/items/item.js';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import { anObject, checkRequired, objectWith, type Rule, validated } from '../protocol/rules.js';
import { measureAttempts } from './attempt-metrics.js';
import { countEvent } from './count-event.js';
import { type ClusterOwner, createFigures, type FeedFigures, observeFigures } from './feed-figures.js';
import { baseAttributes, createInstruments } from './instruments.js';

/** The options of {@link feedMetrics}. */
export interface FeedMetricsOptions {
  /** The meter that creates the instruments: `metrics.getMeter('my-app')`. Start the SDK before you call it. */
  readonly meter: Meter;
  /** The tracer that creates a span for each attempt: `trace.getTracer('my-app')`. @defaultValue none: no spans */
  readonly tracer?: Tracer | undefined;
  /** Attributes for all instruments and spans. Two operators with one meter need different ones. @defaultValue none */
  readonly attributes?: Attributes | undefined;
  /** The drop reports of bounded operators of this feed, for `trade_feed.frames.dropped`. @defaultValue none */
  readonly drops$?: Observable<DropReport> | undefined;
  /** The cluster that emits these events, for `trade_feed.cluster.*`. @defaultValue none */
  readonly cluster?: ClusterOwner | undefined;
}

/**
 * Measures a feed with OpenTelemetry: frames, bytes, the age of the newest frame, the state, reconnects, gaps and attempts. Emits everything unchanged.
 *
 * A frame adds to a tally, which the meter reads when it collects. The SDK is called for lifecycle events only, never for a frame. The instruments are
 * listed in the guide "Metrics and alerts".
 *
 * Create the operator once for each feed, at the start of the program: its counters continue in a new subscription, and the meter has no way to
 * forget it. Apply it before `shareFeed`, because each subscription counts its frames. Errors and completes with the source. Memory: the figures.
 *
 * ```ts
 * // source                    --ticket-requested--opened--frame--frame--disconnected--
 * // feedMetrics({ meter })    --ticket-requested--opened--frame--frame--disconnected--
 * ```
 *
 * @param options - see {@link FeedMetricsOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { metrics, trace } from '@opentelemetry/api';
 * import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
 * import { feedMetrics } from 'rx-trade-feed/otel';
 *
 * const measure = feedMetrics({ meter: metrics.getMeter('my-app'), tracer: trace.getTracer('my-app') });
 * tradeFeedEvents$('market')
 *   .pipe(measure, frames())
 *   .subscribe((frame) => console.log(frame.byteLength, 'bytes'));
 * ```
 */
export const feedMetrics = (options: FeedMetricsOptions): (<E>(source: Observable<E>) => Observable<E>) => {
  const { meter, tracer, attributes = {}, drops$ = EMPTY, cluster } = validated(options, rules);
  checkRequired({ meter }, { meter: rules.meter });
  const instruments = createInstruments(meter);
  const feeds = new Map<string, FeedFigures>();
  const { messages, io, frameAge, state, missed, dropped, owner, handovers } = instruments;
  meter.addBatchObservableCallback(
    (result) => {
      for (const figures of feeds.values()) observeFigures(result, instruments, figures, cluster);
    },
    [messages, io, frameAge, state, missed, dropped, owner, handovers],
  );
  const figuresOf = (feed: string): FeedFigures => {
    const known = feeds.get(feed) ?? createFigures(baseAttributes(feed, attributes));
    feeds.set(feed, known);
    return known;
  };

  return measuring(() => {
    const subscription = {};
    const drops = new Subscription();
    let figures: FeedFigures | undefined;
    let known: KnownStatus = noStatus;
    const attempts = measureAttempts(instruments, tracer, () => figures?.attributes ?? {});

    // Each subscription is of one feed, which its first event names.
    const begin = (feed: string): FeedFigures => {
      const begun = figuresOf(feed);
      for (const [other, is] of begun.states) if (is === 'stopped') begun.states.delete(other);
      drops.add(drops$.subscribe((report) => (begun.dropped += report.dropped)));
      return begun;
    };
    const follow = (event: unknown): void => {
      known = statusAfter(known, event);
      figures?.states.set(subscription, known.status?.state);
    };
    const addEvent = (event: ClusterLifecycleEvent): void => {
      if ('feed' in event) figures ??= begin(event.feed);
      attempts.event(event);
      follow(event);
      if (figures !== undefined) countEvent(instruments, figures, event);
    };
    return {
      next: (value) => {
        const frame = frameOf(value);
        if (frame === undefined) {
          if (isLifecycle(value)) addEvent(value);
          return;
        }
        figures ??= begin(frame.feed);
        figures.frames += 1;
        figures.bytes += frame.byteLength;
        figures.newestAt = frame.receivedAt;
        if (known.status?.state !== 'live') follow(value);
      },
      end: () => {
        attempts.end();
        drops.unsubscribe();
        if (known.status?.state !== 'stopped') figures?.states.delete(subscription);
      },
    };
  });
};

/** Receives the values of one subscription, and its end. */
interface Measurement {
  readonly next: (value: unknown) => void;
  readonly end: () => void;
}

const measuring =
  (begin: () => Measurement) =>
  <E>(source: Observable<E>): Observable<E> =>
    defer(() => {
      const { next, end } = begin();
      return source.pipe(tap<E>({ next, finalize: end }));
    });

const rules = {
  meter: objectWith('addBatchObservableCallback', 'a Meter of @opentelemetry/api'),
  tracer: objectWith('startSpan', 'a Tracer of @opentelemetry/api'),
  attributes: anObject,
  drops$: objectWith('subscribe', 'an Observable of drop reports'),
  cluster: anObject,
} satisfies Readonly<Record<keyof FeedMetricsOptions, Rule>>;
