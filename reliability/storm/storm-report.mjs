// The report of the storms.
import { holds, report } from '../lib/report.mjs';
import { attemptsOf, floorRule, spreadRules } from './spread.mjs';
import { backAfter, timelineRules, waitsOf } from './timeline.mjs';

const unreachable = 'ticket-endpoint-unreachable';

/** Checks the rules and reports the result. The storm without jitter must break the rules about the spread. */
export const reportStorm = ({ storms, policy, limits, seed, count, waveMs, keep }) => {
  const goals = storms.flatMap((each) => {
    const { clients, isControl, title } = each;
    const ofSpread = spreadRules(attemptsOf(each, policy, seed), waveMs);
    // Few clients make small waves, so in a short run only the waits of the control are checked.
    const spread = isControl ? (keep ? ofSpread : ofSpread.slice(0, 1)).map(mustBreak) : ofSpread;
    const floor = keep && !isControl ? [floorRule(clients, policy)] : [];
    return [...spread, ...floor, ...timelineRules(each, limits)].map((goal) => ({
      ...goal,
      what: `${title}: ${goal.what}`,
    }));
  });
  report({
    name: 'storm',
    command: `npm run reliability -- storm --clients ${count} --seed ${seed}`,
    keep,
    goals,
    tables: [
      {
        title: 'When clients received frames again, in ms after the end of the old service',
        columns: ['storm', 'service was down', '50 %', '90 %', 'all', 'refused with 429', 'attempts while it was down'],
        rows: storms.map((each) => [
          each.title,
          each.upAt - each.at,
          ...[0.5, 0.9, 1].map((share) => backAfter(each, share)),
          waitsOf(each.events).refused,
          each.clients.flatMap(({ returns }) => returns.filter(({ code }) => code === unreachable)).length,
        ]),
      },
    ],
    facts: Object.fromEntries(storms.flatMap(factsOf)),
  });
};

const mustBreak = ({ what, wanted, measured, met }) => ({
  ...holds(`breaks the rule: ${what}`, !met, measured),
  wanted: `not ${wanted}`,
});

const factsOf = ({ title, clients, events }) => {
  const { late } = waitsOf(events);
  const immediate = clients.flatMap(({ waits }) => waits.filter(({ delayMs }) => delayMs === 0));
  return Object.entries({
    'attempts without a wait, which are not spread': immediate.length,
    'next requests within 50 ms after Retry-After was over': `${late.filter((ms) => ms <= 50).length} of ${late.length}`,
  }).map(([what, value]) => [`${title}: ${what}`, value]);
};
