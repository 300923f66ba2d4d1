/**
 * Gives a "did you mean" for a mistyped word, or nothing when no known one is close.
 *
 * @param typed - what was typed
 * @param known - what could have been meant
 */
export const suggest = (typed: string, known: readonly string[]): string => {
  const [best] = known
    .map((word) => ({ word, edits: editsBetween(typed, word) }))
    .filter(({ word, edits }) => edits <= Math.max(1, Math.floor(word.length / 3)))
    .sort((a, b) => a.edits - b.edits);
  return best ? ` Did you mean ${best.word}?` : '';
};

/** Counts the letters to insert, delete, replace or swap (restricted Damerau-Levenshtein distance). */
const editsBetween = (from: string, to: string): number => {
  const rows = [Array.from({ length: to.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Infinity;
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= to.length; j += 1) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwap = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (isSame ? 0 : 1),
          isSwap ? at(i - 2, j - 2) + 1 : Infinity,
        ),
      );
    }
  }
  return at(from.length, to.length);
};
