import type { metrics, trace } from '@opentelemetry/api';
import { createRequire } from 'node:module';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { feedMetrics } from '../otel/index.js';
import type { FeedEvent } from '../protocol/event.js';
import { invalidOption } from '../protocol/rules.js';

/** The part of `@opentelemetry/api` that is used here. */
export interface TelemetryApi {
  readonly metrics: Pick<typeof metrics, 'getMeter'>;
  readonly trace: Pick<typeof trace, 'getTracer'>;
}

/**
 * Creates the operator of the option `telemetry`: with the global meter and tracer, which the application registers when it starts the SDK.
 *
 * @param name - the name of the feed, if it has one
 * @throws TradeFeedError with code `invalid-options` if `@opentelemetry/api` is not installed
 */
export const telemetry = (
  name: string | undefined,
  load: (name: string) => unknown = createRequire(import.meta.url),
): MonoTypeOperatorFunction<FeedEvent> => {
  const { metrics, trace } = loadApi(load);
  return feedMetrics({
    meter: metrics.getMeter(scope),
    tracer: trace.getTracer(scope),
    attributes: name === undefined ? {} : { 'trade_feed.name': name },
  });
};

const scope = 'rx-trade-feed';

// An optional package, and a constructor cannot wait for `import()`. The globals of the API are the same for `require` and `import`.
const loadApi = (load: (name: string) => unknown): TelemetryApi => {
  try {
    return load('@opentelemetry/api') as TelemetryApi;
  } catch {
    throw invalidOption('telemetry', 'false, unless the package @opentelemetry/api is installed');
  }
};
