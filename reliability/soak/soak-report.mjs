// What the soak found.
import { holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { judge, resources } from './flat.mjs';
import { command, everyS, isExact, isKept } from './options.mjs';
import { verdicts } from './verdicts.mjs';

const memory = ['heap', 'external', 'buffers', 'rss'];
const figure = (value) => (Number.isFinite(value) ? value.toFixed(Math.abs(value) >= 10 ? 0 : 1) : '–');

/** Judges a run, and reports it. */
export const reportSoak = async (run) => {
  const { truth, visitors, samples, slow, cpu, elapsedS } = run;
  const judged = Object.keys(resources)
    .filter((name) => !isExact || !memory.includes(name))
    .flatMap((name) => judge(samples, name) ?? []);
  const slopes = judged.map(({ what, unit, limit, slope, verdict }) => {
    // What a short look cannot tell from noise is not held against it.
    const met = verdict === 'flat' || (!isKept && verdict !== 'grows');
    const wanted = `flat: at most ${Math.round(limit)}`;
    return {
      what: `${what}: slope${unit && `, ${unit}`} an hour`,
      wanted,
      measured: `${verdict}: ${figure(slope)}`,
      met,
    };
  });
  const { received, toldMissing } = truth.ledger;
  await report({
    name: 'soak',
    command,
    keep: isKept,
    goals: [
      ...verdicts(run),
      holds(
        'those who came and went: every frame accounted for',
        visitors.violations.length === 0 && visitors.frames > 0,
        `${visitors.came} subscriptions, ${visitors.violations.length} violations`,
      ),
      holds('all handles and descriptors are let go at the end', run.leftBehind === '', run.leftBehind || 'all'),
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
        columns: ['resource', 'slope', 'surely above', 'surely below', 'limit', 'samples'],
        rows: judged.map(({ what, unit, slope, low, high, limit, samples: count }) => [
          `${what}${unit && `, ${unit}`}`,
          ...[slope, low, high, limit].map(figure),
          count,
        ]),
      },
    ],
    facts: {
      frames: `${received} in ${elapsedS.toFixed(0)} s (${Math.round(received / elapsedS)} a second), ${toldMissing} told in gaps`,
      'came and went': `${visitors.came} subscriptions, ${visitors.frames} frames, ${visitors.toldMissing} told in gaps`,
      troubles: `one every ${everyS} s; what ended attempts: ${[...truth.disconnects].map(([code, n]) => `${code} ${n}`).join(', ')}`,
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
