// The report of the storms.
import { holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { attemptsOf, floorRule, histogram, largestWithin, spreadRules } from './spread.mjs';
import { arrivalsOf, backAfter, timelineRules, waitsOf } from './timeline.mjs';

const BIN_MS = 100;

/** Checks the rules and reports the result. The storm without jitter must break the rules about the spread. */
export const reportStorm = async ({ storms, policy, limits, seed, count, waveMs, keep }) => {
  const checked = storms.map((each) => {
    const attempts = attemptsOf(each, policy, seed);
    return {
      ...each,
      attempts,
      reached: arrivalsOf(each, policy, seed),
      spread: [...spreadRules(attempts, waveMs), ...(keep && !each.isControl ? [floorRule(each.clients, policy)] : [])],
      timeline: timelineRules(each, limits),
    };
  });
  const goals = checked.flatMap(({ isControl, title, spread, timeline }) => {
    // Few clients make small waves, so in a short run only the waits of the control are checked.
    const ofSpread = isControl ? (keep ? spread : spread.slice(0, 1)).map(mustBreak) : spread;
    return [...ofSpread, ...timeline].map((goal) => ({ ...goal, what: `${title}: ${goal.what}` }));
  });
  await report({
    name: 'storm',
    command: `npm run reliability -- storm --clients ${count} --seed ${seed}`,
    keep,
    goals,
    charts: [...checked.map(attemptChart), arrivalChart(checked[0]), backChart(checked)],
    tables: [
      {
        title: 'When clients received frames again, in ms after the end of the old service',
        columns: ['storm', 'service was down', '50 %', '90 %', 'all', 'refused with 429', 'attempts while it was down'],
        rows: checked.map((each) => [
          each.title,
          each.upAt - each.at,
          ...[0.5, 0.9, 1].map((share) => backAfter(each, share)),
          waitsOf(each.events).refused,
          each.reached.failedAttempts,
        ]),
      },
    ],
    facts: Object.fromEntries(checked.flatMap(factsOf)),
  });
};

const mustBreak = ({ what, wanted, measured, met }) => ({
  ...holds(`breaks the rule: ${what}`, !met, measured),
  wanted: `not ${wanted}`,
});

const factsOf = ({ title, clients, events, reached: { arrivals, predicted } }) => {
  const { late } = waitsOf(events);
  const within = (times, ms) => times.filter((time) => time <= ms).length;
  const largest = predicted.map((times) => largestWithin(times, 50)).sort((a, b) => a - b);
  return [
    [
      `${title}: the most clients that arrived within 50 ms`,
      `${largestWithin(arrivals, 50)}; full jitter predicts ${largest[largest.length >> 1]}, and a busy process increases it`,
    ],
    [
      `${title}: attempts without a wait, which are not spread`,
      clients.flatMap(({ waits }) => waits.filter(({ delayMs }) => delayMs === 0)).length,
    ],
    [`${title}: next requests within 50 ms after Retry-After was over`, `${within(late, 50)} of ${late.length}`],
  ];
};

const attemptChart = ({ name, title, at, attempts: { due, predicted } }) =>
  columns(`storm-${name}`, `${title}: when the attempts after a wait were due`, {
    measured: ['were due', due.map((time) => time - at)],
    predicted: predicted.map((times) => times.map((time) => time - at)),
  });

const arrivalChart = ({ name, title, reached: { arrivals, predicted } }) =>
  columns(`storm-${name}-arrivals`, `${title}: the first attempts that reached the new service`, {
    measured: ['arrived', arrivals],
    predicted,
  });

const columns = (id, title, { measured: [name, times], predicted }) => {
  const toMs = Math.max(...times, ...predicted[0]);
  const expected = histogram(predicted.flat(), { toMs, widthMs: BIN_MS });
  const mean = (bin) => Math.round((bin / predicted.length) * 10) / 10;
  return {
    id,
    title: `${title}, ${BIN_MS} ms a column`,
    kind: 'columns',
    x: 'ms after the end of the old service',
    y: 'clients',
    series: [
      { name, points: histogram(times, { toMs, widthMs: BIN_MS }) },
      { name: 'full jitter predicts', points: expected.map(([bin, n]) => [bin, mean(n)]) },
    ],
  };
};

const backChart = (storms) => ({
  id: 'storm-back',
  title: 'Clients that received a frame again',
  kind: 'lines',
  x: 'ms after the end of the old service',
  y: '% of the clients',
  series: storms.map((each) => ({
    name: each.title,
    points: Array.from({ length: 101 }, (_, share) => [backAfter(each, share / 100) || each.upAt - each.at, share]),
  })),
});
