export { feedMetrics, type FeedMetricsOptions } from './feed-metrics.js';
export type { ClusterOwner, RelayGate } from './instruments.js';
