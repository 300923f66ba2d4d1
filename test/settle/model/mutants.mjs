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
    find: 'for (const { key } of removed)',
    replacement: 'for (const { key } of removed.slice(removed.length))',
    seed: 2,
  },
  {
    name: 'an outcome is forgotten before its block is deep enough',
    file: 'settle/settlement.ts',
    find: ' && decided.lowest <= deep',
    replacement: '',
    seed: 29,
  },
  {
    name: 'what was confirmed before a hole is not doubted',
    file: 'settle/settlement.ts',
    find: 'for (const { key } of doubted)',
    replacement: 'for (const { key } of doubted.slice(doubted.length))',
    seed: 3,
  },
  {
    name: 'a failed trade counts as confirmed',
    file: 'settle/settlement.ts',
    find: "trade.hasFailed ? 'failed' : 'confirmed'",
    replacement: "'confirmed'",
    seed: 1,
  },
  {
    name: 'a reorganization does not change whether a trade failed',
    file: 'settle/settlement.ts',
    find: 'trade.isOnLedger && trade.hasFailed === hasFailed',
    replacement: 'trade.isOnLedger',
    seed: 12,
  },
  {
    name: 'a failed trade that the feed has not shown is unseen',
    file: 'settle/settlement.ts',
    find: "if (trade.hasFailed && trade.seenAt === undefined && state !== 'reorged') return;",
    replacement: '',
    seed: 4,
  },
  {
    name: 'any block of the tree moves the time',
    file: 'settle/ledger.ts',
    find: 'if (id === this.#tip?.id && !this.#isOld) this.#provenAt = this.#now;',
    replacement: 'this.#provenAt = this.#now;',
    seed: 3,
  },
  {
    name: 'a block far below the tip is ignored',
    file: 'settle/ledger.ts',
    find: 'if (!isLate && height < least) {',
    replacement: 'if (!isLate && height < least) return [];\n    if (isLate && height < -1) {',
    seed: 5,
  },
  {
    name: 'a new tree below the old one proves its time at once',
    file: 'settle/ledger.ts',
    find: 'const needsGap = this.#isOld &&',
    replacement: 'const needsGap = false &&',
    seed: 1,
  },
];
