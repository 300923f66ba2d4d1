import { Controller, Get, NotFoundException, Req, Sse, UseGuards } from '@nestjs/common';
import { type SseRequest, TradeFeed } from 'rx-trade-feed/nestjs';
import { FeedGuard } from '../feed.guard.js';
import type { MarketsHistory } from './market-value.js';
import { Markets } from './markets.js';

/** Serves the view of the markets. */
@Controller('markets')
@UseGuards(FeedGuard)
export class MarketsController {
  private readonly tradeFeed: TradeFeed;
  private readonly markets: Markets;

  constructor(tradeFeed: TradeFeed, markets: Markets) {
    this.tradeFeed = tradeFeed;
    this.markets = markets;
  }

  /** Streams candles and last prices to one browser: far fewer bytes than the feed. */
  @Sse()
  values(@Req() request: SseRequest) {
    const { values } = this.markets;
    if (values === undefined) throw new NotFoundException('The payload of this feed is not known.');
    return this.tradeFeed.sse(request, { authorize: 'guard', select: values });
  }

  /** Returns the candles of the last minutes. */
  @Get('history')
  history(): MarketsHistory {
    return this.markets.history;
  }
}
