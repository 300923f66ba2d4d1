/**
 * Coordinates replicas over Redis, and keeps a feed in one of its streams.
 *
 * @packageDocumentation
 */
export { redisEngine, type RedisEngineOptions } from './redis-engine.js';
export { redisLog, type RedisLogOptions } from './redis-log.js';
export type { EngineLogOptions } from '../log/engine-log.js';
export type { FeedLog } from '../log/feed-log.js';
