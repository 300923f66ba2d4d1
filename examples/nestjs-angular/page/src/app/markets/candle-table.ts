import { ChangeDetectionStrategy, Component, computed, input, signal } from '@angular/core';
import { count, time } from '../feed/words';
import type { CandleRow } from './candle-store';
import { amountWords, changeOf, completeness, priceWords } from './market-words';

/** Shows the candles of the chart as a table, newest first. */
@Component({
  selector: 'app-candle-table',
  changeDetection: ChangeDetectionStrategy.OnPush,
  template: `
    <details (toggle)="toggle($event)">
      <summary>As a table</summary>
      @if (isOpen()) {
        <div class="scroll" tabindex="0" role="region" [attr.aria-label]="symbol() + ', candles as a table'">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                <th scope="col">Open</th>
                <th scope="col">High</th>
                <th scope="col">Low</th>
                <th scope="col">Close</th>
                <th scope="col">Change</th>
                <th scope="col">Volume</th>
                <th scope="col">Trades</th>
                <th scope="col" class="text">Complete</th>
              </tr>
            </thead>
            <tbody>
              @for (row of lines(); track row.start) {
                <tr [attr.data-start]="row.start" [class.incomplete]="!row.complete">
                  <th scope="row">{{ row.time }}</th>
                  <td>{{ row.open }}</td>
                  <td>{{ row.high }}</td>
                  <td>{{ row.low }}</td>
                  <td>{{ row.close }}</td>
                  <td>{{ row.change }}</td>
                  <td>{{ row.volume }}</td>
                  <td>{{ row.trades }}</td>
                  <td class="text">{{ row.completeness }}</td>
                </tr>
              }
            </tbody>
          </table>
        </div>
      }
    </details>
  `,
  styleUrl: './candle-table.css',
})
export class CandleTable {
  readonly symbol = input.required<string>();
  readonly rows = input.required<readonly CandleRow[]>();

  protected readonly isOpen = signal(false);
  protected readonly lines = computed(() =>
    this.rows()
      .toReversed()
      .map((row) => ({
        start: row.start,
        complete: row.complete,
        time: time(row.start),
        open: priceWords(row.open),
        high: priceWords(row.high),
        low: priceWords(row.low),
        close: priceWords(row.close),
        change: changeOf(row.open, row.close).words,
        volume: amountWords(row.volume),
        trades: count(row.trades),
        completeness: completeness(row),
      })),
  );

  protected toggle({ target }: Event): void {
    this.isOpen.set((target as HTMLDetailsElement).open);
  }
}
