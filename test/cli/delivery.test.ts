/** @lane processes */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { from, lastValueFrom } from 'rxjs';
import { act } from '../../src/cli/commands/cluster.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { feedLog } from '../../src/log/index.js';
import { marketBatches$, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { frameAt, opening } from './support/events.js';
import { commandRunner, envOf, fakeContext, FakeOutput } from './support/fakes.js';
import { endPrograms, program, shellCommand } from './support/program.js';
import { tempFolder } from './support/temp-folder.js';

// A command exits only when its output has left. See src/cli/delivery.ts.
jest.setTimeout(startTestLimitMs);
const folder = tempFolder();
const command = commandRunner();

/** A file in which no line is valid: `--verify` names each of them, in more than 1 MiB of JSON. */
let damaged: string;
/** A log with so many segments that its status doesn't fit in a pipe. */
let log: string;
let short: string;
let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 200 }) } });
  damaged = await folder.file('damaged.ndjson', 'no JSON\n'.repeat(20_000));
  log = folder.path('log');
  const frames = Array.from({ length: 1_000 }, (_, n) => frameAt(n, 'x'.repeat(300)));
  const events$ = from([...opening(0, 1), ...frames]);
  await lastValueFrom(events$.pipe(feedLog(log).append({ segmentBytes: 1_000, syncMs: Infinity })));
  short = folder.path('short');
  await lastValueFrom(from(opening(0, 1)).pipe(feedLog(short).append()));
});
afterAll(async () => {
  await endPrograms();
  await service.shutdown();
});

const lineOf = (name: string): string =>
  ({
    help: '--help',
    'help of a command': 'log --help',
    version: '--version',
    'exit codes': 'help exit-codes',
    status: `log status ${log}`,
    'status as JSON': `log status ${log} --json`,
    verify: `log status ${short} --verify -q`,
    doctor: 'doctor',
    'doctor as JSON': 'doctor --json',
    serve: 'serve',
    listen: 'listen --count 1 -q',
    'listen for long': 'listen --count 1000000 -q',
    'listen for ever': 'listen -q',
    replay: `replay ${log} --speed max --json -q`,
    demo: 'demo --outage-every 0',
  })[name] as string;

const results = ['help', 'help of a command', 'version', 'exit codes', 'status', 'status as JSON', 'verify', 'doctor'];
const allResults = [...results, 'doctor as JSON', 'serve'];
const streams = ['listen', 'replay', 'demo'];

/** Runs a command whose stdout takes one write and blocks. */
const blocked = (name: string) => {
  const stdout = new FakeOutput();
  stdout.block();
  const ended = jest.fn();
  const running = command(lineOf(name), { stdout, env: name === 'demo' ? {} : envOf(service) });
  void running.exit.then(ended);
  return { ...running, ended };
};

const someTurns = async (): Promise<void> => {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
};

describe('a command', () => {
  it.each([...results, 'doctor as JSON', 'listen', 'replay'])(
    'does not end before stdout has taken all of: %s',
    async (name) => {
      const { stdout, stderr, exit, ended } = blocked(name);
      await stdout.until(/\n/);
      await someTurns();
      expect(ended).not.toHaveBeenCalled();
      stdout.unblock();
      expect(await exit).toBe(0);
      expect(stderr.text).toBe('');
    },
  );

  it.each<[names: readonly string[], 'EPIPE' | 'ENOSPC', code: number, says: string]>([
    [[...allResults, ...streams], 'ENOSPC', 1, "Can't write to stdout: no space is left."],
    [allResults, 'EPIPE', 1, "Can't write to stdout: its reader has exited."],
    [streams, 'EPIPE', 0, ''],
  ])('of %j, whose stdout breaks with %s, ends with %d and says: %s', async (names, cause, code, says) => {
    for (const name of names) {
      const { stdout, stderr, exit } = blocked(name);
      await stdout.until(/\n/);
      stdout.break(cause);
      expect([name, await exit]).toEqual([name, code]);
      expect(stderr.text.endsWith(says && `rx-trade-feed: ${says}\n`)).toBe(true);
      if (says === '') expect(stderr.text).toBe('');
    }
  });

  it('waits for stderr to take its error', async () => {
    const stderr = new FakeOutput();
    stderr.block();
    const ended = jest.fn();
    const { exit } = command('listen --cuont 5', { stderr });
    void exit.then(ended);
    await stderr.until(/Did you mean --count\?/);
    await someTurns();
    expect(ended).not.toHaveBeenCalled();
    stderr.unblock();
    expect(await exit).toBe(2);
  });

  it('is complete before cluster status closes its engine', async () => {
    const context = fakeContext();
    context.stdout.on('error', () => undefined);
    context.stdout.block();
    const close = jest.fn(() => Promise.resolve());
    const connect = () => Promise.resolve({ engine: memoryEngine(), close });
    const exit = act('status', { cluster: 'nats://a' }, context, connect);
    await context.stdout.until(/no replica has owned/);
    await someTurns();
    expect(close).not.toHaveBeenCalled();
    context.stdout.break('ENOSPC');
    await expect(exit).rejects.toMatchObject({ exitCode: 1 });
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('gives a slow reader a second after an interrupt, and then it ends with 130', async () => {
    const [bounded, unbounded] = [blocked('listen for long'), blocked('listen for ever')];
    await Promise.all([bounded.stdout.until(/\n/), unbounded.stdout.until(/\n/)]);
    expect(await Promise.all([bounded.end('SIGINT'), unbounded.end('SIGTERM')])).toEqual([130, 130]);
    expect(unbounded.stderr.text).toContain('SIGTERM came before the reader of stdout had taken all output.');
  });
});

describe('the program', () => {
  const lengthOf = async (args: string): Promise<number> => {
    const file = folder.path('complete');
    await shellCommand(`$FEED ${args} > ${file}`).exit;
    return statSync(file).size;
  };
  const large = (): readonly (readonly [args: string, code: number])[] => [
    [`log status ${log} --json`, 0],
    [`log status ${damaged} --verify --json -q`, 5],
  ];

  it('writes all of a large result to a pipe whose reader waits, and to a socket', async () => {
    for (const [args, code] of large()) {
      const bytes = await lengthOf(args);
      expect(bytes).toBeGreaterThan(args.includes('--verify') ? 1024 * 1024 : 2 * 65_536);
      // The reader takes one byte, and the rest once the test has seen that byte.
      const reader = '{ dd bs=1 count=1 status=none >&2; read -r _ <&3; wc -c; }';
      const piped = shellCommand(`set -o pipefail; exec 3<&0; $FEED ${args} 2> /dev/null < /dev/null | ${reader}`);
      await piped.untilStderr(/./);
      piped.child.stdin.write('go on\n');
      expect([await piped.exit, Number(piped.stdout())]).toStrictEqual([code, bytes - 1]);

      const socket = program(args.split(' '));
      socket.child.stdout.pause();
      await waitFor(() => socket.child.stdout.readableLength > 0, { limitMs: startLimitMs });
      socket.child.stdout.resume();
      expect([await socket.exit, socket.stdout().length]).toStrictEqual([code, bytes]);
    }
  });

  it('never ends with 0 if a result was cut: by a full device, a limit of the file, or a reader that left', async () => {
    const [status] = large()[0] as readonly [string, number];
    for (const args of [status, '--help']) {
      const full = shellCommand(`$FEED ${args} > /dev/full`);
      expect(await full.exit).toBe(1);
      expect(full.stderr()).toBe("rx-trade-feed: Can't write to stdout: no space is left.\n");
    }
    const limited = shellCommand(`ulimit -f 1; $FEED ${status} > ${folder.path('limited')}`);
    expect(await limited.exit).toBe(1);
    expect(limited.stderr()).toBe("rx-trade-feed: Can't write to stdout: the file may not grow any more.\n");
    const left = shellCommand(`set -o pipefail; $FEED ${status} | head -c 1`);
    expect(await left.exit).toBe(1);
    expect(left.stderr()).toBe("rx-trade-feed: Can't write to stdout: its reader has exited.\n");
    const destroyed = program(['log', 'status', damaged, '--verify', '--json']);
    destroyed.child.stdout.pause();
    await waitFor(() => destroyed.child.stdout.readableLength > 0, { limitMs: startLimitMs });
    destroyed.child.stdout.destroy();
    expect(await once(destroyed.child, 'exit')).toStrictEqual([1, null]);
  });

  it('ends with 130 after an interrupt while a reader does not read', async () => {
    const stuck = program(['log', 'status', damaged, '--verify', '--json']);
    stuck.child.stdout.pause();
    await waitFor(() => stuck.child.stdout.readableLength > 0, { limitMs: startLimitMs });
    stuck.child.kill('SIGINT');
    expect(await once(stuck.child, 'exit')).toStrictEqual([130, null]);
    stuck.child.stdout.resume();
  });

  it('appends to a file that stdout and stderr share', async () => {
    const file = folder.path('shared');
    writeFileSync(file, 'before\n');
    const both = shellCommand(`$FEED log status ${damaged} --verify >> ${file} 2>&1`);
    expect(await both.exit).toBe(5);
    expect(readFileSync(file, 'utf8')).toMatch(/^before\n[^]*20,000 damaged lines\nrx-trade-feed: 20,000 lines of/);
  });
});
