// Compile-only: `tsc --noEmit` is the test. Code that must not compile is marked with `@ts-expect-error`, and an unused mark is an error.
import type { EnvironmentProviders } from '@angular/core';
import { NEVER, of, VirtualTimeScheduler } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import {
  type AngularTradeFeed,
  type FeedSignalOptions,
  injectTradeFeed,
  provideTradeFeed,
  provideTradeFeedFrom,
  type ProvideTradeFeedOptions,
} from 'rx-trade-feed/angular';

export const feed = (): AngularTradeFeed => injectTradeFeed();

export const least = provideTradeFeed({ url: '/feed' }) satisfies EnvironmentProviders;
export const most = {
  url: new URL('https://api.example.com/feed'),
  headers: () => Promise.resolve({ authorization: 'Bearer of-your-app' }),
  credentials: 'include',
  stats: { everyMs: 500 },
  window: { lengthMs: 250, maxFrames: 10_000, align: 'start', scheduler: new VirtualTimeScheduler() },
  freshness: { maxAgeMs: 5_000, factor: 20 },
  lingerMs: 0,
} as const satisfies ProvideTradeFeedOptions;
export const some: FeedSignalOptions = { stats: undefined, window: { maxFrames: 1 }, lingerMs: undefined };
// A feed of Node is accepted too, for a test or a demo.
export const fakes = [provideTradeFeedFrom(NEVER), provideTradeFeedFrom(tradeFeedEvents$('market'), some)];

// @ts-expect-error -- there is no default address
provideTradeFeed({});
// @ts-expect-error -- `resume` decides where the position is stored
provideTradeFeed({ url: '/feed', resumeIn: { getItem: () => null, setItem: () => undefined } });
// @ts-expect-error -- the key of the service stays on the server
provideTradeFeed({ url: '/feed', apiKey: 'key' });
// @ts-expect-error -- the window contains frames, not the result of an accumulator
provideTradeFeed({ url: '/feed', window: { lengthMs: 1_000, seed: () => 0 } });
// @ts-expect-error -- the source must emit events
provideTradeFeedFrom(of(1));
// @ts-expect-error -- a signal is read, not set
export const setter = feed().status.set as unknown;
// @ts-expect-error -- frames cannot be sent
export const sender = feed().frames$.next as unknown;
// @ts-expect-error -- there may be no window yet
export const count = feed().window().count;
