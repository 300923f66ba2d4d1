import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { filter, noop, repeat, take } from 'rxjs';
import { TradeFeed } from 'rx-trade-feed/nestjs';

/**
 * Keeps the relay receiving, also while no page is connected to it.
 *
 * Without it the relay would begin with the first page that looks again after a stop, and the frames between the restart and that look
 * would reach no page.
 */
@Injectable()
export class KeptRelay implements OnApplicationBootstrap {
  private readonly tradeFeed: TradeFeed;

  constructor(tradeFeed: TradeFeed) {
    this.tradeFeed = tradeFeed;
  }

  onApplicationBootstrap(): void {
    const { relay, status$ } = this.tradeFeed;
    const begun$ = status$.pipe(
      filter(({ state }) => state !== 'stopped'),
      take(1),
    );
    // It errors when the relay is closed: the application shuts down.
    relay
      .messages$()
      .pipe(repeat({ delay: () => begun$ }))
      .subscribe({ error: noop });
  }
}
