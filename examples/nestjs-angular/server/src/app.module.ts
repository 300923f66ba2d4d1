import { type DynamicModule, Module } from '@nestjs/common';
import { TradeFeedModule } from 'rx-trade-feed/nestjs';
import { DemoController } from './demo/demo.controller.js';
import { LocalService } from './demo/local-service.js';
import { FeedController } from './feed.controller.js';
import { FeedHistory } from './history/feed-history.js';
import { HistoryController } from './history/history.controller.js';
import { Markets, PAYLOAD } from './markets/markets.js';
import { MarketsController } from './markets/markets.controller.js';
import { payloadOf } from './markets/payload.js';
import { OpenRelay } from './open-relay.js';
import type { Settings } from './settings.js';

/** The backend. It forwards one connection to the service to every page. */
@Module({})
export class AppModule {
  /** Creates the module. Without a local service, it reads address and key from TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY. */
  static of(settings: Settings, service: LocalService | undefined): DynamicModule {
    return {
      module: AppModule,
      imports: [TradeFeedModule.forRoot({ feed: settings.feed, ...service?.feedOptions })],
      controllers: [FeedController, HistoryController, MarketsController, ...(service ? [DemoController] : [])],
      providers: [
        FeedHistory,
        Markets,
        OpenRelay,
        { provide: PAYLOAD, useValue: payloadOf(settings) },
        ...(service ? [{ provide: LocalService, useValue: service }] : []),
      ],
    };
  }
}
