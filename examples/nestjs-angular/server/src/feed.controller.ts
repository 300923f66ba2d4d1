import { Controller, HttpCode, Post, Req, Sse, UseGuards } from '@nestjs/common';
import { type SseRequest, TradeFeed } from 'rx-trade-feed/nestjs';
import { FeedGuard } from './feed.guard.js';
import { FeedHistory } from './history/feed-history.js';

/** What the page asks for. */
@Controller('feed')
@UseGuards(FeedGuard)
export class FeedController {
  private readonly tradeFeed: TradeFeed;
  private readonly history: FeedHistory;

  constructor(tradeFeed: TradeFeed, history: FeedHistory) {
    this.tradeFeed = tradeFeed;
    this.history = history;
  }

  /** The feed, for one browser. */
  @Sse()
  feed(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'guard' });
  }

  /** Begins again after a stop. A person asks for it: by itself, the backend would evict another client of the account. */
  @Post('restart')
  @HttpCode(204)
  restart(): void {
    if (this.tradeFeed.status.state === 'stopped') this.history.asked();
    this.tradeFeed.restart();
  }
}
