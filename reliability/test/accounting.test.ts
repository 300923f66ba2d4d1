import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

interface FrameAccount {
  readonly received: number;
  readonly missedInGaps: number;
  readonly violationCount: number;
  readonly violations: readonly { readonly rule: string; readonly number: number }[];
  event(event: { readonly type: string; readonly data?: Buffer }): void;
  isBalanced(sent: number, from?: number): boolean;
}
const { FrameAccount } = await reliabilityModule<{ FrameAccount: new () => FrameAccount }>('soak/accounting.mjs');

/** Returns the account after some frames, each by its number. A text is the type of another event. */
const accountOf = (...events: readonly (number | string)[]): FrameAccount => {
  const account = new FrameAccount();
  for (const event of events)
    account.event(
      typeof event === 'string'
        ? { type: event }
        : { type: 'frame', data: Buffer.from(`{"batch":${event},"trades":[]}`) },
    );
  return account;
};
const rulesOf = (account: FrameAccount) => account.violations.map(({ rule, number }) => `${number} ${rule}`);

describe('the account of the frames', () => {
  it('is balanced if all frames arrived', () => {
    expect(accountOf(1, 2, 3).isBalanced(3)).toBe(true);
  });

  it('is balanced if a gap reported the missing frames', () => {
    const account = accountOf(1, 2, 'disconnected', 'opened', 'gap', 12, 13);
    expect([account.received, account.missedInGaps, account.isBalanced(13)]).toEqual([4, 9, true]);
  });

  it('is balanced if no frame is missing in a gap', () => {
    expect(accountOf(1, 'gap', 2).isBalanced(2)).toBe(true);
  });

  it.each([
    ['a frame that is missing without a gap', [1, 2, 4], ['4 missing without a gap']],
    ['a frame that is missing later than directly after the gap', [1, 'gap', 2, 4], ['4 missing without a gap']],
    ['a frame that arrived twice', [1, 2, 2], ['2 twice']],
    ['a frame that arrived again after a gap', [1, 2, 3, 'gap', 2], ['2 out of order']],
    ['a frame that arrived out of order', [1, 3, 2], ['3 missing without a gap', '2 out of order']],
  ])('detects %s', (_what, events, rules) => {
    const account = accountOf(...events);
    expect(rulesOf(account)).toEqual(rules);
    expect(account.isBalanced(4)).toBe(false);
  });

  it.each([
    ['at the beginning', [2, 3]],
    ['at the end', [1, 2]],
  ])('is not balanced if a frame is missing %s', (_where, events) => {
    const account = accountOf(...events);
    expect([account.violationCount, account.isBalanced(3)]).toEqual([0, false]);
  });
});
