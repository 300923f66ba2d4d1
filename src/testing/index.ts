/**
 * Runs the whole service on loopback, with every failure on demand, for the tests of your app.
 *
 * @packageDocumentation
 */
export { clusterEngineTests, type ClusterEngineTest } from './cluster-engine-tests.js';
export { startTradeFeedService } from './start-service.js';
export type { AccountOptions, RestartOptions, TradeFeedAccount, TradeFeedService } from './service.js';
export type { Payload, Plan, ServiceLimits, ServiceSettings, ServiceSources } from './service-options.js';
export { serviceDefaults, type TradeFeedServiceOptions } from './service-options.js';
export type { EndpointAnswer, HandshakeAnswer, HandshakeBehavior, TicketEndpointBehavior } from './service-options.js';
export type { WaitingFrames } from './service-options.js';
export type { ErrorBody, Refusal, RefusalCode } from './answers.js';
export type { ServiceConnectionClosed, ServiceEvent, ServiceFault, ServiceHandshakeAccepted } from './service.js';
export type { ServiceHandshakeRefused, ServiceSourceEnded, ServiceTicketIssued } from './service.js';
export type { ServiceTicketRefused, ServiceTicketRevoked, ServiceViolation, ViolationRule } from './service.js';
export { marketBatches$, type MarketBatchesOptions, pendingTransactions$, type SourceOptions } from './sources.js';
