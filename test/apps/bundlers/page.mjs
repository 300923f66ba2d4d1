// A page, as the tests bundle it.
import { relayFeed$ } from 'rx-trade-feed/browser';
import { conflate, frames } from 'rx-trade-feed/operators';

globalThis.feed$ = relayFeed$('http://127.0.0.1/feed').pipe(
  frames(),
  conflate(() => 1, 1),
);
