// The simulations by the name of their command: what a bad run is, and what the report says about the runs.
import { simulation } from '../../test/support/simulation.mjs';
import { exactly } from '../lib/report.mjs';

const hours = (ms) => ({ 'hours of virtual time': Math.round(ms / 3_600_000) });

/** Searches every order of the events of two replicas. */
const search = async ({ states: maxStates }) => {
  const { explore } = await simulation('cluster', undefined, 'explore.ts');
  const searches = [
    { from: 'start', faults: 1 },
    { from: 'owner', faults: 1 },
    { from: 'owner', faults: 2 },
  ].map((each) => ({ ...each, ...explore({ ...each, depth: 200, maxStates, settle: 1_000 }) }));
  const found = searches.flatMap(({ violation }) => violation ?? []);
  for (const violation of found) console.log(violation);
  return {
    goals: [exactly('violations in the search of every order of events', found.length, 0)],
    tables: [
      {
        title: 'Every order of events of two replicas, up to a number of states',
        columns: [
          'from',
          'faults in a path',
          'states',
          'transitions',
          'depth',
          'continued to the end',
          'the store lost the stop',
        ],
        rows: searches.map((each) => [
          ...[each.from, each.faults, each.states, each.transitions],
          ...[each.depth, each.settled, each.lostStops],
        ]),
      },
    ],
  };
};

export const simulations = {
  'cluster-simulation': {
    room: 'cluster',
    options: { runs: 2_000, 'mutant-runs': 600, states: 200_000 },
    goals: ({ bad }) => [
      exactly('random runs with a false stop, no owner in the end, or a loss that no gap reports', bad, 0),
    ],
    facts: ({ counts, faults }) => ({
      faults: Object.values(faults).reduce((sum, count) => sum + count, 0),
      takeovers: counts.takeovers,
      frames: counts.frames,
      'stopped runs': counts.isStopped,
      'of which by a loss in the store that no replica can notice': counts.isUnnoticedLoss,
      ...hours(counts.durationMs),
    }),
    search,
  },
  'relay-simulation': {
    room: 'relay',
    options: { runs: 2_000, 'mutant-runs': 100 },
    goals: ({ kinds }) =>
      [
        ...['lost frames outside gaps', 'complete windows that are wrong', 'frames received twice'],
        ...['times that go back', 'other'],
      ].map((kind) =>
        exactly(kind === 'other' ? 'pages that receive no frames in the end' : kind, kinds[kind] ?? 0, 0),
      ),
    facts: ({ counts }) => ({
      'frames sent by the service': counts.frames,
      'frames received by all readers': counts.received,
      gaps: counts.gaps,
      'windows, of which complete': `${counts.windows}, ${counts.completeWindows}`,
      ...hours(counts.virtualMs),
    }),
  },
  'log-simulation': {
    room: 'log',
    options: { runs: 2_000, 'mutant-runs': 150 },
    goals: ({ bad }) => [
      exactly('runs in which a record is lost, repeated or changed, or a consumer skips one', bad, 0),
    ],
    facts: ({ counts }) => ({
      'frames sent': counts.frames,
      'frames received': counts.received,
      gaps: counts.gaps,
      ...hours(counts.virtualMs),
    }),
  },
  settle: {
    room: 'settle',
    word: 'world',
    options: { runs: 10_000, 'mutant-runs': 100 },
    tally: { name: 'states', title: 'Outcomes', columns: ['outcome', 'times'] },
    goals: ({ violations }) => [exactly('wrong outcomes, and unknown ones without a gap', violations, 0)],
    facts: ({ counts }) => ({
      trades: counts.trades,
      'outcomes, of which corrections': `${counts.outcomes}, ${counts.corrections}`,
    }),
  },
};
