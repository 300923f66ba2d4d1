export { clusterEngineTests, type ClusterEngineTest } from './engine/cluster-engine-tests.js';
export { startTradeFeedService } from './service/start-trade-feed-service.js';
export type { TradeFeedService } from './service/trade-feed-service.js';
export type { AccountOptions, TradeFeedAccount } from './service/account.js';
export type {
  Plan,
  ServiceLimits,
  ServiceSettings,
  ServiceSources,
  TradeFeedServiceOptions,
} from './options/service-options.js';
export { serviceDefaults } from './options/service-settings.js';
export type { Payload } from './connection/encode-frame.js';
export type { ErrorBody, Refusal, RefusalCode } from './http/refusal.js';
export type {
  ServiceConnectionClosed,
  ServiceEvent,
  ServiceHandshakeAccepted,
  ServiceHandshakeRefused,
  ServiceSourceEnded,
  ServiceTicketIssued,
  ServiceTicketRefused,
  ServiceTicketRevoked,
  ServiceViolation,
  ViolationRule,
} from './service/service-event.js';
export { pendingTransactions$ } from './sources/pending-transactions.js';
export { marketBatches$, type MarketBatchesOptions } from './sources/market-batches.js';
export type { SourceOptions } from './sources/source-options.js';
