// Subscribes to a feed at an address where nothing listens, until the warning of the process. Prints nothing itself.
import { tradeFeed$ } from 'rx-trade-feed';

const subscription = tradeFeed$('market', { backoff: { initialDelayMs: 1, maxDelayMs: 1 } }).subscribe();
process.once('warning', () => subscription.unsubscribe());
