import type { MonoTypeOperatorFunction } from 'rxjs';
import { feedMetrics } from '../otel/index.js';
import type { FeedEvent } from '../protocol/event.js';
import { invalidOption } from '../protocol/rules.js';
import loadTelemetry from './load-telemetry.cjs';

/**
 * Creates the operator of the option `telemetry`: with the global meter and tracer, which the application registers when it starts the SDK.
 *
 * @param name - the name of the feed, if it has one
 * @throws TradeFeedError with code `invalid-options` if `@opentelemetry/api` is not installed
 */
export const telemetry = (name: string | undefined, load = loadTelemetry): MonoTypeOperatorFunction<FeedEvent> => {
  const { metrics, trace } = loadApi(load);
  return feedMetrics({
    meter: metrics.getMeter(scope),
    tracer: trace.getTracer(scope),
    attributes: name === undefined ? {} : { 'trade_feed.name': name },
  });
};

const scope = 'rx-trade-feed';

const loadApi = (load: typeof loadTelemetry): ReturnType<typeof loadTelemetry> => {
  try {
    return load();
  } catch {
    throw invalidOption('telemetry', 'false, unless the package @opentelemetry/api is installed');
  }
};
