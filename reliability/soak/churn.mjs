// Subscriptions that come and go during the soak. Each has its own account at the service.
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { FrameAccount } from '../lib/frame-account.mjs';

/** How many of them are open at a time. There are more accounts, so that no connection replaces another (4001). */
const CONCURRENT = 3;

/** Keeps some subscriptions open, and counts what they receive. @param optionsOf - returns the options for an account: 0, 1, … */
export const createChurn = (optionsOf, accounts) => {
  const open = [];
  const churn = { subscriptions: 0, frames: 0, missedInGaps: 0, violations: [] };

  const removeOldest = () => {
    const { account, subscription } = open.shift();
    subscription.unsubscribe();
    churn.frames += account.received;
    churn.missedInGaps += account.missedInGaps;
    churn.violations.push(...account.violations);
  };
  /** Adds a subscription, and removes the oldest if there are too many. */
  const swap = () => {
    if (open.length === CONCURRENT) removeOldest();
    const client = { account: new FrameAccount(), isOpen: false };
    open.push(client);
    client.subscription = tradeFeedEvents$('market', optionsOf(churn.subscriptions % accounts)).subscribe({
      next: (event) => {
        client.account.event(event);
        if (event.type === 'opened') client.isOpen = true;
        if (event.type === 'disconnected') client.isOpen = false;
      },
      error: (error) =>
        churn.violations.push({ rule: `stopped with ${error.code ?? error}`, number: churn.subscriptions }),
    });
    churn.subscriptions += 1;
  };
  return Object.assign(churn, {
    swap,
    areOpen: () => open.every(({ isOpen }) => isOpen),
    close: () => {
      while (open.length > 0) removeOldest();
    },
  });
};
