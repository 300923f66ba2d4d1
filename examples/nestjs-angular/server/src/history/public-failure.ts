import type { TradeFeedError } from 'rx-trade-feed';
import type { PublicFailure } from './history-answer.js';

/** Makes plain data of a failure, with nothing in it that only the server should know. */
export const publicFailure = (failure: TradeFeedError): PublicFailure => {
  const { code, stage, verdict, status, closeCode, advice, endedAt } = failure;
  const message = failure.message.replace(/ \([^)]*\)(?=\.)/, '');
  return { code, stage, verdict, status, closeCode, advice, endedAt, message };
};
