/**
 * Breaks rules on purpose, by replacing text in the sources. The model must notice: `seed` is a run that does.
 *
 * @type {readonly { readonly name: string, readonly file: string, readonly find: string, readonly replacement: string, readonly seed: number }[]}
 */
export const mutants = [
  {
    name: 'gaps do not count',
    file: 'settle/side.ts',
    find: "if (gap !== undefined) return { side, why: 'gap', gap };",
    replacement: '',
    seed: 1,
  },
  {
    name: 'blocks are not taken back',
    file: 'settle/settlement.ts',
    find: 'for (const { key } of reverted)',
    replacement: 'for (const { key } of reverted.slice(reverted.length))',
    seed: 2,
  },
  {
    name: 'an outcome is forgotten before its block is deep enough',
    file: 'settle/settlement.ts',
    find: ' && decided.lowest <= deep',
    replacement: '',
    seed: 19,
  },
  {
    name: 'what was confirmed before a hole is not doubted',
    file: 'settle/settlement.ts',
    find: 'for (const { key } of doubted)',
    replacement: 'for (const { key } of doubted.slice(doubted.length))',
    seed: 47,
  },
];
