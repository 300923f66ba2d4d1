import type { Settings } from '../options.js';
import { tradeFeedError } from '../protocol/classify.js';
import { type FailureFacts, TradeFeedError, type Verdict } from '../protocol/failure.js';
import { invalidOption } from '../protocol/rules.js';

const verdicts: readonly Verdict[] = ['stop', 'renew', 'wait', 'backoff'];

/**
 * Makes the error of an attempt, with the user's own verdict where the option `classify` gives one.
 *
 * What that function throws is the consumer's own exception, and is given back as it is.
 */
export const judgedFailure = (settings: Pick<Settings, 'classify'>, facts: FailureFacts): unknown =>
  judged(settings, tradeFeedError(facts));

/** Does the same with a failure that is made already. */
export const judged = ({ classify }: Pick<Settings, 'classify'>, error: TradeFeedError): unknown => {
  if (classify === undefined) return error;
  try {
    const verdict = classify(error, error.verdict);
    if (verdict === error.verdict) return error;
    if (!verdicts.includes(verdict)) throw invalidOption('classify', `a function that gives ${verdicts.join(', ')}`);
    const advice = `Your option \`classify\` made this ${verdict}, not ${error.verdict}.`;
    return error.with({ verdict, advice, meaning: error.meaning });
  } catch (thrown) {
    // A failure is retried by its verdict; one that is thrown must not be.
    return thrown instanceof TradeFeedError
      ? thrown.with({ verdict: 'stop', advice: 'Your option `classify` threw this.', meaning: thrown.meaning })
      : thrown;
  }
};
