// Once per realm, not per subscription: where code generation is disallowed, the browser reports each try as a violation.
let isAllowed: boolean | undefined;

/**
 * Returns whether code may be generated from text. The first call tries it; later calls return the same result.
 *
 * A `Content-Security-Policy` without `'unsafe-eval'` disallows it, and so does `--disallow-code-generation-from-strings`.
 */
export const isCodeGenerationAllowed = (): boolean => (isAllowed ??= canGenerate());

const canGenerate = (): boolean => {
  try {
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- an empty function that is never called
    new Function('');
    return true;
  } catch {
    return false;
  }
};
