// A property of the realm, not of a subscription: each try where it is disallowed is a violation that the browser reports.
let isAllowed: boolean | undefined;

/**
 * Returns whether code may be generated from text. It may not under a `Content-Security-Policy` without `'unsafe-eval'` and under
 * `--disallow-code-generation-from-strings`. Tries it at the first call only.
 */
export const isCodeGenerationAllowed = (): boolean => (isAllowed ??= canGenerate());

const canGenerate = (): boolean => {
  try {
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- an empty function, which is never called
    new Function('');
    return true;
  } catch {
    return false;
  }
};
