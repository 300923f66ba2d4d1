// The queries of docs/how-to/query-log.md, over a log.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { lastValueFrom, of } from 'rxjs';
import { createTradeFeedError, Frame } from 'rx-trade-feed';
import { feedLog } from 'rx-trade-feed/log';
import { fromNpm } from '../../scripts/install.mjs';
import { fencesOf, temporaryFolder } from '../apps/support.mjs';
import { install } from './packages.mjs';

const codeIn = (lang) =>
  fencesOf('docs/how-to/query-log.md').flatMap(({ language, code }) => (language === lang ? [code.trim()] : []));

/** Installs DuckDB, and opens a database in memory. Returns a function that resolves with the rows of a statement, as in JSON. */
const openDuckDb = async () => {
  const folder = fromNpm('@duckdb/node-api', '1.5.6-r.1');
  const { DuckDBInstance } = createRequire(join(folder, 'package.json'))('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  return async (statement) => (await connection.runAndReadAll(statement)).getRowObjectsJson();
};

const start = Date.UTC(2026, 0, 1);
const frameAt = (ms, batch, trades, connection = 1) =>
  new Frame('market', Buffer.from(JSON.stringify({ batch, trades })), false, start + ms, connection);
const eth = (price, amount) => ({ market: 'ETH-USD', price, amount });
const btc = (price, amount) => ({ market: 'BTC-USD', price, amount });
const failure = createTradeFeedError({ stage: 'stream', closeCode: 1001, endedAt: start + 1_200 });
const gap = { type: 'gap', from: start + 1_200, to: start + 1_700, durationMs: 500, failure };
const events = [
  ...[frameAt(0, 1, [eth('3000.00', '1.000')]), frameAt(200, 2, [btc('60000.00', '0.500')])],
  frameAt(1_100, 3, [eth('3300.00', '2.000')]),
  ...[
    { type: 'disconnected', at: gap.from, failure },
    { type: 'opened', at: gap.to, feed: 'market', connection: 2 },
    gap,
  ],
  frameAt(2_000, 4, [], 2),
];
const bytesOf = (...frames) => frames.reduce((sum, { byteLength }) => sum + byteLength, 0);
const [first, second, third, , , , last] = events;

install();
const folder = temporaryFolder('query-log-');
await lastValueFrom(of(...events).pipe(feedLog(join(folder, 'market')).append()));
// DuckDB has no other working directory.
process.chdir(folder);

const lines = (...rows) => rows.map((cells) => [cells].flat().join('\t'));
const seconds = [
  ['2026-01-01T00:00:00Z', 2, bytesOf(first, second)],
  ['2026-01-01T00:00:01Z', 1, bytesOf(third)],
  ['2026-01-01T00:00:02Z', 1, bytesOf(last)],
];

test('the commands of the page print these lines with jq', () => {
  const commands = codeIn('bash').filter((code) => code.startsWith('jq '));
  const expected = [
    ['      1 disconnected', '      4 frame', '      1 gap', '      1 opened', '      1 segment'],
    lines(['2026-01-01T00:00:01Z', 500, 'server-shutdown']),
    [first, second, third, last].map((frame) => frame.text()),
    lines(...seconds),
  ];

  const outputs = commands.map((command) => execFileSync('bash', ['-c', command], { encoding: 'utf8' }));
  assert.deepEqual(
    outputs.map((output) => output.trimEnd().split('\n')),
    expected,
  );
});

test('the statements of the page return these rows in DuckDB, in their order', async () => {
  const statements = codeIn('sql');
  const time = (at) => at.replace('T', ' ').replace('Z', '');
  const expected = [
    [],
    seconds.map(([at, frames, bytes]) => ({ second: time(at), frames: String(frames), bytes: String(bytes) })),
    [{ since: '2026-01-01 00:00:01.2', durationMs: 500, code: 'server-shutdown' }],
    [
      { connection: '1', silence_ms: 900 },
      { connection: '2', silence_ms: null },
    ],
    [
      { market: 'BTC-USD', volume: 0.5, average_price: 60_000 },
      { market: 'ETH-USD', volume: 3, average_price: 3_200 },
    ],
    [{ Count: '4' }],
  ];

  assert.equal(statements.length, expected.length);
  const query = await openDuckDb();
  for (const [index, statement] of statements.entries())
    assert.deepEqual(await query(statement), expected[index], statement);
});
