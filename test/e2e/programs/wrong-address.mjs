// Subscribes at an address where nothing is listening, until the process emits a warning. Prints nothing itself.
import { tradeFeed$ } from 'rx-trade-feed';

const subscription = tradeFeed$('market', { backoff: { initialDelayMs: 1, maxDelayMs: 1 } }).subscribe();
process.once('warning', () => subscription.unsubscribe());
