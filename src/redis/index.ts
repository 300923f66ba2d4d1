/**
 * Coordinates replicas over Redis.
 *
 * @packageDocumentation
 */
export { redisEngine, type RedisEngineOptions } from './redis-engine.js';
