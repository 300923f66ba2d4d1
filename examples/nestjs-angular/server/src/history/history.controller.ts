import { Controller, Get, Header, UseGuards } from '@nestjs/common';
import { FeedGuard } from '../feed.guard.js';
import { FeedHistory } from './feed-history.js';
import type { HistoryAnswer } from './history-answer.js';

/** Serves the history to clients that may read the feed. */
@Controller('history')
@UseGuards(FeedGuard)
export class HistoryController {
  private readonly history: FeedHistory;

  constructor(history: FeedHistory) {
    this.history = history;
  }

  /** Returns the history of the last minutes. */
  @Get()
  @Header('Cache-Control', 'no-store')
  answer(): Promise<HistoryAnswer> {
    return this.history.answer();
  }
}
