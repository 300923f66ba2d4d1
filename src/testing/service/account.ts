import type { Plan } from '../options/service-options.js';
import type { FixedWindow } from '../ticket/fixed-window.js';

/** The options of {@link TradeFeedService.createAccount}. */
export interface AccountOptions {
  /** The plan of the account. @defaultValue `free`, as for new accounts in the contract (section 1) */
  readonly plan?: Plan | undefined;
  /** Whether the account is active. Ticket requests of an inactive account get 403. @defaultValue true */
  readonly active?: boolean | undefined;
  /** Whether the account is entitled to the stream. Without it, ticket requests get 403. @defaultValue true */
  readonly entitled?: boolean | undefined;
}

/**
 * An account of the service: a user of the contract, with at most one live connection for all its keys and both feeds.
 *
 * @see the contract, sections 1, 2.3 and 5
 */
export interface TradeFeedAccount {
  /** The id of the account in `events$`: `account-1`, … */
  readonly id: string;
  /** The current plan. */
  readonly plan: Plan;
  /** Creates an API key and returns it. The key cannot be read again. */
  createApiKey(): string;
  /** Closes the live connection with 4003 `access expired`. The next ticket request succeeds. */
  expireAccess(): void;
  /**
   * Removes the entitlement: closes the live connection with 4003 `access revoked`, revokes all unused tickets, and answers ticket requests with 403
   * until {@link TradeFeedAccount.restoreAccess}.
   */
  revokeAccess(): void;
  /** Makes the account active and entitled. */
  restoreAccess(): void;
  /**
   * Changes the plan, also for the live connection. `developer`: delayed frames are sent at once, and further frames without delay. `free`: the delay
   * begins with the next frame. The order of frames does not change.
   */
  setPlan(plan: Plan): void;
}

/** The data of an account in the service. */
export interface AccountRecord {
  readonly id: string;
  plan: Plan;
  active: boolean;
  entitled: boolean;
  /** The fixed window of the account's ticket requests. */
  window: FixedWindow | undefined;
}
