// Runs the model-based tests with many sequences.
//
//   npm run reliability -- model [--runs 2000] [--seed S]
//   MODEL_SEED=S MODEL_PATH=P MODEL_REPLAY=R npm run unit -- test/model      repeats one sequence; a failure prints these values
import { exactly, holds } from './lib/goal.mjs';
import { readOptions } from './lib/options.mjs';
import { report } from './lib/report.mjs';
import { runJest } from './lib/run-jest.mjs';

const { runs, seed } = readOptions({ runs: 2_000, seed: Date.now() % 2 ** 31 }, { least: { runs: 1 } });
console.log(`model: ${runs} sequences, seed ${seed}`);
const { status, seconds, written } = runJest('test/model', 'MODEL', { runs, seed });
// A sequence that failed was printed with its seed and path.
if (status !== 0) process.exit(1);
const tally = JSON.parse(written);

const events = [
  ...['ticket-requested', 'ticket-issued', 'opened', 'frame', 'gap'],
  ...['disconnected', 'reconnecting', 'errored', 'unsubscribed'],
];
const codes = Object.keys(tally).filter((name) => ![...events, 'steps'].includes(name));
await report({
  name: 'model',
  command: `npm run reliability -- model --runs ${runs} --seed ${seed}`,
  goals: [
    exactly('sequences in which the feed and the model differ, or a rule is broken', 0, 0),
    holds('every failure of the table occurred', codes.length >= 24, `${codes.length} codes`),
  ],
  tables: [
    { title: 'Events', columns: ['event', 'times'], rows: events.map((name) => [name, tally[name] ?? 0]) },
    { title: 'Failures by code', columns: ['code', 'times'], rows: codes.map((code) => [code, tally[code]]) },
  ],
  facts: { sequences: runs, steps: tally.steps, seconds },
  keep: runs >= 2_000,
});
