import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

interface Ledger {
  readonly received: number;
  readonly toldMissing: number;
  readonly broken: number;
  readonly violations: readonly { readonly rule: string; readonly number: number }[];
  see(event: { readonly type: string; readonly data?: Buffer }): void;
  isBalanced(sent: number, from?: number): boolean;
}
const { Ledger } = await reliabilityModule<{ Ledger: new () => Ledger }>('soak/ledger.mjs');

/** The books of numbers; a text is another event. */
const booksOf = (...seen: readonly (number | string)[]): Ledger => {
  const ledger = new Ledger();
  for (const each of seen)
    ledger.see(
      typeof each === 'string' ? { type: each } : { type: 'frame', data: Buffer.from(`{"batch":${each},"trades":[]}`) },
    );
  return ledger;
};
const rulesOf = (ledger: Ledger) => ledger.violations.map(({ rule, number }) => `${number} ${rule}`);

describe('the books', () => {
  it('are balanced when all came', () => {
    expect(booksOf(1, 2, 3).isBalanced(3)).toBe(true);
  });

  it('are balanced when a gap told of what is missing', () => {
    const ledger = booksOf(1, 2, 'disconnected', 'opened', 'gap', 12, 13);
    expect([ledger.received, ledger.toldMissing, ledger.isBalanced(13)]).toEqual([4, 9, true]);
  });

  it('may have a gap in which nothing is missing', () => {
    expect(booksOf(1, 'gap', 2).isBalanced(2)).toBe(true);
  });

  it.each([
    ['what is missing without a gap', [1, 2, 4], ['4 missing without a gap']],
    ['what is missing later than right behind the gap', [1, 'gap', 2, 4], ['4 missing without a gap']],
    ['what came twice', [1, 2, 2], ['2 twice']],
    ['what came again after a gap', [1, 2, 3, 'gap', 2], ['2 out of order']],
    ['what came out of order', [1, 3, 2], ['3 missing without a gap', '2 out of order']],
  ])('find %s', (_what, seen, rules) => {
    const ledger = booksOf(...seen);
    expect(rulesOf(ledger)).toEqual(rules);
    expect(ledger.isBalanced(4)).toBe(false);
  });

  it.each([
    ['at the beginning', [2, 3]],
    ['at the end', [1, 2]],
  ])('are not balanced when something is missing %s', (_where, seen) => {
    const ledger = booksOf(...seen);
    expect([ledger.broken, ledger.isBalanced(3)]).toEqual([0, false]);
  });
});
