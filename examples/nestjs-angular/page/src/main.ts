import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { provideTradeFeed } from 'rx-trade-feed/angular';
import { Root } from './app/shell/root';

bootstrapApplication(Root, {
  providers: [
    provideZonelessChangeDetection(),
    provideTradeFeed({
      url: '/feed',
      // While the feed behind the relay is stopped, the page looks again: somebody may have connected again on another one.
      maxFeedStops: Infinity,
      backoff: { maxDelayMs: 3_000 },
    }),
  ],
}).catch((error: unknown) => console.error(error));
