import type { Attributes, Meter, Span, SpanKind, SpanStatusCode, Tracer } from '@opentelemetry/api';
import { defer, EMPTY, type Observable, Subscription, tap } from 'rxjs';
import type { DropReport } from '../operators/bounded/bounded-queue.js';
import { type ConnectionStatus, statusOf } from '../operators/connection-status.js';
import { FeedWatch } from '../operators/items/feed-watch.js';
import { unannouncedStop } from '../operators/items/follow-feed.js';
import { frameOf, isLifecycle, timeOf } from '../operators/items/item.js';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { failureIn, hasStopped } from '../protocol/feed-state.js';
import { anObject, checkRequired, objectWith, type Rule, validated } from '../protocol/validate.js';
import {
  type ClusterOwner,
  createInstruments,
  FeedFigures,
  type Instruments,
  type RelayGate,
  type SubscriptionState,
} from './instruments.js';

/** The options of {@link feedMetrics}. */
export interface FeedMetricsOptions {
  /** The meter that creates the instruments: `metrics.getMeter('my-app')`. Start the SDK before you call it. */
  readonly meter: Meter;
  /** The tracer that creates a span for each attempt: `trace.getTracer('my-app')`. @defaultValue none: no spans */
  readonly tracer?: Tracer | undefined;
  /** Attributes for all instruments and spans. Two operators on one meter need different ones. @defaultValue none */
  readonly attributes?: Attributes | undefined;
  /** The drop reports of bounded operators of this feed, for `trade_feed.frames.dropped`. @defaultValue none */
  readonly drops$?: Observable<DropReport> | undefined;
  /** The cluster that emits these events, for `trade_feed.cluster.*`. @defaultValue none */
  readonly cluster?: ClusterOwner | undefined;
  /** The relay that sends these events to clients, for `trade_feed.relay.*`. @defaultValue none */
  readonly relay?: RelayGate | undefined;
}

/**
 * Measures a feed with OpenTelemetry: frames, bytes, the age of the newest frame, the state, reconnects, gaps and
 * attempts. Emits everything unchanged.
 *
 * Frames only add to a tally, which the meter reads when it collects: the SDK is called for lifecycle events, never for
 * a frame. The guide "Metrics and alerts" lists the instruments.
 *
 * Create the operator once for each feed, when the program starts: its counters continue across subscriptions, and you
 * can't unregister it from the meter. Apply it before `shareFeed`, because each subscription counts its frames. Errors
 * and completes with the source. Memory: the figures.
 * ```ts
 * // t: ticket-requested, o: opened, f: frame, d: disconnected
 * // source                  --t--o--f--f--d--
 * // feedMetrics({ meter })  --t--o--f--f--d--
 * ```
 *
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { metrics, trace } from '@opentelemetry/api';
 * import { frames, tradeFeedEvents$ } from 'rx-trade-feed';
 * import { feedMetrics } from 'rx-trade-feed/otel';
 *
 * const measure = feedMetrics({
 *   meter: metrics.getMeter('my-app'),
 *   tracer: trace.getTracer('my-app'),
 * });
 * tradeFeedEvents$('market')
 *   .pipe(measure, frames())
 *   .subscribe((frame) => console.log(frame.byteLength, 'bytes'));
 * ```
 */
export const feedMetrics = (options: FeedMetricsOptions): (<E>(source: Observable<E>) => Observable<E>) =>
  metricsOf(options);

/** Measures like {@link feedMetrics}. If you name the feed, its metrics exist before the first subscription. */
export const metricsOf = (
  options: FeedMetricsOptions,
  feed?: string,
): (<E>(source: Observable<E>) => Observable<E>) => {
  const { meter, tracer, attributes = {}, drops$ = EMPTY, cluster, relay } = validated(options, rules);
  checkRequired({ meter }, { meter: rules.meter });
  const feeds = new Map<string, FeedFigures>();
  // A page that has never reached its relay doesn't know the name of its feed.
  const unnamed = new FeedFigures(undefined, attributes);
  let isUnnamedShown = false;
  const shown = (): readonly FeedFigures[] => {
    isUnnamedShown ||= [...unnamed.subscriptions].some(({ state }) => state !== undefined);
    return [...feeds.values(), ...(isUnnamedShown ? [unnamed] : [])];
  };
  const instruments = createInstruments(meter, shown, { cluster, relay });
  const figuresOf = (feed: string): FeedFigures => {
    const figures = feeds.get(feed) ?? new FeedFigures(feed, attributes);
    // Creates the counter before the first reconnect, so that queries read 0 instead of nothing.
    if (!feeds.has(feed)) instruments.reconnects.add(0, figures.attributes);
    feeds.set(feed, figures);
    return figures;
  };
  const named = feed ?? cluster?.feed;
  if (named !== undefined) figuresOf(named);

  return <E>(source: Observable<E>) =>
    defer(() => {
      const drops = new Subscription();
      const measured = new MeasuredFeed(instruments, tracer, unnamed);
      // A subscription has only one feed, and its first event names it.
      const nameFeed = (feed: string): void => {
        if (measured.figures !== unnamed) return;
        measured.join(figuresOf(feed));
        drops.add(drops$.subscribe(({ dropped }) => (measured.figures.dropped += dropped)));
      };
      if (cluster?.feed !== undefined) nameFeed(cluster.feed);
      const next = (value: unknown): void => {
        const named = frameOf(value) ?? (isLifecycle(value) ? value : undefined);
        if (named !== undefined && 'feed' in named) nameFeed(named.feed);
        measured.next(value);
      };
      const finalize = (): void => {
        measured.end();
        drops.unsubscribe();
      };
      return source.pipe(tap<E>({ next, error: (thrown: unknown) => measured.error(thrown), finalize }));
    });
};

/**
 * Measures one subscription: adds it to the figures of its feed, and creates a span for each attempt.
 *
 * Ends a span when the connection opens, not with the stream: spans are exported when they end, and a stream can last
 * for weeks. The next attempt's span names the failure that ended the stream.
 */
class MeasuredFeed implements SubscriptionState {
  figures: FeedFigures;
  readonly #instruments: Instruments;
  readonly #tracer: Tracer | undefined;
  readonly #watch = new FeedWatch();
  #status: ConnectionStatus | undefined;
  #attempt: { readonly from: number; readonly span: Span | undefined } | undefined;

  constructor(instruments: Instruments, tracer: Tracer | undefined, figures: FeedFigures) {
    this.#instruments = instruments;
    this.#tracer = tracer;
    this.figures = figures;
    this.join(figures);
  }

  get state(): SubscriptionState['state'] {
    return this.#status?.state ?? (this.#watch.waiting && 'connecting');
  }

  get code(): string | undefined {
    return this.#status?.state === 'live' ? undefined : (failureIn(this.#watch.state) ?? this.#watch.waiting)?.code;
  }

  get downMs(): number | undefined {
    return this.#watch.downMs;
  }

  join(figures: FeedFigures): void {
    this.figures.subscriptions.delete(this);
    for (const other of figures.subscriptions) if (other.state === 'stopped') figures.subscriptions.delete(other);
    figures.subscriptions.add(this);
    this.figures = figures;
  }

  next(value: unknown): void {
    const frame = frameOf(value);
    if (frame === undefined && isLifecycle(value)) return this.#addEvent(value);
    const before = this.#watch.state;
    this.#watch.item(value);
    if (this.#watch.state !== before) this.#addGaps();
    if (this.#status?.state !== 'live') this.#status = statusOf(this.#watch.state);
    if (frame === undefined) return;
    const { figures } = this;
    figures.frames += 1;
    figures.bytes += frame.byteLength;
    figures.newestAt = timeOf(frame) ?? figures.newestAt;
  }

  // If an operator before this one fails, for example `append`, no event reports it.
  error(error: unknown): void {
    const stopped = unannouncedStop(this.#watch.state, error);
    if (stopped) this.#addEvent(stopped);
  }

  end(): void {
    this.#attempt?.span?.end();
    this.#watch.end();
    if (!hasStopped(this.#watch.state)) this.figures.subscriptions.delete(this);
  }

  #addEvent(event: ClusterLifecycleEvent): void {
    const { figures } = this;
    const { reconnects } = this.#watch.state.totals;
    this.#watch.event(event);
    this.#addGaps();
    if ('failure' in event && this.#watch.state.totals.reconnects !== reconnects)
      this.#instruments.reconnects.add(1, this.#with(event.failure));
    this.#status = statusOf(this.#watch.state) ?? this.#status;
    if (event.type === 'ticket-requested') this.#begin(event.at);
    else if (event.type === 'ticket-issued') this.#attempt?.span?.addEvent('ticket-issued', undefined, event.at);
    else if (event.type === 'owner-changed') figures.handovers += 1;
    else if (event.type === 'opened') {
      this.#finish(event.at);
      // Until the first frame arrives, the silence counts from here.
      if (figures.newestAt === undefined) {
        figures.newestAt = event.at;
        figures.collected = { frames: figures.frames, atMs: performance.now() };
      }
    } else if (event.type === 'disconnected' || event.type === 'stopped') this.#finish(event.at, event.failure);
  }

  #addGaps(): void {
    for (const { durationMs, missed = 0, failure } of this.#watch.state.gaps) {
      this.figures.missed += missed;
      this.#instruments.gapDuration.record(durationMs / 1_000, this.#with(failure));
    }
  }

  #begin(at: number): void {
    this.#attempt?.span?.end(at);
    const previous = failureIn(this.#watch.state);
    const attributes = {
      ...this.figures.attributes,
      'trade_feed.attempt': this.#watch.state.totals.attempts,
      ...(previous && { 'trade_feed.previous.error.type': previous.code }),
    };
    // A root span: the request that subscribed ends long before the feed does.
    const options = { startTime: at, kind: client, root: true, attributes };
    this.#attempt = { from: at, span: this.#tracer?.startSpan('trade_feed.attempt', options) };
  }

  #finish(at: number, failure?: TradeFeedError): void {
    if (this.#attempt === undefined) return;
    const { from, span } = this.#attempt;
    this.#attempt = undefined;
    this.#instruments.attemptDuration.record(Math.max(0, at - from) / 1_000, this.#with(failure));
    if (failure) span?.setAttributes(attributesOf(failure)).setStatus({ code: error, message: failure.message });
    span?.end(at);
  }

  #with(failure: TradeFeedError | undefined): Attributes {
    return { ...this.figures.attributes, ...(failure && { 'error.type': failure.code }) };
  }
}

// Copies the values of the enums, so that this package needs only the types of the API.
const client: SpanKind.CLIENT = 2;
const error: SpanStatusCode.ERROR = 2;

const attributesOf = ({ code, stage, status }: TradeFeedError): Attributes => ({
  'error.type': code,
  'trade_feed.stage': stage,
  ...(status !== undefined && { 'http.response.status_code': status }),
});

const rules = {
  meter: objectWith('addBatchObservableCallback', 'a Meter of @opentelemetry/api'),
  tracer: objectWith('startSpan', 'a Tracer of @opentelemetry/api'),
  attributes: anObject,
  drops$: objectWith('subscribe', 'an Observable of drop reports'),
  cluster: anObject,
  relay: objectWith('status', 'a relay'),
} satisfies Readonly<Record<keyof FeedMetricsOptions, Rule>>;
