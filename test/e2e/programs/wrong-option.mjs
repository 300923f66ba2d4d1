// Calls the feed with a wrong option, and leaves the error uncaught.
import { tradeFeed$ } from 'rx-trade-feed';

function ownFunction() {
  return tradeFeed$('market', { baseUrl: 'https://feed.example.com', apiKey: 'any-key', idleTimeoutMs: -1 });
}

ownFunction();
