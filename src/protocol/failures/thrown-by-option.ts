import { copyFailure, TradeFeedError } from './trade-feed-error.js';

/**
 * Returns the error of a feed for an exception of one of its options: a `TradeFeedError` with the verdict `stop` and new advice, any other
 * value unchanged.
 */
export const thrownByOption = (option: string, thrown: unknown): unknown =>
  // Any other verdict than `stop` would cause a reconnect, which could repeat the exception.
  thrown instanceof TradeFeedError
    ? copyFailure(thrown, { verdict: 'stop', advice: `Your option \`${option}\` threw this.`, meaning: thrown.meaning })
    : thrown;
