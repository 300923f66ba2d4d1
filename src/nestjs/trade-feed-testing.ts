import type { OnApplicationShutdown } from '@nestjs/common';
import { filter, firstValueFrom, map, ReplaySubject, scan, startWith } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Payload, ServiceEvent, TradeFeedAccount, TradeFeedService } from '../testing/index.js';

/**
 * Controls the local service of a `TradeFeedTestingModule`.
 *
 * Get it with `app.get(TradeFeedTesting)`. For a feed with a name, use {@link getTradeFeedTestingToken}.
 */
export class TradeFeedTesting implements OnApplicationShutdown {
  /** The service: see `startTradeFeedService` of `rx-trade-feed/testing`. */
  readonly service: TradeFeedService;
  /** The account of the feed. `account.expireAccess()` and similar methods cause failures. */
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
   * Waits until the feed is connected, then sends it one frame for each payload.
   *
   * @param payloads - a string becomes a text frame, bytes become a binary frame
   * @throws EmptyError when the application shuts down before that
   */
  async push(...payloads: readonly Payload[]): Promise<void> {
    await firstValueFrom(this.#open$.pipe(filter(Boolean)));
    for (const payload of payloads) this.service.push(this.#feed, payload);
  }

  /** Shuts down the service with the application. Nest calls it. */
  async onApplicationShutdown(): Promise<void> {
    await this.service.shutdown();
  }
}

/**
 * Returns the token of the `TradeFeedTesting` of a feed: the class, or a string for a feed with a name.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
 */
export const getTradeFeedTestingToken = (name?: string): string | typeof TradeFeedTesting =>
  name === undefined ? TradeFeedTesting : `TradeFeedTesting:${name}`;

const changeBy = (event: ServiceEvent, account: string): number => {
  if (event.type === 'handshake-accepted') return event.account === account ? 1 : 0;
  return event.type === 'connection-closed' && event.account === account ? -1 : 0;
};
