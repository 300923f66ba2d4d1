// What the storms found.
import { holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';
import { histogram, largestWithin } from '../lib/waves.mjs';
import { waitsOf } from './limiter.mjs';
import { floorRule, spreadRules, triesOf } from './spread.mjs';
import { arrivalsOf, backAfter, storyRules } from './story.mjs';

const BIN_MS = 100;

/** Judges the storms, and reports them; the one without jitter must break the rules of the spread. */
export const reportStorm = async ({ storms, policy, limits, seed, count, waveMs, keep }) => {
  const judged = storms.map((each) => {
    const tries = triesOf(each, policy, seed);
    return {
      ...each,
      tries,
      came: arrivalsOf(each, policy, seed),
      spread: [...spreadRules(tries, waveMs), ...(keep && !each.isControl ? [floorRule(each.clients, policy)] : [])],
      story: storyRules(each, limits),
    };
  });
  const goals = judged.flatMap(({ isControl, title, spread, story }) => {
    // The waves of few clients are small: there the control is held to its waits alone.
    const own = isControl ? (keep ? spread : spread.slice(0, 1)).map(mustBreak) : spread;
    return [...own, ...story].map((goal) => ({ ...goal, what: `${title}: ${goal.what}` }));
  });
  await report({
    name: 'storm',
    command: `npm run storm -- --clients ${count} --seed ${seed}`,
    keep,
    goals,
    charts: [...judged.map(tryChart), arrivalChart(judged[0]), backChart(judged)],
    tables: [
      {
        title: 'When clients were back, in ms after the service had gone',
        columns: ['storm', 'service was away', '50 %', '90 %', 'all', 'refused with 429', 'tries that found nobody'],
        rows: judged.map((each) => [
          each.title,
          each.upAt - each.at,
          ...[0.5, 0.9, 1].map((share) => backAfter(each, share)),
          waitsOf(each.events).refused,
          each.came.failedTries,
        ]),
      },
    ],
    facts: Object.fromEntries(judged.flatMap(factsOf)),
  });
};

const mustBreak = ({ what, wanted, measured, met }) => ({
  ...holds(`the rule is broken: ${what}`, !met, measured),
  wanted: `not ${wanted}`,
});

const factsOf = ({ title, clients, events, came: { arrivals, predicted } }) => {
  const { late } = waitsOf(events);
  const within = (times, ms) => times.filter((time) => time <= ms).length;
  const largest = predicted.map((times) => largestWithin(times, 50)).sort((a, b) => a - b);
  return [
    [
      `${title}: the largest wave that came within 50 ms`,
      `${largestWithin(arrivals, 50)}; full jitter alone makes ${largest[largest.length >> 1]}, a process that is late makes more`,
    ],
    [
      `${title}: tries at once, which nothing spreads`,
      clients.flatMap(({ waits }) => waits.filter(({ delayMs }) => delayMs === 0)).length,
    ],
    [`${title}: back within 50 ms after Retry-After was over`, `${within(late, 50)} of ${late.length}`],
  ];
};

const tryChart = ({ name, title, at, tries: { due, predicted } }) =>
  columns(`storm-${name}`, `${title}: tries that waited, when they were due`, {
    seen: ['were due', due.map((time) => time - at)],
    predicted: predicted.map((times) => times.map((time) => time - at)),
  });

const arrivalChart = ({ name, title, came: { arrivals, predicted } }) =>
  columns(`storm-${name}-came`, `${title}: first tries that found the new service`, {
    seen: ['came', arrivals],
    predicted,
  });

const columns = (id, title, { seen: [name, times], predicted }) => {
  const toMs = Math.max(...times, ...predicted[0]);
  const expected = histogram(predicted.flat(), { toMs, widthMs: BIN_MS });
  const mean = (bin) => Math.round((bin / predicted.length) * 10) / 10;
  return {
    id,
    title: `${title}, ${BIN_MS} ms a column`,
    kind: 'columns',
    x: 'ms after the old service had gone',
    y: 'clients',
    series: [
      { name, points: histogram(times, { toMs, widthMs: BIN_MS }) },
      { name: 'full jitter predicts', points: expected.map(([bin, n]) => [bin, mean(n)]) },
    ],
  };
};

const backChart = (storms) => ({
  id: 'storm-back',
  title: 'Clients that are back: a frame has come',
  kind: 'lines',
  x: 'ms after the end of the old service',
  y: '% of the clients',
  series: storms.map((each) => ({
    name: each.title,
    points: Array.from({ length: 101 }, (_, share) => [backAfter(each, share / 100) || each.upAt - each.at, share]),
  })),
});
