export { natsEngine, type NatsEngineOptions } from './nats-engine.js';
