// Subscriptions that come and go during the soak. Each has its own account at the service.
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { FrameAccount } from '../lib/frame-account.mjs';

/** How many of them are open at a time. */
const CONCURRENT = 3;

/** Keeps some subscriptions open. Each new one replaces the oldest. */
export class Churn {
  /** How many subscriptions were made. */
  subscriptions = 0;
  frames = 0;
  missedInGaps = 0;
  violations = [];
  #open = [];
  #optionsOf;
  #accounts;

  /**
   * @param optionsOf - returns the options for an account: 0, 1, …
   * @param accounts - the number of accounts; more than CONCURRENT, so that no connection replaces another (4001)
   */
  constructor(optionsOf, accounts) {
    this.#optionsOf = optionsOf;
    this.#accounts = accounts;
  }

  get areOpen() {
    return this.#open.every(({ isOpen }) => isOpen);
  }

  /** Adds a subscription, and removes the oldest if there are too many. */
  swap() {
    if (this.#open.length === CONCURRENT) this.#removeOldest();
    const client = { account: new FrameAccount(), isOpen: false, subscription: undefined };
    this.#open.push(client);
    client.subscription = tradeFeedEvents$('market', this.#optionsOf(this.subscriptions % this.#accounts)).subscribe({
      next: (event) => {
        client.account.event(event);
        if (event.type === 'opened') client.isOpen = true;
        if (event.type === 'disconnected') client.isOpen = false;
      },
      error: (error) =>
        this.violations.push({ rule: `stopped with ${error.code ?? error}`, number: this.subscriptions }),
    });
    this.subscriptions += 1;
  }

  /** Removes all subscriptions. */
  close() {
    while (this.#open.length > 0) this.#removeOldest();
  }

  #removeOldest() {
    const { account, subscription } = this.#open.shift();
    subscription.unsubscribe();
    this.frames += account.received;
    this.missedInGaps += account.missedInGaps;
    this.violations.push(...account.violations);
  }
}
