import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { filter, type OperatorFunction, retry, take } from 'rxjs';
import { decodeWith, type RelayedEvent } from 'rx-trade-feed';
import { TradeFeed } from 'rx-trade-feed/nestjs';
import { CandleHistory } from './candle-history.js';
import { candleMs, candles } from './candles.js';
import type { MarketsHistory, MarketValue } from './market-value.js';
import { marketValues } from './market-values.js';
import type { Payload } from './payload.js';

/** The injection token of the {@link Payload}. */
export const PAYLOAD = Symbol('payload');

/** How long candles are stored, in ms. */
const storedMs = 15 * 60_000;

/** Turns the feed into candles, and stores those of the last minutes for pages that open later. */
@Injectable()
export class Markets implements OnApplicationBootstrap {
  private readonly tradeFeed: TradeFeed;
  private readonly payload: Payload;
  private readonly stored = new CandleHistory(storedMs);

  /** The operator for `select`; `undefined` for an unknown payload. All pages use the same function, so it runs once for all of them. */
  readonly values: OperatorFunction<RelayedEvent, MarketValue> | undefined;

  constructor(tradeFeed: TradeFeed, @Inject(PAYLOAD) payload: Payload) {
    this.tradeFeed = tradeFeed;
    this.payload = payload;
    this.values = payload.codec && marketValues(payload.codec);
  }

  /** The data that a page loads first. */
  get history(): MarketsHistory {
    return { payload: this.payload.kind, candleMs, storedMs, windows: this.stored.windows };
  }

  /** Starts to store candles. This opens the feed, even without a page. */
  onApplicationBootstrap(): void {
    const { codec } = this.payload;
    if (codec === undefined) return;
    const { events$, status$ } = this.tradeFeed;
    // A new subscription to `events$` after a stop would restart the feed and close another client. So wait until a person has restarted it.
    const restarted$ = status$.pipe(
      filter(({ state }) => state !== 'stopped'),
      take(1),
    );
    events$
      .pipe(retry({ delay: () => restarted$ }), decodeWith(codec), candles())
      .subscribe((window) => this.stored.add(window));
  }
}
