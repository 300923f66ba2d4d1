// Runs tests that make up their cases, with many of them.
//
//   npm run reliability -- model [--runs 2000] [--seed S]      sequences of steps, compared with a model
//   npm run reliability -- fuzz [--runs 5000] [--seed S]       cases of each property
//   MODEL_SEED=S MODEL_PATH=P MODEL_REPLAY=R npm run unit -- test/model      repeats one sequence; a failure prints these values
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exactly, holds, report } from './lib/report.mjs';
import { readOptions } from './lib/options.mjs';

/** Runs the tests of a folder. Returns whether all passed, and what they wrote to the file that is in `NAME_REPORT`. */
const runJest = (name, { runs, seed }) => {
  const temp = mkdtempSync(join(tmpdir(), 'rx-trade-feed-jest-'));
  const file = join(temp, 'report');
  writeFileSync(file, '');
  const variables = Object.entries({ RUNS: runs, SEED: seed, REPORT: file });
  const env = Object.fromEntries(variables.map(([end, value]) => [`${name.toUpperCase()}_${end}`, `${value}`]));
  try {
    const options = { stdio: 'inherit', env: { ...process.env, ...env } };
    const { status } = spawnSync('npm', ['run', '--silent', 'unit', '--', `test/${name}`], options);
    return { passed: status === 0, written: readFileSync(file, 'utf8') };
  } finally {
    rmSync(temp, { recursive: true });
  }
};

const events = [
  ...['ticket-requested', 'ticket-issued', 'opened', 'frame', 'gap'],
  ...['disconnected', 'reconnecting', 'stopped', 'errored', 'unsubscribed'],
];

const kinds = {
  model: {
    usual: 2_000,
    resultOf: ({ passed, written, isLong }) => {
      const { steps, ...tally } = passed ? JSON.parse(written) : {};
      const codes = Object.keys(tally).filter((name) => !events.includes(name));
      return {
        goals: [
          // A sequence that failed was printed with its seed and path.
          holds('no sequence in which the feed and the model differ, or a rule is broken', passed),
          holds('every failure of the table occurred', !isLong || codes.length >= 24, `${codes.length} codes`),
        ],
        tables: [
          { title: 'Events', columns: ['event', 'times'], rows: events.map((name) => [name, tally[name] ?? 0]) },
          { title: 'Failures by code', columns: ['code', 'times'], rows: codes.map((code) => [code, tally[code]]) },
        ],
        facts: { steps },
      };
    },
  },
  fuzz: {
    usual: 5_000,
    resultOf: ({ passed, written }) => {
      const rows = written
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
      return {
        goals: [
          exactly('cases that broke a property', sum('failures'), 0),
          // A test file that fails to load reports no failed case.
          holds('every test file passed', passed),
        ],
        tables: [
          {
            title: 'Properties and the outcomes of their cases',
            columns: ['property', 'cases', 'failed', 'outcomes'],
            rows: rows
              .map(({ property, cases, failures, outcomes }) => [property, cases, failures, textOf(outcomes)])
              .sort(([one], [other]) => one.localeCompare(other)),
          },
        ],
        facts: { properties: rows.length, cases: sum('cases') },
      };
    },
  },
};

const textOf = (outcomes = {}) =>
  Object.entries(outcomes)
    .sort(([, a], [, b]) => b - a)
    .map(([outcome, times]) => `${outcome} ${times}`)
    .join(', ');

const [name, ...args] = process.argv.slice(2);
const { usual, resultOf } = kinds[name];
const { runs, seed } = readOptions({ runs: usual, seed: Date.now() % 2 ** 31 }, { least: { runs: 1 }, args });
console.log(`${name}: ${runs} runs, seed ${seed}`);
const startedAt = performance.now();
const { facts, ...result } = resultOf({ ...runJest(name, { runs, seed }), isLong: runs >= usual });
report({
  name,
  command: `npm run reliability -- ${name} --runs ${runs} --seed ${seed}`,
  ...result,
  facts: { runs, ...facts, seconds: Math.round((performance.now() - startedAt) / 1_000) },
  keep: runs >= 1_000,
});
