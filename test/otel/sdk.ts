import type { Attributes } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';

/** One series of a metric. A histogram has its count and its sum. */
export interface Series {
  readonly attributes: Attributes;
  readonly value: number | { readonly count: number; readonly sum: number };
}

/** A metric as the SDK exports it. */
export interface Metric {
  readonly unit: string;
  readonly series: readonly Series[];
}

/** Starts the real SDK with exporters in memory. */
export const startSdk = () => {
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  // The tests collect, rather than the clock.
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 2 ** 31 - 1 });
  const meters = new MeterProvider({ readers: [reader] });
  const spanExporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] });

  return {
    providers: { meters, tracers },
    options: { meter: meters.getMeter('test'), tracer: tracers.getTracer('test') },
    spans: () => spanExporter.getFinishedSpans(),
    /** Collects all metrics, by name. */
    collect: async (): Promise<Readonly<Record<string, Metric>>> => {
      metricExporter.reset();
      await meters.forceFlush();
      const [collected] = metricExporter.getMetrics();
      const metrics = collected?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
      return Object.fromEntries(
        metrics.map(({ descriptor, dataPoints, dataPointType }) => [
          descriptor.name,
          {
            unit: descriptor.unit,
            series: dataPoints.map(({ attributes, value }) => ({
              attributes,
              value: dataPointType === DataPointType.HISTOGRAM ? totalOf(value as Histogram) : (value as number),
            })),
          },
        ]),
      );
    },
    [Symbol.asyncDispose]: async () => {
      await meters.shutdown();
      await tracers.shutdown();
    },
  };
};

const totalOf = ({ count, sum = 0 }: Histogram) => ({ count, sum });
