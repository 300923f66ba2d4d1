// @ts-check
// Compares what the operators reported with the expected values.
import { holds } from '../lib/goal.mjs';

/**
 * Returns the rules of a soak as rows of the report.
 *
 * @param {object} run
 * @param {import('./expected-values.mjs').ExpectedValues} run.expected
 * @param {readonly Window[]} run.windows
 * @param {{ processed: number, dropped: number }} run.slow
 * @param {number} run.sent how many frames the service sent
 * @param {number} run.faults how many faults the service caused
 */
export const soakRules = ({ expected, windows, slow, sent, faults }) => {
  const { account, outages } = expected;
  const inOutages = windows.filter((window) => outagesOf(outages, window).length > 0);
  // Windows that began before the feed opened, and the last window, are partial.
  const whole = windows.slice(0, -1).filter(({ start }) => start >= expected.openedAt);
  const others = whole.filter((window) => outagesOf(outages, window).length === 0);
  const { received, missedInGaps, gaps, violations } = account;
  return [
    holds(
      'no frame arrives twice or out of order, and none is missing without a gap',
      account.violationCount === 0,
      list(violations),
    ),
    holds('sent = received + missed in gaps', account.isBalanced(sent), `${sent} = ${received} + ${missedInGaps}`),
    holds('one outage and one gap for each fault', outages.length === faults && gaps === faults, `${gaps} gaps`),
    holds('each window begins where the one before ends', areAdjacent(windows), `${windows.length} windows`),
    holds(
      'each window in an outage is incomplete and has its gap',
      inOutages.length >= faults && inOutages.every((window) => reportsOutage(window, outagesOf(outages, window))),
      `${inOutages.length} windows`,
    ),
    holds(
      'all other whole windows are complete',
      others.length > 0 && others.every(({ complete, gapCodes }) => complete && gapCodes.length === 0),
      `${others.length} windows`,
    ),
    holds(
      'each window counts exactly the frames received in its time',
      windows.every(({ start, count }) => count === (expected.perWindow.get(start) ?? 0)),
    ),
    holds(
      'frames processed and frames dropped by the slow consumer add up to the frames received',
      slow.processed + slow.dropped === received && slow.dropped > 0 && slow.processed > 0,
      `${slow.processed} + ${slow.dropped}`,
    ),
    holds('no client is too slow for the service (no 1013)', !expected.disconnects.has('client-too-slow')),
  ];
};

/** @typedef {{ from: number, to: number, code: string }} Outage */
/** @typedef {{ start: number, end: number, count: number, complete: boolean, gapCodes: readonly string[] }} Window */

/** @type {(outages: readonly Outage[], window: { start: number, end: number }) => readonly Outage[]} */
const outagesOf = (outages, { start, end }) =>
  outages.filter(({ from, to }) => from < end && (to > start || from >= start));

/** @type {(window: Window, outages: readonly Outage[]) => boolean} */
const reportsOutage = ({ complete, gapCodes }, outages) =>
  !complete && gapCodes.length > 0 && gapCodes.every((each) => outages.some(({ code }) => code === each));

/** @param {readonly { start: number, end: number }[]} windows */
const areAdjacent = (windows) => windows.every(({ start }, n) => n === 0 || start === windows[n - 1]?.end);

/** @param {readonly { rule: string, number: number }[]} violations */
const list = (violations) => violations.map(({ rule, number }) => `${number} ${rule}`).join(', ') || 'none';
