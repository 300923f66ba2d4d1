// Runs the client with random faults of the service, the network and the subscribers, and checks the ten rules of
// docs/architecture.md. All faults follow from a seed.
//
//   npm run reliability -- chaos --seed 7 --minutes 10
//   npm run reliability -- chaos --seed 7 --episode 3      repeats one episode and writes the logs of its feeds
import { mkdirSync, writeFileSync } from 'node:fs';
import { config } from 'rxjs';
import { TradeFeedError } from 'rx-trade-feed';
import { OwnError } from '../../test/model/watched.ts';
import { certificateFor } from '../../test/support/certificate.ts';
import { exactly, report } from '../lib/report.mjs';
import { readOptions } from '../lib/options.mjs';
import { runEpisode } from './episode.ts';

const EPISODE_MS = 12_000;
/** Episodes that run at the same time, half of them over TLS. */
const CONCURRENT = 4;

const options = { seed: Date.now() % 1_000_000, minutes: 1, episode: undefined };
const { seed, minutes, episode: only } = readOptions(options, { positive: ['minutes'] });

const certificate = await certificateFor();
const seedOf = (episode) => (seed * 100_003 + episode) >>> 0;
let failed = 0;

/** What has happened in all episodes, and how often. */
const tally = { subscriptions: 0, 'ticket requests': 0, connections: 0, frames: 0, reconnects: 0, gaps: 0 };
const failures = {};
const counted = { frame: 'frames', 'ticket-request': 'ticket requests' };
const countedEvents = { opened: 'connections', gap: 'gaps', reconnecting: 'reconnects' };

const addLog = (log) => {
  tally.subscriptions += 1;
  for (const { what, event, error } of log) {
    const name = what === 'event' ? countedEvents[event.type] : counted[what];
    if (name !== undefined) tally[name] += 1;
    const failure = event?.type === 'disconnected' ? event.failure : error;
    if (failure instanceof TradeFeedError) failures[failure.code] = (failures[failure.code] ?? 0) + 1;
  }
};

const unhandled = (error) => {
  if (error instanceof OwnError) return;
  failed += 1;
  console.log(`✗ unhandled error: ${error instanceof Error ? error.stack : String(error)}`);
};
config.onUnhandledError = unhandled;
process.on('unhandledRejection', unhandled).on('uncaughtException', unhandled);

const run = async (episode) => {
  const isOverTls = episode % 2 === 0;
  const { violations, logs } = await runEpisode(seedOf(episode), EPISODE_MS, isOverTls ? certificate : undefined);
  for (const log of logs.values()) addLog(log);
  failed += violations.length;
  for (const violation of violations) console.log(`✗ seed ${seed}, episode ${episode}: ${violation}`);
  if (violations.length === 0 && only === undefined) return;
  mkdirSync('temp/chaos', { recursive: true });
  const path = `temp/chaos/${seed}-${episode}.json`;
  writeFileSync(path, JSON.stringify(Object.fromEntries(logs), undefined, 1));
  console.log(`  log: ${path}; to repeat: npm run reliability -- chaos --seed ${seed} --episode ${episode}`);
};

console.log(`chaos: seed ${seed}, ${only === undefined ? `${minutes} minutes` : `episode ${only}`}`);
const startedAt = performance.now();
const isOver = () => performance.now() - startedAt + EPISODE_MS > minutes * 60_000;
let next = 1;
if (only !== undefined) await run(Number(only));
else
  do {
    await Promise.all(Array.from({ length: CONCURRENT }, () => run(next++)));
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const counts = Object.entries(tally).map(([what, n]) => `${n} ${what}`);
    console.log([`${seconds} s: ${next - 1} episodes`, ...counts, `${failed} violations`].join(', '));
  } while (!isOver());

if (only === undefined)
  report({
    name: 'chaos',
    command: `npm run reliability -- chaos --seed ${seed} --minutes ${minutes}`,
    keep: minutes >= 10,
    facts: { episodes: next - 1 },
    goals: [exactly('violations of the ten rules', failed, 0)],
    tables: [
      { title: 'What happened', columns: Object.keys(tally), rows: [Object.values(tally)] },
      {
        title: 'Failures by code',
        columns: ['code', 'times'],
        rows: Object.entries(failures).sort(([, a], [, b]) => b - a),
      },
    ],
  });
console.log(failed === 0 ? '✓ no rule was broken' : `✗ ${failed} violations`);
process.exitCode = failed === 0 ? 0 : 1;
