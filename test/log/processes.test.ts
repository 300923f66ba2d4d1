/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { lastValueFrom } from 'rxjs';
import { feedLog, type LogError } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { describeInstalled, startServer } from '../cluster/support/real-server.js';
import { bundledPrograms } from '../support/bundled-programs.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';
import { logServers } from './log-servers.js';
import { all, append, done, gapsOf, path, read, startWriter, textsOf } from './support.js';

const program = bundledPrograms('test/log/programs', ['writer.mjs', 'consumer.mjs', 'kill-rounds.mjs', 'leaver.mjs']);
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
const start = (name: string, ...args: readonly string[]): ChildProcess => {
  const child = spawn(process.execPath, [program(name), ...args], { stdio: 'ignore' });
  children.push(child);
  return child;
};

const limitMs = 300_000;

const rounds = 6;

/** Runs rounds of kills, and returns how often each was done. */
const kill = async (engine: 'folder' | 'nats' | 'redis', seed: number) => {
  const [main = '', ...others] = ['kill-rounds.mjs', 'writer.mjs', 'consumer.mjs'].map(program);
  const args = [main, engine, path(''), ...others, `${rounds}`, `${seed}`];
  // On timeout it gets SIGTERM, and ends the processes it has started.
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 240_000 });
  const { violations, ...sums } = JSON.parse(stdout) as Readonly<Record<string, number>> & { violations: unknown };
  expect(violations).toEqual([]);
  expect(sums).toMatchObject({ writerKills: rounds, consumerKills: rounds });
  expect(sums['stops']).toBeGreaterThan(0);
  return sums;
};

for (const server of ['nats', 'redis'] as const)
  describeInstalled(server, `processes that are killed and stopped, and a ${server}-server that is killed`, () => {
    it(
      'lose no record that a reader has received, repeat none, and skip none in a consumer',
      async () => expect((await kill(server, 1))['serverKills']).toBeGreaterThan(0),
      limitMs,
    );

    it(
      'lose nothing when they unsubscribe and close their connection without waiting',
      async () => {
        await using broker = await startServer(server);
        const place = `${server}:${broker.broker.port}`;
        // An exception that nobody catches would end it.
        const { stdout } = await promisify(execFile)(process.execPath, [program('leaver.mjs'), place]);
        expect(stdout.trim()).toBe('done');
        const client = await logServers[server].connect(broker);
        const expected = Array.from({ length: 1_000 }, (_, n) => `"${Math.floor(n / 100)}:${n % 100}"`);
        expect(textsOf(await all(client.open('market')))).toEqual(expected);
      },
      limitMs,
    );
  });

describe('processes that are killed and stopped', () => {
  it(
    'lose no record that a reader has received, repeat none, and skip none in a consumer',
    () => kill('folder', 2),
    limitMs,
  );

  it(
    'lose their lock when killed but keep it while stopped, for the writer and for a consumer',
    async () => {
      const writer = start('writer.mjs', path(), '0');
      const consumer = start('consumer.mjs', path(), path('notes'));
      const hasWorked = () => existsSync(path('notes')) && readFileSync(path('notes'), 'utf8').includes('work');
      await waitFor(hasWorked, { limitMs: startLimitMs });
      writer.kill('SIGSTOP');
      consumer.kill('SIGSTOP');
      const log = feedLog(path());
      await expect(append(log, [])).rejects.toMatchObject({ code: 'log-in-use', path: path() });
      await expect(lastValueFrom(log.consume$('db', done))).rejects.toMatchObject({ code: 'consumer-in-use' });
      for (const child of [writer, consumer]) {
        const exit = once(child, 'exit');
        child.kill('SIGKILL');
        await exit;
      }
      await append(log, []);
    },
    limitMs,
  );
});

const disk = mkdtempSync(join(tmpdir(), 'feed-log-'));
const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]).status === 0;
afterAll(() => {
  if (isMounted) spawnSync('umount', [disk]);
  rmSync(disk, { recursive: true });
});

// Only root can mount.
(isMounted ? it : it.skip)(
  'a full disk of 1 MB has every frame in the log, or in the number of a gap',
  async () => {
    const filler = join(disk, 'filler');
    writeFileSync(filler, Buffer.alloc(500_000));
    const errors: LogError[] = [];
    const onError = (error: LogError) => void errors.push(error);
    const writer = startWriter(feedLog(join(disk, 'log'), { segmentBytes: 100_000 }), { onError });
    let sent = 0;
    const send = () => {
      for (let n = 0; n < 20; n += 1)
        writer.send(new Frame('market', Buffer.alloc(300, String((sent += 1) % 10)), false, Date.now(), 1));
      return errors.length > 0;
    };
    await waitFor(send, { limitMs: startLimitMs });
    send();
    rmSync(filler);
    const records = () => read({}, join(disk, 'log'));
    // It retries every second.
    await waitFor(async () => gapsOf(await records()).length > 0, { limitMs: startLimitMs });
    send();
    await writer.end();
    const all = await records();
    const missed = gapsOf(all).reduce((sum, gap) => sum + (gap.missed ?? NaN), 0);
    expect(errors.map(({ code }) => code)).toEqual(['log-write-failed']);
    expect(missed).toBeGreaterThan(0);
    expect(textsOf(all).length + missed).toBe(sent);
  },
  limitMs,
);
