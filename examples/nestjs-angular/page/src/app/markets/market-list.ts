import { ChangeDetectionStrategy, Component, input, output } from '@angular/core';
import type { Change } from './market-words';

/** A row of the list. */
export interface MarketRow {
  readonly symbol: string;
  readonly price: string;
  readonly change: Change | undefined;
  /** The closing prices as the path of an SVG of 100 by 28. */
  readonly path: string;
  /** The outages, as shares of the width. */
  readonly bands: readonly { readonly from: number; readonly width: number }[];
}

/** Lists all markets: last price, change, and a small line of closing prices. */
@Component({
  selector: 'app-market-list',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <ul>
      @for (market of markets(); track market.symbol) {
        <li [class.chosen]="market.symbol === chosen()">
          <button type="button" [attr.aria-current]="market.symbol === chosen()" (click)="choose.emit(market.symbol)">
            <span class="symbol">{{ market.symbol }}</span>
            <svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
              @for (band of market.bands; track band.from) {
                <rect [attr.x]="band.from * 100" [attr.width]="band.width * 100" y="0" height="28" />
              }
              <path [attr.d]="market.path" />
            </svg>
            <span class="price">{{ market.price }}</span>
            <span class="change" [class]="market.change?.direction">
              <span aria-hidden="true">{{ market.change?.words }}</span>
              <span class="visually-hidden">{{ market.change?.spoken }}</span>
            </span>
          </button>
        </li>
      }
    </ul>
  `,
  styleUrl: './market-list.css',
})
export class MarketList {
  readonly markets = input.required<readonly MarketRow[]>();
  readonly chosen = input.required<string | undefined>();
  readonly choose = output<string>();
}
