import { mutantsIn } from '../../support/simulation.mjs';

// Rules that are broken on purpose, each as a patch of a file in src/settle/. The model finds violations of each. `seed`: a run that does.
const patches = `
# gaps do not count
side.ts, seed 1
-if (gap !== undefined) return { side, why: 'gap', gap };
# blocks are not taken back
settlement.ts, seed 2
-for (const { key } of removed)
+for (const { key } of removed.slice(removed.length))
# an outcome is forgotten before its block is deep enough
settlement.ts, seed 29
- && decided.lowest <= deep
# what was confirmed before a hole is not doubted
settlement.ts, seed 3
-for (const { key } of doubted)
+for (const { key } of doubted.slice(doubted.length))
# a failed trade counts as confirmed
settlement.ts, seed 1
-trade.hasFailed ? 'failed' : 'confirmed'
+'confirmed'
# a reorganization does not change whether a trade failed
settlement.ts, seed 12
-trade.isOnLedger && trade.hasFailed === hasFailed
+trade.isOnLedger
# a failed trade that the feed has not shown is unseen
settlement.ts, seed 4
-if (trade.hasFailed && trade.seenAt === undefined && state !== 'reorged') return;
# any block of the tree moves the time
ledger.ts, seed 3
-if (id === this.#tip?.id && !this.#isOld) this.#provenAt = this.#now;
+this.#provenAt = this.#now;
# a block far below the tip is ignored
ledger.ts, seed 5
-if (!isLate && height < least) {
+if (!isLate && height < least) return [];
+    if (isLate && height < -1) {
# a new tree below the old one proves its time at once
ledger.ts, seed 1
-const needsGap = this.#isOld &&
+const needsGap = false &&
`;

export const mutants = mutantsIn('settle', patches);
