/**
 * @lane brokers
 * @ci
 */
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { lastValueFrom, Subject, toArray } from 'rxjs';
import { feedLog, type LogError, type LogRecord } from '../../src/log/index.js';
import { Frame } from '../../src/protocol/frame.js';
import { describeInstalled } from '../cluster/support/real-server.js';
import { bundledPrograms } from '../support/bundled-programs.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';

const program = bundledPrograms('test/log/programs', ['writer.mjs', 'consumer.mjs', 'kill-rounds.mjs']);
const folders: string[] = [];
let isMounted = false;
afterAll(() => {
  if (isMounted) spawnSync('umount', [disk]);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
const start = (name: string, ...args: readonly string[]): ChildProcess => {
  const child = spawn(process.execPath, [program(name), ...args], { stdio: 'ignore' });
  children.push(child);
  return child;
};
const fresh = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'feed-log-'));
  folders.push(folder);
  return folder;
};

const limitMs = 300_000;

const rounds = 6;

/** Runs rounds of kills, and returns how often each was done. */
const kill = async (engine: 'folder' | 'nats', seed: number) => {
  const [main = '', ...others] = ['kill-rounds.mjs', 'writer.mjs', 'consumer.mjs'].map(program);
  const args = [main, engine, fresh(), ...others, `${rounds}`, `${seed}`];
  // On timeout it gets SIGTERM, and ends the processes it has started.
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 240_000 });
  const { violations, ...sums } = JSON.parse(stdout) as Readonly<Record<string, number>> & { violations: unknown };
  expect(violations).toEqual([]);
  expect(sums).toMatchObject({ writerKills: rounds });
  expect(sums['stops']).toBeGreaterThan(0);
  expect(sums['consumerKills']).toBeGreaterThan(0);
  return sums;
};

describeInstalled('nats', 'processes that are killed and stopped, and a NATS server that is killed', () => {
  it(
    'lose no record that a reader has received, repeat none, and skip none in a consumer',
    async () => expect((await kill('nats', 1))['serverKills']).toBeGreaterThan(0),
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
      const folder = fresh();
      const writer = start('writer.mjs', folder, '0');
      const consumer = start('consumer.mjs', folder, join(folder, 'applied'));
      await waitFor(() => statSync(join(folder, 'applied'), { throwIfNoEntry: false }), { limitMs: startLimitMs });
      writer.kill('SIGSTOP');
      consumer.kill('SIGSTOP');
      const log = feedLog(folder);
      const append = () => lastValueFrom(new Subject().pipe(log.append()));
      const consume = () => lastValueFrom(log.consume$('db', () => Promise.resolve()));
      await expect(append()).rejects.toMatchObject({ code: 'log-in-use', path: folder });
      await expect(consume()).rejects.toMatchObject({ code: 'consumer-in-use' });
      for (const child of [writer, consumer]) {
        const exit = once(child, 'exit');
        child.kill('SIGKILL');
        await exit;
      }
      const source = new Subject();
      const next = lastValueFrom(source.pipe(log.append()), { defaultValue: undefined });
      source.complete();
      await next;
    },
    limitMs,
  );
});

const disk = fresh();
isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]).status === 0;
describe('a full disk of 1 MB', () => {
  // Only root can mount.
  (isMounted ? it : it.skip)(
    'has every frame in the log, or in the number of a gap',
    async () => {
      const filler = join(disk, 'filler');
      writeFileSync(filler, Buffer.alloc(500_000));
      mkdirSync(join(disk, 'log'));
      const log = feedLog(join(disk, 'log'));
      const source = new Subject<Frame>();
      const errors: LogError[] = [];
      const done = lastValueFrom(
        source.pipe(log.append({ onError: (error) => void errors.push(error), segmentBytes: 100_000 })),
      );
      let sent = 0;
      const send = () => {
        for (let n = 0; n < 20; n += 1) {
          sent += 1;
          source.next(new Frame('market', Buffer.alloc(300, String(sent % 10)), false, Date.now(), 1));
        }
      };
      await waitFor(
        () => {
          send();
          return errors.length > 0;
        },
        { limitMs: startLimitMs },
      );
      send();
      rmSync(filler);
      const end = async () =>
        (await lastValueFrom(log.read$({ from: 'latest', follow: false }).pipe(toArray()))).length;
      // It retries every second.
      const records = async () => lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
      await waitFor(async () => (await records()).some(({ type }) => type === 'gap'), { limitMs: startLimitMs });
      send();
      source.complete();
      await done;
      const all = await records();
      const missed = all.reduce(
        (sum, record: LogRecord) => sum + (record.type === 'gap' ? (record.missed ?? NaN) : 0),
        0,
      );
      expect(errors.map(({ code }) => code)).toEqual(['log-write-failed']);
      expect(missed).toBeGreaterThan(0);
      expect(all.filter(({ type }) => type === 'frame').length + missed).toBe(sent);
      expect(await end()).toBeGreaterThanOrEqual(0);
    },
    limitMs,
  );
});
