// Runs the model-based tests with many sequences.
//
//   npm run reliability -- model [--runs 2000] [--seed S]
//   MODEL_SEED=S MODEL_PATH=P MODEL_REPLAY=R npm run unit -- test/model      repeats one sequence; a failure prints these values
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exactly, holds } from '../lib/goal.mjs';
import { report } from '../lib/report.mjs';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const { runs, seed } = values;
if (!/^[1-9]\d*$/.test(runs) || !/^\d+$/.test(seed)) {
  console.error('--runs and --seed must be whole numbers.');
  process.exit(2);
}

const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-model-'));
process.once('exit', () => rmSync(temp, { recursive: true, force: true }));
const tallyFile = join(temp, 'tally.json');
console.log(`model: ${runs} sequences, seed ${seed}`);
const startedAt = performance.now();
const { status } = spawnSync('npm', ['run', '--silent', 'unit', '--', 'test/model'], {
  stdio: 'inherit',
  env: { ...process.env, MODEL_RUNS: runs, MODEL_SEED: seed, MODEL_REPORT: tallyFile },
});
// A sequence that failed was printed with its seed and path.
if (status !== 0) process.exit(1);
const tally = JSON.parse(readFileSync(tallyFile, 'utf8'));

const events = [
  'ticket-requested',
  'ticket-issued',
  'opened',
  'frame',
  'gap',
  'disconnected',
  'reconnecting',
  'errored',
  'unsubscribed',
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
  facts: { sequences: Number(runs), steps: tally.steps, seconds: Math.round((performance.now() - startedAt) / 1_000) },
  keep: Number(runs) >= 2_000,
});
