import type { TradeFeedError } from '../protocol/failure.js';

/** Returns what of a failure may leave the server. */
export const publicFailure = (failure: TradeFeedError): TradeFeedError => failure;
