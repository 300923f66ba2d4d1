// Subscriptions that come and go, each with an account of its own.
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { Ledger } from './ledger.mjs';

/** How many are there at a time. */
const PRESENT = 3;

/** Keeps some subscriptions present, the oldest of which makes way for a new one. */
export class Visitors {
  /** How many have come. */
  came = 0;
  frames = 0;
  toldMissing = 0;
  violations = [];
  #present = [];
  #optionsOf;
  #accounts;

  /**
   * @param optionsOf - gives the options of an account: 0, 1, …
   * @param accounts - how many there are: more than are present, so that none is replaced (4001)
   */
  constructor(optionsOf, accounts) {
    this.#optionsOf = optionsOf;
    this.#accounts = accounts;
  }

  get areOpen() {
    return this.#present.every(({ isOpen }) => isOpen);
  }

  /** Lets one come, and the oldest go when there is no room. */
  swap() {
    if (this.#present.length === PRESENT) this.#leave();
    const visitor = { ledger: new Ledger(), isOpen: false, subscription: undefined };
    this.#present.push(visitor);
    visitor.subscription = tradeFeedEvents$('market', this.#optionsOf(this.came % this.#accounts)).subscribe({
      next: (event) => {
        visitor.ledger.see(event);
        if (event.type === 'opened') visitor.isOpen = true;
        if (event.type === 'disconnected') visitor.isOpen = false;
      },
      error: (error) => this.violations.push({ rule: `stopped with ${error.code ?? error}`, number: this.came }),
    });
    this.came += 1;
  }

  /** Lets all go. */
  close() {
    while (this.#present.length > 0) this.#leave();
  }

  #leave() {
    const { ledger, subscription } = this.#present.shift();
    subscription.unsubscribe();
    this.frames += ledger.received;
    this.toldMissing += ledger.toldMissing;
    this.violations.push(...ledger.violations);
  }
}
