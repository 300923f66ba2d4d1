import { tradeFeedError } from '../protocol/classify.js';
import type { FailureFacts } from '../protocol/failure.js';
import { type Judge, judged } from '../protocol/judged.js';

/** Makes the error of an attempt, with the verdict of the option `classify` where it is given. */
export const judgedFailure = (settings: Judge, facts: FailureFacts): unknown => judged(settings, tradeFeedError(facts));
