import type { Plan } from '../options/service-options.js';
import type { FixedWindow } from '../ticket/fixed-window.js';

/** What {@link TradeFeedService.createAccount} takes. */
export interface AccountOptions {
  /** @defaultValue `free`, as normal active accounts start (contract, section 1) */
  readonly plan?: Plan | undefined;
  /** An inactive account gets 403 for its tickets. @defaultValue true */
  readonly active?: boolean | undefined;
  /** An account without the entitlement gets 403 for its tickets. @defaultValue true */
  readonly entitled?: boolean | undefined;
}

/**
 * An account of the service: a user of the contract, with one live connection across all its keys and both feeds.
 *
 * @see the contract, sections 1, 2.3 and 5
 */
export interface TradeFeedAccount {
  /** The id by which `events$` names the account: `account-1`, … */
  readonly id: string;
  /** The plan at the moment. */
  readonly plan: Plan;
  /** Makes another API key and gives it, this once. */
  createApiKey(): string;
  /** Closes the live connection with 4003 `access expired`; the next ticket is granted. */
  expireAccess(): void;
  /**
   * Takes the entitlement away: closes the live connection with 4003 `access revoked`, revokes the tickets that are still
   * issued, and gives 403 for further ones until {@link TradeFeedAccount.restoreAccess}.
   */
  revokeAccess(): void;
  /** Makes the account active and entitled. */
  restoreAccess(): void;
  /**
   * Changes the plan, also of the live connection. To `developer`: the frames that wait for their delay are sent at once, then
   * the new ones without delay. To `free`: the delay begins with the next frame. Either way the order stays.
   */
  setPlan(plan: Plan): void;
}

/** What the service knows of an account. */
export interface AccountRecord {
  readonly id: string;
  plan: Plan;
  active: boolean;
  entitled: boolean;
  /** The fixed window of its ticket requests. */
  window: FixedWindow | undefined;
}
