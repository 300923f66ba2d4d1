// examples/log-to-postgres with the PostgreSQL of Debian. The program is killed again and again while the log grows; every row must be there once.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { Subject } from 'rxjs';
import { Frame } from 'rx-trade-feed';
import { feedLog } from 'rx-trade-feed/log';
import { temporaryFolder } from '../apps/support.mjs';
import { install, postgresPrograms } from './packages.mjs';
import { unprivileged } from './program.mjs';

const program = resolve(import.meta.dirname, '../../examples/log-to-postgres/store.mjs');

install('postgresql');
const folder = temporaryFolder('log-to-postgres-');
chmodSync(folder, 0o755);
const data = join(folder, 'data');
mkdirSync(data);
if (unprivileged.uid) chownSync(data, unprivileged.uid, unprivileged.gid);
const programs = postgresPrograms();
const asTest = '--username test --auth trust --no-sync --encoding UTF8 --no-locale'.split(' ');
execFileSync(join(programs, 'initdb'), ['--pgdata', data, ...asTest], { stdio: 'pipe', ...unprivileged, cwd: data });
const settings = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${data}`, '-c', 'fsync=off'];
const server = spawn(join(programs, 'postgres'), ['-D', data, ...settings], {
  ...{ stdio: ['ignore', 'ignore', 'pipe'], ...unprivileged, cwd: data },
});
after(async () => {
  const exit = once(server, 'exit');
  server.kill('SIGINT');
  await exit;
});
for await (const line of createInterface(server.stderr)) if (line.includes('ready to accept connections')) break;
server.stderr.resume();
const env = { ...process.env, PGHOST: data, PGUSER: 'test', PGDATABASE: 'postgres' };

const query = (sql) => execFileSync('psql', ['-X', '-t', '-A', '-c', sql], { env, encoding: 'utf8' }).trim();

test('stores each frame of the log once, although it is killed again and again', async () => {
  const path = join(folder, 'market');
  const frames = new Subject();
  const writer = frames.pipe(feedLog(path).append()).subscribe();
  let count = 0;
  const append = (more) => {
    for (let n = 0; n < more; n += 1, count += 1)
      frames.next(new Frame('market', Buffer.from(`${count}\tof\\n ${count}\n`), false, Date.now(), 1));
  };
  append(100);
  const total = 1_000;

  /** Runs the program and kills it after some lines of output, or once everything is stored. The log grows meanwhile. */
  const run = async (lines) => {
    const child = spawn(process.execPath, [program, path], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const exit = once(child, 'exit');
    let printed = 0;
    for await (const line of createInterface(child.stdout)) {
      const isLast = line === `stored up to ${count - 1}` || line === `from ${count}`;
      if (count < total) append(20);
      else if (isLast) break;
      if ((printed += 1) === lines) break;
    }
    // In the middle of a transaction, unless everything is stored.
    child.kill('SIGKILL');
    await exit;
  };
  // After its first line, and after some commits.
  for (let round = 0; round < 12; round += 1) await run(1 + (round % 4));
  assert.ok(Number(query('select count(*) from frames')) > 0);
  // A killed program's psql may still be committing, which makes the next program exit.
  const isComplete = () => Number(query('select count(*) from frames')) === total;
  while (!isComplete()) await run(Infinity);
  writer.unsubscribe();
  assert.equal(query('select count(*), count(distinct payload) from frames'), `${count}|${count}`);
  assert.equal(query(`select payload from frames where payload like '7\t%'`), '7\tof\\n 7');
});
