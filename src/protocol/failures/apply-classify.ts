import { invalidOption } from '../rules.js';
import { type Verdict, verdicts } from './failure-code.js';
import { thrownByOption } from './thrown-by-option.js';
import { copyFailure, type TradeFeedError } from './trade-feed-error.js';

/** The option `classify` of a feed. */
export interface ClassifyOption {
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
}

/**
 * Returns a failure with the verdict of the option `classify`.
 *
 * If that function throws, returns its exception: a `TradeFeedError` with the verdict `stop` and new advice, any other value unchanged.
 */
export const applyClassify = ({ classify }: ClassifyOption, error: TradeFeedError): unknown => {
  if (classify === undefined) return error;
  try {
    const verdict = classify(error, error.verdict);
    if (verdict === error.verdict) return error;
    if (!verdicts.includes(verdict)) throw invalidOption('classify', `a function that returns ${verdicts.join(', ')}`);
    const advice = `Your option \`classify\` changed the verdict from ${error.verdict} to ${verdict}.`;
    return copyFailure(error, { verdict, advice, meaning: error.meaning });
  } catch (thrown) {
    return thrownByOption('classify', thrown);
  }
};
