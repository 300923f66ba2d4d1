import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { endPrograms, type Program, program, shellCommand } from './support/program.js';
import { tempFolder } from './support/temp-folder.js';

// Runs the built program in separate processes, with real pipes, signals and terminals.
const folder = tempFolder();

type Env = Readonly<Record<string, string>>;

interface Served {
  readonly service: Program;
  readonly env: { readonly TRADE_FEED_BASE_URL: string; readonly TRADE_FEED_API_KEY: string };
}

const envOf = async (service: Program): Promise<Served> => {
  await service.untilStdout(/npx rx-trade-feed listen/);
  const exported = (name: string): string => new RegExp(`export ${name}=(\\S+)`).exec(service.stdout())?.[1] ?? '';
  const env = {
    TRADE_FEED_BASE_URL: exported('TRADE_FEED_BASE_URL'),
    TRADE_FEED_API_KEY: exported('TRADE_FEED_API_KEY'),
  };
  return { service, env };
};

const serve = (...options: string[]): Promise<Served> => envOf(program(['serve', ...options]));

let shared: Served;
beforeAll(async () => {
  shared = await serve('--plan', 'developer', '--rate', '200');
});
afterAll(endPrograms);

/** The output of programs that use a key. It must contain neither the key nor a ticket. */
const outputs: { readonly output: () => string; readonly key: string }[] = [];
afterEach(() => {
  for (const { output, key } of outputs.splice(0)) {
    expect(output()).not.toContain(key);
    expect(output()).not.toMatch(/ticket_/);
  }
});

const listening = (started: Program, { TRADE_FEED_API_KEY: key = shared.env.TRADE_FEED_API_KEY }: Env): Program => {
  outputs.push({ output: () => started.stdout() + started.stderr(), key });
  return started;
};
const listen = (args: string, env: Env = shared.env): Program =>
  listening(program(['listen', ...args.split(' ').filter(Boolean)], env), env);
const inShell = (command: string, env: Env = shared.env): Program => listening(shellCommand(command, env), env);

describe('the program: demo', () => {
  it('shows frames on a pipe, and SIGINT ends it with a summary', async () => {
    const demo = program(['demo', '--rate', '100']);
    await demo.untilStdout(/first frame, .*\n[^]*● live: market, connection 1/);
    demo.child.kill('SIGINT');
    expect(await demo.exit).toBe(0);
    expect(demo.stdout()).toMatch(
      /Followed market for .*\n {2}frames {6}[1-9][^]*gaps {8}none\n {2}reconnects {2}none\n$/,
    );
    expect(demo.stderr()).toBe('');
  });

  it('draws on a terminal, and restores it on Ctrl-C', async () => {
    const demo = inShell('TERM=xterm script -qec "stty cols 60 rows 24; exec $FEED demo" /dev/null', {});
    await demo.untilStdout(/\x1b\[\?1049h\x1b\[\?25l[^]*live: market, connection 1/);
    await demo.untilStdout(/"batch":/);
    demo.child.stdin.write('\x03');
    expect(await demo.exit).toBe(0);
    expect(demo.stdout()).toMatch(/\x1b\[\?25h\x1b\[\?1049lFollowed market for /);
    const lines = demo.stdout().split(/[\r\n]+|\x1b\[H/);
    const widest = Math.max(...lines.map((line) => line.replaceAll(/\x1b\[[\d;?]*[a-zA-Z]/g, '').length));
    expect(widest).toBeLessThan(60);
  });
});

describe('the program: listen', () => {
  it('writes frames that another program can read, and ends after --count', async () => {
    const listener = listen('raw --count 5');
    expect(await listener.exit).toBe(0);
    const frames = listener
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(frames).toHaveLength(5);
    for (const frame of frames) expect(frame).toHaveProperty('hash', expect.stringMatching(/^0x/));
    expect(listener.stderr()).toMatch(/Z 5 frames, .*; gaps: none; reconnects: none\n$/);
  });

  it('writes JSON with metadata', async () => {
    const listener = listen('--json --count 1 -q');
    expect(await listener.exit).toBe(0);
    const records = listener
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    expect(records.at(-1)).toMatchObject({
      type: 'frame',
      feed: 'market',
      connection: 1,
      isBinary: false,
      encoding: 'utf8',
      data: expect.stringContaining('"trades"'),
    });
    expect(listener.stderr()).toBe('');
  });

  it('ends with exit code 0 when the reader exits', async () => {
    const piped = inShell('set -o pipefail; $FEED listen | head -n 1');
    expect(await piped.exit).toBe(0);
    expect(piped.stdout().trim().split('\n')).toHaveLength(1);
    expect(piped.stderr()).not.toMatch(/EPIPE|rx-trade-feed:|\n {4}at /);
    const help = inShell('set -o pipefail; $FEED listen --help | head -n 1');
    expect(await help.exit).toBe(0);
  });

  it('ends although stdout is not read', async () => {
    const file = await folder.file('large', `${'x'.repeat(4 * 1024 * 1024)}\n`);
    const { service, env } = await serve('--source', file, '--plan', 'developer');
    const listener = listen('', env);
    listener.child.stdout.pause();
    await service.untilStderr(/the source of market has ended/);
    listener.child.kill('SIGTERM');
    expect(await once(listener.child, 'exit')).toStrictEqual([0, null]);
    listener.child.stdout.resume();
    service.child.kill('SIGTERM');
    expect(await service.exit).toBe(0);
  });

  it('reports an output that cannot be written', async () => {
    const listener = inShell('$FEED listen > /dev/full');
    expect(await listener.exit).toBe(8);
    expect(listener.stderr()).toMatch(/rx-trade-feed: Cannot write to stdout: no space is left\.\n$/);
  });

  it('reads the key from a file', async () => {
    const { TRADE_FEED_BASE_URL, TRADE_FEED_API_KEY } = shared.env;
    const keyFile = await folder.file('key', `${TRADE_FEED_API_KEY}\n`);
    expect(await listen(`--count 1 --base-url ${TRADE_FEED_BASE_URL} --key-file ${keyFile}`, {}).exit).toBe(0);
  });

  it('explains why it stops, with an exit code', async () => {
    const wrong = listen('', { ...shared.env, TRADE_FEED_API_KEY: 'planted-wrong-key' });
    expect(await wrong.exit).toBe(3);
    expect(wrong.stderr()).toMatch(
      /rx-trade-feed: The service does not accept the API key \(HTTP 401\)\. .*--key-file\.\n$/,
    );
    expect(wrong.stderr()).not.toMatch(/\n {4}at /);
    const unreachable = listen('--retries 0', { ...shared.env, TRADE_FEED_BASE_URL: 'http://127.0.0.1:9' });
    expect(await unreachable.exit).toBe(7);
  });

  it('stops when another client takes the connection over', async () => {
    const first = listen('raw');
    await first.untilStdout(/hash/);
    const second = listen('market --count 1');
    expect(await second.exit).toBe(0);
    expect(await first.exit).toBe(4);
    expect(first.stderr()).toMatch(
      /rx-trade-feed: Another connection of the same account took over.*\(close code 4001/,
    );
  });

  it('refuses a key as an argument, and does not repeat it', async () => {
    const refused = listen('--api-key planted-secret', { TRADE_FEED_API_KEY: 'planted-secret' });
    expect(await refused.exit).toBe(2);
    expect(refused.stderr()).toContain('not accepted as an argument');
  });

  it('has a separate exit code for an interrupted run', async () => {
    const listener = listen('--count 1000000');
    await listener.untilStdout(/\n/);
    listener.child.kill('SIGINT');
    expect(await listener.exit).toBe(130);
  });
});

describe('the program: record and replay', () => {
  it('records until it is interrupted, and replays the same', async () => {
    const file = folder.path('market.ndjson');
    const recorder = listening(program(['record', '--output', file], shared.env), shared.env);
    await recorder.untilStderr(/connection 1 is open/);
    while (readFileSync(file, 'utf8').split('\n').length < 20) await new Promise((done) => setTimeout(done, 5));
    recorder.child.kill('SIGINT');
    expect(await recorder.exit).toBe(0);
    expect(recorder.stderr()).toMatch(/Z \d+ frames, .*; recording: .* in .*market\.ndjson\n$/);
    const replay = inShell(`$FEED replay ${file} --speed max --json | cmp - ${file}`, {});
    expect(await replay.exit).toBe(0);
    expect(replay.stderr()).toMatch(/^\S+Z \d+ frames, .*; continue with --offset \d+\n$/);
  });

  it('ends with exit code 0 when the reader exits', async () => {
    const file = folder.path('market.ndjson');
    const piped = inShell(`set -o pipefail; $FEED replay ${file} | head -n 1`, {});
    expect(await piped.exit).toBe(0);
    expect(piped.stderr()).not.toMatch(/EPIPE|rx-trade-feed:|\n {4}at /);
  });

  it('serves a recording', async () => {
    const file = folder.path('market.ndjson');
    const { service, env } = await serve('--replay', file, '--plan', 'developer');
    const [replayed, listened] = [folder.path('replayed'), folder.path('listened')];
    const command = `$FEED replay ${file} --count 10 -q > ${replayed} && $FEED listen --count 10 -q > ${listened} && cmp ${replayed} ${listened}`;
    expect(await inShell(command, env).exit).toBe(0);
    service.child.kill('SIGINT');
    expect(await service.exit).toBe(0);
  });
});

describe('the program: serve', () => {
  it('sends the lines of a pipe as they arrive, and ends with the signal', async () => {
    const { service, env } = await serve('--source', '-', '--plan', 'developer');
    const listener = listen('--count 2', env);
    await listener.untilStderr(/connection 1 is open/);
    service.child.stdin.write('{"n":1}\n{"n":');
    await listener.untilStdout(/\n/);
    service.child.stdin.write('2}\n');
    expect(await listener.exit).toBe(0);
    expect(listener.stdout()).toBe('{"n":1}\n{"n":2}\n');
    service.child.kill('SIGTERM');
    expect(await service.exit).toBe(0);
  });

  it('replays recorded payloads', async () => {
    const recording = folder.path('recording');
    expect(await inShell(`$FEED listen raw --count 20 -q > ${recording}`).exit).toBe(0);
    const { service, env } = await serve('--source', recording, '--rate', '1000', '--plan', 'developer');
    const replay = folder.path('replay');
    expect(await inShell(`$FEED listen --count 20 -q > ${replay} && cmp ${recording} ${replay}`, env).exit).toBe(0);
    service.child.kill('SIGINT');
    expect(await service.exit).toBe(0);
    expect(service.stderr()).toMatch(/the source of market has ended/);
  });

  it('serves over TLS to clients that use either printed instruction', async () => {
    const { service, env } = await serve('--tls', '--plan', 'developer');
    const [, caFile = ''] = /--ca (\S+)/.exec(service.stdout()) ?? [];
    expect(await listen(`--count 1 --ca ${caFile}`, env).exit).toBe(0);
    expect(await listen('--count 1', { ...env, NODE_EXTRA_CA_CERTS: caFile }).exit).toBe(0);
    expect(await listen('--count 1', env).exit).toBe(6);
    service.child.kill('SIGINT');
    expect(await service.exit).toBe(0);
  });

  it('reports a port that is in use', async () => {
    const { port } = new URL(shared.env.TRADE_FEED_BASE_URL);
    const second = program(['serve', '--port', port]);
    expect(await second.exit).toBe(8);
    expect(second.stderr()).toMatch(
      /^rx-trade-feed: Cannot listen on port \d+ of 127\.0\.0\.1: the port is in use\..*\n$/,
    );
  });
});

describe('the program', () => {
  it('prints help, its version, and a short error', async () => {
    const [help, version, typo] = [program(['--help']), program(['--version']), program(['lisen'])];
    expect([await help.exit, await version.exit, await typo.exit]).toStrictEqual([0, 0, 2]);
    expect(help.stdout()).toContain('Usage: rx-trade-feed [options] [command]');
    expect(version.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(typo.stderr()).toBe(
      'rx-trade-feed: There is no command lisen. Did you mean listen?\nTry rx-trade-feed --help.\n',
    );
  });
});
