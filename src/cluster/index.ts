export { createFeedCluster, type FeedCluster } from './feed-cluster.js';
export type { ClusterElectionOptions, ClusterOptions } from './cluster-options.js';
export type { ClusterStatus } from './cluster-status.js';
export type { FeedPosition, PositionedFeed } from '../protocol/feed-position.js';
export type { OwnerChanged } from '../protocol/event.js';
export type { Role } from './election/election.js';
export type { ClusterEngine, Reply, StoredKey } from './engine/cluster-engine.js';
export { memoryEngine } from './engine/memory-engine.js';
