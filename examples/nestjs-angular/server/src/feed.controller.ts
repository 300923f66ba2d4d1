import { Controller, HttpCode, Post, Req, Sse, UseGuards } from '@nestjs/common';
import { type SseRequest, TradeFeed } from 'rx-trade-feed/nestjs';
import { FeedGuard } from './feed.guard.js';
import { FeedHistory } from './history/feed-history.js';

/** Serves the view of the feed. */
@Controller('feed')
@UseGuards(FeedGuard)
export class FeedController {
  private readonly tradeFeed: TradeFeed;
  private readonly history: FeedHistory;

  constructor(tradeFeed: TradeFeed, history: FeedHistory) {
    this.tradeFeed = tradeFeed;
    this.history = history;
  }

  /** Streams the feed to one browser. */
  @Sse()
  feed(@Req() request: SseRequest) {
    return this.tradeFeed.sse(request, { authorize: 'guard' });
  }

  /** Restarts the feed after a stop. Only a person may request this, because it closes the connection of another client of the account. */
  @Post('restart')
  @HttpCode(204)
  restart(): void {
    if (this.tradeFeed.status.state === 'stopped') this.history.restartRequested();
    this.tradeFeed.restart();
  }
}
