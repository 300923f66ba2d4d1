export { feedMetrics, type FeedMetricsOptions } from './feed-metrics.js';
export type { ClusterOwner } from './feed-figures.js';
