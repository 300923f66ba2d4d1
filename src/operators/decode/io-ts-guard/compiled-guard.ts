import { isCodeGenerationAllowed } from './code-generation.js';
import { guardSource } from './guard-source.js';
import type { Tagged } from './tagged.js';

/** Returns whether a document is valid. */
export type Guard = (document: unknown) => boolean;

/**
 * Compiles the guard of a codec that changes nothing (see {@link changesNothing}).
 *
 * Returns `undefined` where code generation is disallowed: by the `Content-Security-Policy` of a page or by
 * `--disallow-code-generation-from-strings`.
 */
export const compiledGuard = (codec: Tagged): Guard | undefined => {
  if (!isCodeGenerationAllowed()) return undefined;
  const { text, captured } = guardSource(codec);
  try {
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the text contains only names and literals of the user's codec, as JSON
    return (new Function('captured', text) as (captured: readonly unknown[]) => Guard)(captured);
  } catch {
    return undefined;
  }
};
