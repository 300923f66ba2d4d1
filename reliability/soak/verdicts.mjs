// @ts-check
// Holds what the operators said against what came.
import { holds } from '../lib/goal.mjs';

/**
 * @param {object} run
 * @param {import('./truth.mjs').Truth} run.truth
 * @param {readonly Window[]} run.windows
 * @param {{ processed: number, dropped: number }} run.slow
 * @param {number} run.sent as the service counts
 * @param {number} run.troubles how often it made some
 */
export const verdicts = ({ truth, windows, slow, sent, troubles }) => {
  const { ledger, outages } = truth;
  const around = windows.filter((window) => outagesOf(outages, window).length > 0);
  // The feed did not fill what began before it was open, and the last one.
  const filled = windows.slice(0, -1).filter(({ start }) => start >= truth.openedAt);
  const elsewhere = filled.filter((window) => outagesOf(outages, window).length === 0);
  const { received, toldMissing, gaps, violations } = ledger;
  return [
    holds('no frame came twice or out of order, or is missing without a gap', ledger.broken === 0, list(violations)),
    holds('sent = received + told in gaps', ledger.isBalanced(sent), `${sent} = ${received} + ${toldMissing}`),
    holds('one outage and one gap for each trouble', outages.length === troubles && gaps === troubles, `${gaps} gaps`),
    holds('windows one behind the other', areAdjacent(windows), `${windows.length} windows`),
    holds(
      'the windows of the outages say so, and why',
      around.length >= troubles && around.every((window) => saysSo(window, outagesOf(outages, window))),
      `${around.length} windows`,
    ),
    holds(
      'the others that the feed filled are complete',
      elsewhere.length > 0 && elsewhere.every(({ complete, told }) => complete && told.length === 0),
      `${elsewhere.length} windows`,
    ),
    holds(
      'each window counts exactly the frames that came in its time',
      windows.every(({ start, count }) => count === (truth.kept.get(start) ?? 0)),
    ),
    holds(
      'what the slow consumer processed and what was dropped add up to what came',
      slow.processed + slow.dropped === received && slow.dropped > 0 && slow.processed > 0,
      `${slow.processed} + ${slow.dropped}`,
    ),
    holds('nobody was too slow for the service (no 1013)', !truth.disconnects.has('client-too-slow')),
  ];
};

/** @typedef {{ from: number, to: number, code: string }} Outage */
/** @typedef {{ start: number, end: number, count: number, complete: boolean, told: readonly string[] }} Window `told`: the gaps */

/** @type {(outages: readonly Outage[], window: { start: number, end: number }) => readonly Outage[]} */
const outagesOf = (outages, { start, end }) =>
  outages.filter(({ from, to }) => from < end && (to > start || from >= start));

/** @type {(window: Window, outages: readonly Outage[]) => boolean} */
const saysSo = ({ complete, told }, outages) =>
  !complete && told.length > 0 && told.every((each) => outages.some(({ code }) => code === each));

/** @param {readonly { start: number, end: number }[]} windows */
const areAdjacent = (windows) => windows.every(({ start }, n) => n === 0 || start === windows[n - 1]?.end);

/** @param {readonly { rule: string, number: number }[]} violations */
const list = (violations) => violations.map(({ rule, number }) => `${number} ${rule}`).join(', ') || 'none';
