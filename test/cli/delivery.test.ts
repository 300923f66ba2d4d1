/** @lane processes */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { filter, firstValueFrom, from, lastValueFrom } from 'rxjs';
import { act } from '../../src/cli/commands/cluster.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { feedLog } from '../../src/log/index.js';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../src/testing/index.js';
import type { TradeFeedService } from '../../src/testing/index.js';
import { itInCi } from '../support/cases.js';
import { certificateFor } from '../support/certificate.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { frameAt, opening } from './support/events.js';
import { commandRunner, envOf, fakeContext, FakeOutput } from './support/fakes.js';
import { endPrograms, type Program, program, shellCommand } from './support/program.js';
import { tempFolder } from './support/temp-folder.js';

// A command exits only when its output has left, and as a program also with real pipes, signals and terminals.
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
  const sources = { market: marketBatches$({ rate: 200 }), raw: pendingTransactions$({ rate: 200 }) };
  service = await startTradeFeedService({ sources });
  damaged = await folder.file('damaged.ndjson', 'no JSON\n'.repeat(20_000));
  log = folder.path('log');
  const frames = Array.from({ length: 1_000 }, (_, n) => frameAt(n, 'x'.repeat(300)));
  const events$ = from([...opening(0, 1), ...frames]);
  await lastValueFrom(events$.pipe(feedLog(log, { segmentBytes: 1_000, syncMs: Infinity }).append()));
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

/** The programs that use a key. They must print neither the key nor a ticket. */
const clients: { readonly started: Program; readonly key: string }[] = [];
afterEach(() => {
  for (const { started, key } of clients.splice(0)) {
    expect(started.stdout() + started.stderr()).not.toContain(key);
    expect(started.stdout() + started.stderr()).not.toMatch(/ticket_/);
  }
});
const client = (command: string, env: Readonly<Record<string, string>> = envOf(service)): Program => {
  const started = shellCommand(command, env);
  clients.push({ started, key: env['TRADE_FEED_API_KEY'] ?? '' });
  return started;
};

describe('the program', () => {
  it('loads no command and nothing that a feed needs for --version', async () => {
    const coverage = folder.path('coverage');
    const version = program(['--version'], { NODE_V8_COVERAGE: coverage });
    expect(await version.exit).toBe(0);
    const [file = ''] = readdirSync(coverage);
    const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as { result: { url: string }[] };
    const loaded = result.flatMap(({ url }) => /node_modules\/([^/]+)/.exec(url)?.[1] ?? []);
    expect([...new Set(loaded)].sort()).toEqual(['commander', 'rxjs']);
  });

  itInCi('ends with 0 on Ctrl-C in npm start, although npm runs it in a shell', async () => {
    const start = shellCommand('TERM=xterm script -qec "stty cols 60 rows 24; npm start --ignore-scripts" /dev/null');
    await start.untilStdout(/live: market, connection 1[^]*"batch":/);
    start.child.stdin.write('\x03');
    expect(await start.exit).toBe(0);
    expect(start.stdout()).toMatch(/\x1b\[\?1049lFollowed market for /);
  });

  itInCi('ends the line of the ^C on a terminal, so that the prompt starts on a new line', async () => {
    // Sends no frames: one that arrives while the signal is on its way would be printed after the ^C.
    await using silent = await startTradeFeedService();
    const opened = firstValueFrom(silent.events$.pipe(filter(({ type }) => type === 'handshake-accepted')));
    // Survives the signal, like an interactive shell.
    const lines = 'trap : INT; $FEED listen; printf PROMPT';
    const run = client(`TERM=xterm script -qec 'stty cols 80 rows 24; ${lines}' /dev/null`, envOf(silent));
    await opened;
    await run.untilStdout(/live: market/);
    run.child.stdin.write('\x03');
    expect(await run.exit).toBe(0);
    // The status line is drawn elsewhere on the screen: between saving and restoring the position of the cursor.
    const printed = run.stdout().replaceAll(/\x1b7[^]*?\x1b8/g, '');
    expect(printed).toMatch(/\^C\r?\n(?:[^]*\n)?PROMPT$/);
  });

  it('ends with 0 when the reader of a feed exits', async () => {
    const piped = client('set -o pipefail; $FEED listen | head -n 1');
    expect(await piped.exit).toBe(0);
    expect(piped.stdout().trim().split('\n')).toHaveLength(1);
    expect(piped.stderr()).not.toMatch(/EPIPE|rx-trade-feed:|\n {4}at /);
    const help = client('set -o pipefail; $FEED listen --help | head -n 1');
    expect(await help.exit).toBe(0);
  });

  itInCi('trusts in listen the CA of NODE_EXTRA_CA_CERTS', async () => {
    const tls = await certificateFor();
    await using otherService = await startTradeFeedService({ tls, sources: { market: marketBatches$() } });
    const caFile = await folder.file('ca.pem', tls.cert);
    const listener = client('$FEED listen --count 1', { ...envOf(otherService), NODE_EXTRA_CA_CERTS: caFile });
    expect(await listener.exit).toBe(0);
  });

  itInCi('records until interrupted, and replay has all of its frames', async () => {
    const file = folder.path('market');
    const recorder = client(`exec $FEED record --output ${file}`);
    await recorder.untilStderr(/\(connection 1\)/);
    const lines = () => readFileSync(join(file, '0000000000000000.ndjson'), 'utf8').split('\n');
    await waitFor(() => lines().length >= 20, { limitMs: startLimitMs });
    recorder.child.kill('SIGINT');
    expect(await recorder.exit).toBe(0);
    const status = shellCommand(`$FEED log status ${file}`);
    expect(await status.exit).toBe(0);
    expect(status.stdout()).toMatch(/^writer +closed/m);
    const [, frames = ''] = /Z (\d+) frames, .*; log: .*market\n$/.exec(recorder.stderr()) ?? [];
    const replay = shellCommand(`$FEED replay ${file} --speed max`);
    expect(await replay.exit).toBe(0);
    expect(replay.stderr()).toMatch(new RegExp(`^\\S+Z ${frames} frames, .*; continue with --from \\d+\n$`));
  });

  it('says what to do in a clone that has not been built', async () => {
    const clone = folder.path('clone');
    cpSync(new URL('../../bin', import.meta.url), join(clone, 'bin'), { recursive: true });
    writeFileSync(join(clone, 'package.json'), '{"type":"module"}');
    const unbuilt = shellCommand(`${process.execPath} ${clone}/bin/rx-trade-feed.js demo`);
    expect(await unbuilt.exit).toBe(1);
    expect(unbuilt.stderr()).toMatch(/^rx-trade-feed: This clone is not built yet\. Run npm run build, .*\n$/);
  });

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
      // If all of it fits into the buffers of the socket, the program may end before this process looks.
      const isWritten = () => socket.child.stdout.readableLength > 0 || socket.child.exitCode !== null;
      await waitFor(isWritten, { limitMs: startLimitMs });
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
