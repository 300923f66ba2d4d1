import type { ConnectionRegistry } from '../connection/connection-registry.js';
import type { ServiceSettings } from '../options/service-options.js';
import type { TicketStore } from '../ticket/ticket-store.js';
import type { AccountRecord } from './account.js';
import type { EmitServiceEvent } from './service-event.js';

/** The state of one service. All endpoints use it. */
export interface ServiceState {
  readonly settings: ServiceSettings;
  /** The accounts by API key. An account may have several keys. Keys are stored only here. */
  readonly keys: Map<string, AccountRecord>;
  /** The accounts by id. */
  readonly accounts: Map<string, AccountRecord>;
  readonly tickets: TicketStore;
  readonly connections: ConnectionRegistry;
  readonly emit: EmitServiceEvent;
  capacity: number;
  credentialsFail: boolean;
  isShuttingDown: boolean;
  /** The `wss_url` of tickets. */
  wssUrl: string;
}
