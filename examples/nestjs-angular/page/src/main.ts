import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { provideTradeFeed } from 'rx-trade-feed/angular';
import { Root } from './app/shell/root';

bootstrapApplication(Root, {
  providers: [
    provideZonelessChangeDetection(),
    provideTradeFeed({
      url: '/feed',
      // The page keeps checking after a stop: a person may restart the feed on another page.
      maxFeedStops: Infinity,
      backoff: { maxDelayMs: 3_000 },
      // The page shows when an open connection brings no frames.
      freshness: { maxAgeMs: 10_000 },
    }),
  ],
}).catch((error: unknown) => console.error(error));
