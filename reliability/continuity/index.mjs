// Cuts connections on both plans, for each reading of the contract, and compares what arrives with what the service saw: every lost frame must be in
// a gap, and no complete window may miss one. In virtual time over many rates and delays, then over real connections behind each hop.
//
//   npm run reliability -- continuity [--cuts 200] [--real-cuts 24] [--seed 1] [--threads 2]
import { simulation } from '../../test/support/simulation.mjs';
import { atMost, exactly, report } from '../lib/report.mjs';
import { readOptions } from '../lib/options.mjs';
import { runInThreads } from '../lib/threads.mjs';
import { cutForReal } from './real.mjs';

/** How many connections one run cuts. Every second run has stops and no relays. */
const CUTS_PER_RUN = 20;
const defaults = { cuts: 200, 'real-cuts': 24, seed: 1, threads: 2 };
const options = readOptions(defaults, { least: { cuts: 1, threads: 1 } });
const { cuts, 'real-cuts': realCuts, seed, threads } = options;

const startedAt = performance.now();
const { cases } = await simulation('continuity');
// Cases that differ in `deliveryDelayMs` only have the same cuts.
const worldOf = ({ perSecond, jitterMs, answerJitterMs }) => [perSecond, jitterMs, answerJitterMs].join();
const worlds = [...new Set(cases.map(worldOf))];
const blocks = cases.map((of) => ({
  from: seed + worlds.indexOf(worldOf(of)) * 1_000,
  count: Math.ceil(cuts / CUTS_PER_RUN),
  options: { case: of, cuts: Math.min(CUTS_PER_RUN, cuts) },
}));
const sums = await runInThreads('continuity', blocks, threads);
const results = sums.map((each, n) => ({ of: cases[n], ...each }));
const real = realCuts === 0 ? [] : await cutForReal({ cuts: realCuts, seed });
for (const { timelines } of results) for (const timeline of timelines.slice(0, 1)) console.log(timeline);
for (const { hop, violations } of real) for (const what of violations.slice(0, 5)) console.log(`${hop}: ${what}`);

/** Returns the sum of a count of the results. */
const total = (list, count, of = 'counts') => list.reduce((sum, each) => sum + (each[of][count] ?? 0), 0);
const kinds = ['lost frames outside gaps', 'complete windows that are wrong', 'other'];

const names = { drop: 'lost', 'send-when-due': 'sent when due', 'send-on-reconnect': 'sent after the reconnect' };
const serviceOf = ({ plan, waiting, deliveryDelayMs }) => [
  plan,
  plan === 'free' ? names[waiting] : '–',
  deliveryDelayMs,
];
const cellsOf = ({ of }) => [...serviceOf(of), of.perSecond < 1 ? '1 a minute' : `${of.perSecond}/s`];
const keyOf = (result) => cellsOf(result).join();
const groups = [...new Set(results.map(keyOf))].map((key) => results.filter((each) => keyOf(each) === key));
const rows = groups.map((list) => [
  ...cellsOf(list[0]),
  total(list, 'cuts', 'faults'),
  total(list, 'lost'),
  ...kinds.map((kind) => total(list, kind, 'kinds')),
  Math.round(total(list, 'gapMs') / Math.max(1, total(list, 'gaps'))),
]);
const gapMs = (deliveryDelayMs) => {
  const isIn = ({ of }) => of.plan === 'developer' && of.perSecond === 50 && of.deliveryDelayMs === deliveryDelayMs;
  return total(results.filter(isIn), 'gapMs');
};

report({
  name: 'continuity',
  command: `npm run reliability -- continuity --cuts ${cuts} --real-cuts ${realCuts} --seed ${seed}`,
  goals: [
    exactly('lost frames outside gaps', total(results, kinds[0], 'kinds'), 0),
    exactly('complete windows that miss a frame or count a wrong number', total(results, kinds[1], 'kinds'), 0),
    exactly('other violations', total(results, kinds[2], 'kinds'), 0),
    atMost(
      "gap time on Developer at 50 frames a second with 'auto', compared with `deliveryDelayMs: 0`",
      Number((gapMs('auto') / gapMs(0)).toFixed(3)),
      1.05,
    ),
    exactly(
      'lost frames outside gaps, and wrong complete windows, over real connections',
      real.flatMap(({ violations }) => violations).length,
      0,
    ),
  ],
  tables: [
    {
      title: 'In virtual time: directly, for late subscribers, over one and two relays, and in a log',
      columns: [
        ...['plan', 'waiting frames', 'deliveryDelayMs', 'frames', 'cuts', 'lost frames'],
        ...['outside gaps', 'wrong windows', 'other', 'ms per gap'],
      ],
      rows,
    },
    {
      title: 'Real connections to the local service, 50 frames a second',
      columns: [
        ...['hop', 'plan', 'waiting frames', 'deliveryDelayMs', 'cuts', 'lost frames'],
        ...['windows', 'violations', 'ms per gap'],
      ],
      rows: real.map((each) => [
        each.hop,
        ...serviceOf(each.case),
        ...[each.cuts, each.lost, each.windows, each.violations.length, each.msPerGap],
      ]),
    },
  ],
  facts: {
    'cuts in virtual time': total(results, 'cuts', 'faults'),
    'real cuts': real.reduce((sum, each) => sum + each.cuts, 0),
    'frames, of which lost': `${total(results, 'frames')}, ${total(results, 'lost')}`,
    'windows, of which complete': `${total(results, 'windows')}, ${total(results, 'completeWindows')}`,
    'hours of virtual time': Math.round(total(results, 'virtualMs') / 3_600_000),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: cuts >= defaults.cuts && realCuts >= defaults['real-cuts'],
});
