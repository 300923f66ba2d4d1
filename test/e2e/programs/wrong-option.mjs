// Calls the feed with an invalid option and doesn't catch the error.
import { tradeFeed$ } from 'rx-trade-feed';

function ownFunction() {
  return tradeFeed$('market', { baseUrl: 'https://feed.example.com', apiKey: 'any-key', idleTimeoutMs: -1 });
}

ownFunction();
