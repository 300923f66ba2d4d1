// Compares what the operators reported with the expected values.
import { holds } from '../lib/report.mjs';

/** Returns the rules of a soak: of what ExpectedValues counted, the windows, the slow consumer, and the frames and faults of the service. */
export const soakRules = ({ expected, windows, slow, sent, faults }) => {
  const { account, outages } = expected;
  const outagesIn = ({ start, end }) => outages.filter(({ from, to }) => from < end && (to > start || from >= start));
  const reportsOutage = (window) =>
    !window.complete &&
    window.gapCodes.length > 0 &&
    window.gapCodes.every((each) => outagesIn(window).some(({ code }) => code === each));
  const inOutages = windows.filter((window) => outagesIn(window).length > 0);
  // The last window is partial. A new connection can be complete only from its first frame on, and a busy machine sends that late.
  const isWhole = ({ start, end }) =>
    start >= expected.beganAt && outages.every(({ from, frameAt }) => end <= from || start > frameAt);
  const others = windows.slice(0, -1).filter(isWhole);
  const { received, missedInGaps, gaps, violations } = account;
  return [
    holds(
      'no frame arrives twice or out of order, and none is missing without a gap',
      account.violationCount === 0,
      violations.map(({ rule, number }) => `${number} ${rule}`).join(', ') || 'none',
    ),
    holds('sent = received + missed in gaps', account.isBalanced(sent), `${sent} = ${received} + ${missedInGaps}`),
    holds('one outage and one gap for each fault', outages.length === faults && gaps === faults, `${gaps} gaps`),
    holds(
      'each window begins where the one before ends',
      windows.every(({ start }, n) => n === 0 || start === windows[n - 1].end),
      `${windows.length} windows`,
    ),
    holds(
      'each window in an outage is incomplete and has its gap',
      inOutages.length >= faults && inOutages.every(reportsOutage),
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
