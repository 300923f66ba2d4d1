import type { ConnectionRegistry } from '../connection/connection-registry.js';
import type { ServiceSettings } from '../options/service-options.js';
import type { TicketBook } from '../ticket/ticket-book.js';
import type { AccountRecord } from './account.js';
import type { Tell } from './service-event.js';

/** Everything that one service knows; the endpoints share it. */
export interface ServiceState {
  readonly settings: ServiceSettings;
  /** The accounts by API key: an account has several, and no key is kept elsewhere. */
  readonly keys: Map<string, AccountRecord>;
  /** The accounts by id. */
  readonly accounts: Map<string, AccountRecord>;
  readonly tickets: TicketBook;
  readonly connections: ConnectionRegistry;
  readonly tell: Tell;
  capacity: number;
  credentialsFail: boolean;
  isShuttingDown: boolean;
  /** The address that tickets name. */
  wssUrl: string;
}
