// The report of the soak.
import { holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { growthOf, resources } from './growth.mjs';
import { command, everyS, isExact, isResult } from './options.mjs';
import { soakRules } from './soak-rules.mjs';

const memory = ['heap', 'external', 'buffers', 'rss'];
const figure = (value) => (Number.isFinite(value) ? value.toFixed(Math.abs(value) >= 10 ? 0 : 1) : '–');

/** Checks the rules of a run and reports the result. */
export const reportSoak = async (run) => {
  const { expected, churn, samples, slow, cpu, elapsedS } = run;
  const growths = Object.keys(resources)
    .filter((name) => !isExact || !memory.includes(name))
    .flatMap((name) => growthOf(samples, name) ?? []);
  const slopes = growths.map(({ what, unit, limit, slope, verdict }) => {
    // A short run is too noisy to show that a resource doesn't grow.
    const met = verdict === 'flat' || (!isResult && verdict !== 'grows');
    const wanted = `flat: at most ${Math.round(limit)}`;
    return {
      what: `${what}: slope${unit && `, ${unit}`} an hour`,
      wanted,
      measured: `${verdict}: ${figure(slope)}`,
      met,
    };
  });
  const { received, missedInGaps } = expected.account;
  await report({
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
      ...slopes,
    ],
    charts: [
      lines(
        'soak-memory',
        'Memory after a collection, full rate, a reconnect every few seconds',
        'MB',
        samples,
        memory,
      ),
      lines('soak-handles', 'Active handles and file descriptors', 'count', samples, ['handles', 'fds']),
    ],
    tables: [
      {
        title: 'Slopes for each hour, after the warm-up',
        columns: ['resource', 'slope', 'lower bound', 'upper bound', 'limit', 'samples'],
        rows: growths.map(({ what, unit, slope, low, high, limit, samples: count }) => [
          `${what}${unit && `, ${unit}`}`,
          ...[slope, low, high, limit].map(figure),
          count,
        ]),
      },
    ],
    facts: {
      frames: `${received} in ${elapsedS.toFixed(0)} s (${Math.round(received / elapsedS)} a second), ${missedInGaps} missed in gaps`,
      'short subscriptions': `${churn.subscriptions} subscriptions, ${churn.frames} frames, ${churn.missedInGaps} missed in gaps`,
      faults: `one every ${everyS} s; failures by code: ${[...expected.disconnects].map(([code, n]) => `${code} ${n}`).join(', ')}`,
      'slow consumer': `${slow.processed} processed, ${slow.dropped} dropped in ${slow.reports} reports`,
      'CPU of the client': `${((cpu.user + cpu.system) / 10_000 / elapsedS).toFixed(0)} % of a core`,
    },
  });
};

const lines = (id, title, y, samples, names) => ({
  id,
  title,
  kind: 'lines',
  x: 's',
  y,
  series: names.flatMap((name) => {
    const points = samples
      .filter((sample) => sample[name] !== undefined)
      .map((sample) => [short(sample.atS), short(sample[name])]);
    return points.length > 0 ? [{ name: resources[name].what, points }] : [];
  }),
});

const short = (value) => Math.round(value * 100) / 100;
