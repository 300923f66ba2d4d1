import type { MonoTypeOperatorFunction } from 'rxjs';
import { metricsOf } from '../otel/feed-metrics.js';
import type { ClusterOwner, RelayGate } from '../otel/instruments.js';
import type { ClusterEvent, FeedEvent } from '../protocol/event.js';
import type { Feed } from '../protocol/feed.js';
import { invalidOption } from '../protocol/validate.js';
import loadTelemetry from './load-telemetry.cjs';

interface MeasuredFeed {
  /** Its metrics are 0 from the start. */
  readonly feed: Feed;
  /** The name of the module, if it has one. */
  readonly name?: string | undefined;
  readonly cluster?: ClusterOwner | undefined;
  readonly relay?: RelayGate | undefined;
}

/**
 * Creates the operator of the option `telemetry`: with the global meter and tracer, which the application registers
 * when it starts the SDK.
 *
 * @throws TradeFeedError with code `invalid-options` if `@opentelemetry/api` is not installed
 */
export const telemetry = (
  { feed, name, cluster, relay }: MeasuredFeed,
  load = loadTelemetry,
): MonoTypeOperatorFunction<FeedEvent | ClusterEvent> => {
  const { metrics, trace } = apiFrom(load);
  const [meter, tracer] = [metrics.getMeter('rx-trade-feed'), trace.getTracer('rx-trade-feed')];
  const attributes = name === undefined ? {} : { 'trade_feed.name': name };
  return metricsOf({ meter, tracer, attributes, cluster, relay }, feed);
};

const apiFrom = (load: typeof loadTelemetry): ReturnType<typeof loadTelemetry> => {
  try {
    return load();
  } catch {
    throw invalidOption('telemetry', 'false, unless the package @opentelemetry/api is installed');
  }
};
