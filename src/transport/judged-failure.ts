import { createTradeFeedError } from '../protocol/failures/classify.js';
import type { FailureFacts } from '../protocol/failures/trade-feed-error.js';
import { type ClassifyOption, applyClassify } from '../protocol/failures/apply-classify.js';

/** Makes the error of an attempt, with the verdict of the option `classify` where it is given. */
export const judgedFailure = (settings: ClassifyOption, facts: FailureFacts): unknown =>
  applyClassify(settings, createTradeFeedError(facts));
