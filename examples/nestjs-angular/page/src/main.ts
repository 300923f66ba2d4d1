import { provideZonelessChangeDetection } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { provideTradeFeed } from 'rx-trade-feed/angular';
import { App } from './app/app';

bootstrapApplication(App, {
  providers: [provideZonelessChangeDetection(), provideTradeFeed({ url: '/feed' })],
}).catch((error: unknown) => console.error(error));
