import { type DynamicModule, Module } from '@nestjs/common';
import { TradeFeedModule } from 'rx-trade-feed/nestjs';
import { DemoController } from './demo/demo.controller.js';
import { LocalService } from './demo/local-service.js';
import { FeedController } from './feed.controller.js';
import type { Settings } from './settings.js';

/** The backend: one connection to the service, handed on to every page. */
@Module({})
export class AppModule {
  /** Without a local service, address and key come from TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY. */
  static of({ feed, connect }: Settings, service: LocalService | undefined): DynamicModule {
    return {
      module: AppModule,
      imports: [TradeFeedModule.forRoot({ feed, connect, ...service?.feedOptions })],
      controllers: [FeedController, ...(service ? [DemoController] : [])],
      providers: service ? [{ provide: LocalService, useValue: service }] : [],
    };
  }
}
