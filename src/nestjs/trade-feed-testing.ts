import type { OnApplicationShutdown } from '@nestjs/common';
import { filter, firstValueFrom, map, ReplaySubject, scan, startWith } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Payload, ServiceEvent, TradeFeedAccount, TradeFeedService } from '../testing/index.js';

/**
 * What a test has of the local service behind a `TradeFeedTestingModule`.
 *
 * Get it with `app.get(TradeFeedTesting)`, or with {@link getTradeFeedTestingToken} for a feed with a name.
 */
export class TradeFeedTesting implements OnApplicationShutdown {
  /** The service: see `startTradeFeedService` of `rx-trade-feed/testing`. */
  readonly service: TradeFeedService;
  /** The account that the feed connects with: `account.expireAccess()` and the like make failures on demand. */
  readonly account: TradeFeedAccount;
  readonly #feed: Feed;
  readonly #open$ = new ReplaySubject<boolean>(1);

  /** @internal */
  constructor(service: TradeFeedService, account: TradeFeedAccount, feed: Feed) {
    this.service = service;
    this.account = account;
    this.#feed = feed;
    service.events$
      .pipe(
        scan((open, event) => open + changeBy(event, account.id), 0),
        startWith(0),
        map((open) => open > 0),
      )
      .subscribe(this.#open$);
  }

  /**
   * Waits until the feed is connected, and then sends it payloads: a frame for each. What is sent without a connection is nobody's.
   *
   * @param payloads - a text makes a text frame, bytes make a binary one
   * @throws EmptyError when the application is shut down first
   */
  async push(...payloads: readonly Payload[]): Promise<void> {
    await firstValueFrom(this.#open$.pipe(filter(Boolean)));
    for (const payload of payloads) this.service.push(this.#feed, payload);
  }

  /** Shuts the service down with the application. Nest calls it. */
  async onApplicationShutdown(): Promise<void> {
    await this.service.shutdown();
  }
}

/**
 * Gives the token of what a test has of a feed's service: the class `TradeFeedTesting` itself, or a text for a feed with a name.
 *
 * @param name - the `name` that the module was given @defaultValue none: the feed without a name
 */
export const getTradeFeedTestingToken = (name?: string): string | typeof TradeFeedTesting =>
  name === undefined ? TradeFeedTesting : `TradeFeedTesting:${name}`;

const changeBy = (event: ServiceEvent, account: string): number => {
  if (event.type === 'handshake-accepted') return event.account === account ? 1 : 0;
  return event.type === 'connection-closed' && event.account === account ? -1 : 0;
};
