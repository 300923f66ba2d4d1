// Cuts connections on both plans, for each reading of the contract, and compares what arrives with what the service saw: every lost frame must be in
// a gap, and no complete window may miss one. In virtual time over many rates and delays, then over real connections behind each hop.
//
//   npm run reliability -- continuity [--cuts 200] [--real-cuts 24] [--seed 1] [--threads 2]
import { simulation } from '../../test/support/simulation.mjs';
import { atMost, exactly } from '../lib/goal.mjs';
import { readOptions } from '../lib/options.mjs';
import { report } from '../lib/report.mjs';
import { cutInThreads } from './virtual.mjs';
import { cutForReal } from './real.mjs';

const defaults = { cuts: 200, 'real-cuts': 24, seed: 1, threads: 2 };
const options = readOptions(defaults, { least: { cuts: 1, threads: 1 } });
const { cuts, 'real-cuts': realCuts, seed, threads } = options;

const startedAt = performance.now();
const { cases } = await simulation('continuity');
const results = await cutInThreads(cases, { cuts, seed, threads });
const real = realCuts === 0 ? [] : await cutForReal({ cuts: realCuts, seed });
for (const { timelines } of results) for (const timeline of timelines.slice(0, 1)) console.log(timeline);
for (const { hop, violations } of real) for (const what of violations.slice(0, 5)) console.log(`${hop}: ${what}`);

const total = (list, value) => list.reduce((sum, each) => sum + value(each), 0);
const kind = (list, name) => total(list, ({ kinds }) => kinds[name] ?? 0);
const [outside, wrong, other] = ['lost frames outside gaps', 'complete windows that are wrong', 'other'];
const counts = (list) => [
  total(list, ({ faults }) => faults.cuts),
  total(list, ({ counts }) => counts.lost),
  ...[outside, wrong, other].map((name) => kind(list, name)),
  Math.round(
    total(list, ({ counts }) => counts.gapMs) /
      Math.max(
        1,
        total(list, ({ counts }) => counts.gaps),
      ),
  ),
];
const columns = ['cuts', 'lost frames', 'outside gaps', 'wrong windows', 'other', 'ms per gap'];

const names = { drop: 'lost', 'send-when-due': 'sent when due', 'send-on-reconnect': 'sent after the reconnect' };
const serviceOf = ({ plan, waiting, deliveryDelayMs }) => [
  plan,
  plan === 'free' ? names[waiting] : '–',
  deliveryDelayMs,
];
const rateOf = ({ perSecond }) => (perSecond < 1 ? '1 a minute' : `${perSecond}/s`);
const nameOf = ({ case: of }) => [...serviceOf(of), rateOf(of)].join();
const groups = [...new Set(results.map(nameOf))].map((name) => results.filter((each) => nameOf(each) === name));
const gapMs = (deliveryDelayMs) =>
  total(
    results.filter(
      ({ case: of }) => of.plan === 'developer' && of.perSecond === 50 && of.deliveryDelayMs === deliveryDelayMs,
    ),
    ({ counts }) => counts.gapMs,
  );

await report({
  name: 'continuity',
  command: `npm run reliability -- continuity --cuts ${cuts} --real-cuts ${realCuts} --seed ${seed}`,
  goals: [
    exactly('lost frames outside gaps', kind(results, outside), 0),
    exactly('complete windows that miss a frame or count a wrong number', kind(results, wrong), 0),
    exactly('other violations', kind(results, other), 0),
    atMost(
      "gap time on Developer at 50 frames a second with 'auto', compared with `deliveryDelayMs: 0`",
      Number((gapMs('auto') / gapMs(0)).toFixed(3)),
      1.05,
    ),
    exactly(
      'lost frames outside gaps, and wrong complete windows, over real connections',
      total(real, ({ violations }) => violations.length),
      0,
    ),
  ],
  tables: [
    {
      title: 'In virtual time: directly, for late subscribers, over one and two relays, and in a log',
      columns: ['plan', 'waiting frames', 'deliveryDelayMs', 'frames', ...columns],
      rows: groups.map((list) => [...serviceOf(list[0].case), rateOf(list[0].case), ...counts(list)]),
    },
    ...(real.length === 0
      ? []
      : [
          {
            title: 'Real connections to the local service, 50 frames a second',
            columns: [
              'hop',
              'plan',
              'waiting frames',
              'deliveryDelayMs',
              'cuts',
              'lost frames',
              'windows',
              'violations',
              'ms per gap',
            ],
            rows: real.map((each) => [
              each.hop,
              ...serviceOf(each.case),
              ...[each.cuts, each.lost, each.windows, each.violations.length, each.msPerGap],
            ]),
          },
        ]),
  ],
  facts: {
    'cuts in virtual time': total(results, ({ faults }) => faults.cuts),
    'real cuts': total(real, (each) => each.cuts),
    'frames, of which lost': `${total(results, ({ counts }) => counts.frames)}, ${total(results, ({ counts }) => counts.lost)}`,
    'windows, of which complete': `${total(results, ({ counts }) => counts.windows)}, ${total(results, ({ counts }) => counts.completeWindows)}`,
    'hours of virtual time': Math.round(total(results, ({ counts }) => counts.virtualMs) / 3_600_000),
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  },
  keep: cuts >= defaults.cuts && realCuts >= defaults['real-cuts'],
});
