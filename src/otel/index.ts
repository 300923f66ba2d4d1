/**
 * Reports a feed, a relay and a cluster as OpenTelemetry metrics.
 *
 * @packageDocumentation
 */
export { feedMetrics, type FeedMetricsOptions } from './feed-metrics.js';
export type { ClusterOwner, RelayGate } from './instruments.js';
