/** @lane processes */
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { filter, firstValueFrom } from 'rxjs';
import { marketBatches$, pendingTransactions$, startTradeFeedService } from '../../src/testing/index.js';
import type { TradeFeedService } from '../../src/testing/index.js';
import { itInCi } from '../support/cases.js';
import { certificateFor } from '../support/certificate.js';
import { startLimitMs, startTestLimitMs, waitFor } from '../support/wait-for.js';
import { envOf } from './support/fakes.js';
import { endPrograms, type Program, program, shellCommand } from './support/program.js';
import { tempFolder } from './support/temp-folder.js';

// Runs the built program in separate processes, with real pipes, signals and terminals. The commands' own tests don't.
const folder = tempFolder();

type Env = ReturnType<typeof envOf>;

jest.setTimeout(startTestLimitMs);

let service: TradeFeedService;
beforeAll(async () => {
  const sources = { market: marketBatches$({ rate: 200 }), raw: pendingTransactions$({ rate: 200 }) };
  service = await startTradeFeedService({ sources });
});
afterAll(async () => {
  await endPrograms();
  await service.shutdown();
});

/** The output of programs that use a key. It must contain neither the key nor a ticket. */
const outputs: { readonly output: () => string; readonly key: string }[] = [];
afterEach(() => {
  for (const { output, key } of outputs.splice(0)) {
    expect(output()).not.toContain(key);
    expect(output()).not.toMatch(/ticket_/);
  }
});

const listening = (started: Program, { TRADE_FEED_API_KEY: key }: Env): Program => {
  outputs.push({ output: () => started.stdout() + started.stderr(), key });
  return started;
};
const feed = (args: string, env: Env = envOf(service), more: Readonly<Record<string, string>> = {}): Program =>
  listening(program(args.split(' '), { ...env, ...more }), env);
const inShell = (command: string, env: Env = envOf(service)): Program => listening(shellCommand(command, env), env);

describe('the program: --version', () => {
  it('loads no command and nothing that a feed needs', async () => {
    const coverage = folder.path('coverage');
    const version = program(['--version'], { NODE_V8_COVERAGE: coverage });
    expect(await version.exit).toBe(0);
    const [file = ''] = readdirSync(coverage);
    const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as { result: { url: string }[] };
    const loaded = result.flatMap(({ url }) => /node_modules\/([^/]+)/.exec(url)?.[1] ?? []);
    expect([...new Set(loaded)].sort()).toEqual(['commander', 'rxjs']);
  });
});

describe('the program: demo', () => {
  itInCi('ends with 0 on Ctrl-C in npm start, although npm runs it in a shell', async () => {
    const start = shellCommand('TERM=xterm script -qec "stty cols 60 rows 24; npm start --ignore-scripts" /dev/null');
    await start.untilStdout(/live: market, connection 1[^]*"batch":/);
    start.child.stdin.write('\x03');
    expect(await start.exit).toBe(0);
    expect(start.stdout()).toMatch(/\x1b\[\?1049lFollowed market for /);
  });
});

describe('the program: Ctrl-C on a terminal', () => {
  itInCi('ends the line of the ^C, so that the prompt starts on a new line', async () => {
    // Sends no frames: one that arrives while the signal is on its way would be printed after the ^C.
    await using silent = await startTradeFeedService();
    const opened = firstValueFrom(silent.events$.pipe(filter(({ type }) => type === 'handshake-accepted')));
    // Survives the signal, like an interactive shell.
    const lines = 'trap : INT; $FEED listen; printf PROMPT';
    const run = inShell(`TERM=xterm script -qec 'stty cols 80 rows 24; ${lines}' /dev/null`, envOf(silent));
    await opened;
    await run.untilStdout(/live: market/);
    run.child.stdin.write('\x03');
    expect(await run.exit).toBe(0);
    // The status line is drawn elsewhere on the screen: between saving and restoring the position of the cursor.
    const printed = run.stdout().replaceAll(/\x1b7[^]*?\x1b8/g, '');
    expect(printed).toMatch(/\^C\r?\n(?:[^]*\n)?PROMPT$/);
  });
});

describe('the program: listen', () => {
  it('ends with exit code 0 when the reader exits', async () => {
    const piped = inShell('set -o pipefail; $FEED listen | head -n 1');
    expect(await piped.exit).toBe(0);
    expect(piped.stdout().trim().split('\n')).toHaveLength(1);
    expect(piped.stderr()).not.toMatch(/EPIPE|rx-trade-feed:|\n {4}at /);
    const help = inShell('set -o pipefail; $FEED listen --help | head -n 1');
    expect(await help.exit).toBe(0);
  });

  itInCi('ends even if nothing reads its stdout, and says so', async () => {
    await using otherService = await startTradeFeedService({ limits: { backlogBytes: Infinity } });
    const listener = feed('listen', envOf(otherService));
    await listener.untilStderr(/\(connection 1\)/);
    listener.child.stdout.pause();
    otherService.push('market', `${'x'.repeat(4 * 1024 * 1024)}\n`);
    // The first bytes have arrived, and the rest are stuck.
    await waitFor(() => listener.child.stdout.readableLength > 0, { limitMs: startLimitMs });
    listener.child.kill('SIGTERM');
    // The frame was cut, so the exit code is that of the signal.
    expect(await once(listener.child, 'exit')).toStrictEqual([130, null]);
    await listener.untilStderr(/SIGTERM came before the reader of stdout had taken all output\./);
    listener.child.stdout.resume();
  });

  itInCi('trusts the CA of NODE_EXTRA_CA_CERTS', async () => {
    const tls = await certificateFor();
    await using otherService = await startTradeFeedService({ tls, sources: { market: marketBatches$() } });
    const caFile = await folder.file('ca.pem', tls.cert);
    const listener = feed('listen --count 1', envOf(otherService), { NODE_EXTRA_CA_CERTS: caFile });
    expect(await listener.exit).toBe(0);
  });
});

describe('the program: record and replay', () => {
  itInCi('records until interrupted, and replay ends with exit code 0 when the reader exits', async () => {
    const file = folder.path('market');
    const recorder = feed(`record --output ${file}`);
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
    const piped = shellCommand(`set -o pipefail; $FEED replay ${file} | head -n 1`);
    expect(await piped.exit).toBe(0);
    expect(piped.stderr()).not.toMatch(/EPIPE|rx-trade-feed:|\n {4}at /);
  });
});

describe('the program', () => {
  it('says what to do in a clone that has not been built', async () => {
    const clone = folder.path('clone');
    cpSync(new URL('../../bin', import.meta.url), join(clone, 'bin'), { recursive: true });
    writeFileSync(join(clone, 'package.json'), '{"type":"module"}');
    const unbuilt = shellCommand(`${process.execPath} ${clone}/bin/rx-trade-feed.js demo`);
    expect(await unbuilt.exit).toBe(1);
    expect(unbuilt.stderr()).toMatch(/^rx-trade-feed: This clone is not built yet\. Run npm run build, .*\n$/);
  });
});
