import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { filter, noop, repeat, take } from 'rxjs';
import { TradeFeed } from 'rx-trade-feed/nestjs';

/**
 * Keeps the relay subscribed to the feed without a page.
 *
 * Otherwise the relay would subscribe when the first page reconnects after a restart, and no page would receive the frames before that.
 */
@Injectable()
export class OpenRelay implements OnApplicationBootstrap {
  private readonly tradeFeed: TradeFeed;

  constructor(tradeFeed: TradeFeed) {
    this.tradeFeed = tradeFeed;
  }

  onApplicationBootstrap(): void {
    const { relay, status$ } = this.tradeFeed;
    const restarted$ = status$.pipe(
      filter(({ state }) => state !== 'stopped'),
      take(1),
    );
    // The stream errors when the application shuts down and closes the relay.
    relay
      .messages$()
      .pipe(repeat({ delay: () => restarted$ }))
      .subscribe({ error: noop });
  }
}
