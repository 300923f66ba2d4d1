import { TradeFeedError, type Verdict, verdicts } from './failure.js';
import { invalidOption } from './rules.js';

/** The option `classify` of a feed. */
export interface Judge {
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
}

/**
 * Gives a failure the verdict of the option `classify`.
 *
 * Returns an exception of that function unchanged; a `TradeFeedError` that it throws gets the verdict `stop`.
 */
export const judged = ({ classify }: Judge, error: TradeFeedError): unknown => {
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
