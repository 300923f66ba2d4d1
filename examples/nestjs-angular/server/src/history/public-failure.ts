import type { TradeFeedError } from 'rx-trade-feed';
import type { PublicFailure } from './history-answer.js';

/** Makes plain data of a failure, with the fixed words of the library in place of what was observed. */
export const publicFailure = (failure: TradeFeedError): PublicFailure => failure.toPublic().toJSON();
