/**
 * Coordinates replicas over NATS, and keeps a feed in a log on JetStream.
 *
 * @packageDocumentation
 */
export { natsEngine, type NatsEngineOptions } from './nats-engine.js';
export { jetStreamLog, type JetStreamLogOptions } from './jet-stream-log.js';
export type { EngineLogOptions } from '../log/engine-log.js';
export type { FeedLog } from '../log/feed-log.js';
