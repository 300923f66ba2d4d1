// The report of the soak.
import { holds, report } from '../lib/report.mjs';
import { growthOf, resources } from './growth.mjs';
import { command, everyS, isExact, isResult } from './options.mjs';
import { soakRules } from './soak-rules.mjs';

const memory = ['heap', 'external', 'buffers', 'rss'];
const figure = (value) => (Number.isFinite(value) ? value.toFixed(Math.abs(value) >= 10 ? 0 : 1) : '–');

/** Returns the rule that a resource doesn't grow: its slope an hour, with the bounds at 99 % confidence. */
const ruleOf = ({ what, unit, limit, slope, low, high, verdict }) => ({
  what: `${what}: slope${unit && `, ${unit}`} an hour`,
  wanted: `flat: at most ${Math.round(limit)}`,
  measured: `${verdict}: ${figure(slope)} (${figure(low)} to ${figure(high)})`,
  // A short run is too noisy to show that a resource doesn't grow.
  met: verdict === 'flat' || (!isResult && verdict !== 'grows'),
});

/** Checks the rules of a run and reports the result. */
export const reportSoak = (run) => {
  const { expected, churn, samples, slow, cpu, elapsedS } = run;
  const growths = Object.keys(resources)
    .filter((name) => !isExact || !memory.includes(name))
    .flatMap((name) => growthOf(samples, name) ?? []);
  const { received, missedInGaps } = expected.account;
  report({
    name: 'soak',
    command,
    keep: isResult,
    goals: [
      ...soakRules(run),
      holds(
        'short subscriptions: every frame accounted for',
        churn.violations.length === 0 && churn.frames > 0,
        `${churn.subscriptions} subscriptions, ${churn.violations.length} violations`,
      ),
      holds('all handles and descriptors are released at the end', run.leaked === '', run.leaked || 'all'),
      ...growths.map(ruleOf),
    ],
    facts: {
      'samples of each resource': growths[0]?.samples ?? 0,
      frames: `${received} in ${elapsedS.toFixed(0)} s (${Math.round(received / elapsedS)} a second), ${missedInGaps} missed in gaps`,
      'short subscriptions': `${churn.subscriptions} subscriptions, ${churn.frames} frames, ${churn.missedInGaps} missed in gaps`,
      faults: `one every ${everyS} s; failures by code: ${[...expected.disconnects].map(([code, n]) => `${code} ${n}`).join(', ')}`,
      'slow consumer': `${slow.processed} processed, ${slow.dropped} dropped in ${slow.reports} reports`,
      'CPU of the client': `${((cpu.user + cpu.system) / 10_000 / elapsedS).toFixed(0)} % of a core`,
    },
  });
};
