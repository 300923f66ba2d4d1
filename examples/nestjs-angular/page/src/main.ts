import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { provideTradeFeed } from 'rx-trade-feed/angular';
import { Root } from './app/shell/root';

bootstrapApplication(Root, {
  providers: [provideZonelessChangeDetection(), provideTradeFeed({ url: '/feed' })],
}).catch((error: unknown) => console.error(error));
