import { count, time } from '../feed/words';
import type { CandleRow } from './candle-store';

const digitsOf = (price: number): number => (price >= 20 ? 2 : 4);

/** Formats a price: `3,001.25`. */
export const priceWords = (price: number, digits = digitsOf(price)): string =>
  price.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Formats an amount: `0.412`, `12.4`, `1,204`. */
export const amountWords = (amount: number): string =>
  amount.toLocaleString('en-US', { maximumFractionDigits: amount < 10 ? 3 : amount < 1_000 ? 1 : 0 });

/** The change of a price. */
export interface Change {
  readonly direction: 'up' | 'down' | 'flat';
  /** `▲ 0.42%`: readable without the colour. */
  readonly words: string;
  /** `up 0.42%`, for screen readers. */
  readonly spoken: string;
}

/** Returns the change between two prices. */
export const changeOf = (from: number, to: number): Change => {
  const share = Math.abs(to / from - 1).toLocaleString('en-US', {
    style: 'percent',
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  });
  if (share === '0.00%') return { direction: 'flat', words: '• 0.00%', spoken: 'unchanged' };
  return to > from
    ? { direction: 'up', words: `▲ ${share}`, spoken: `up ${share}` }
    : { direction: 'down', words: `▼ ${share}`, spoken: `down ${share}` };
};

/** Returns whether a candle is complete, in words. */
export const completeness = ({ complete }: CandleRow): string =>
  complete ? 'complete' : 'incomplete: trades may be missing';

/** Describes a candle for screen readers. */
export const spokenCandle = (row: CandleRow): string => {
  const prices = `open ${priceWords(row.open)}, high ${priceWords(row.high)}, low ${priceWords(row.low)}, close ${priceWords(row.close)}`;
  const volume = `volume ${amountWords(row.volume)} in ${count(row.trades)} trades`;
  return `${time(row.start)}: ${prices}, ${changeOf(row.open, row.close).spoken}, ${volume}, ${completeness(row)}`;
};
