/**
 * Lets several replicas share the one connection of an account.
 *
 * @packageDocumentation
 */
export { createFeedCluster, type FeedCluster } from './feed-cluster.js';
export type { ClusterElectionOptions, ClusterLineOptions, ClusterOptions } from './cluster-options.js';
export type { ClusterStatus } from './status.js';
export type { Head, Place, PositionedFeed } from '../protocol/place.js';
export type { ClusterEvent, EngineOperation, EngineRecovered, EngineRefused, OwnerChanged } from '../protocol/event.js';
export type { Role } from './election/election.js';
export type { ClusterEngine, EngineFailure, Reply, StoredKey } from './engine.js';
export type { HeadOf, LineExtent, LineSpec, LineStore, LineRefusal, Stored } from '../log/line-store.js';
export { memoryEngine } from './engine.js';
