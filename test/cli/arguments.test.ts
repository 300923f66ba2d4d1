/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { throwError } from 'rxjs';
import { connectionOptions } from '../../src/cli/connection.js';
import { hasColors, interrupts, isTerminal, processContext } from '../../src/cli/terminal.js';
import { CliError, ExitCode, exitCodeOf, localError } from '../../src/cli/errors.js';
import { commandNames, loadCommands, parse, run } from '../../src/cli/program.js';
import { createTradeFeedError } from '../../src/index.js';
import { LogError } from '../../src/log/index.js';
import { serviceMeanings } from '../../src/protocol/failures/classify.js';
import { certificateFor } from '../support/certificate.js';
import { fakeContext, FakeOutput } from './support/fakes.js';
import { helpText } from './support/help-text.js';
import { tempFolder } from './support/temp-folder.js';

const commands = await loadCommands();

const refusalOf = (line: string): Promise<Error> =>
  parse(line.split(' ').filter(Boolean)).then(
    () => Promise.reject(new Error(`${line} is accepted`)),
    (error: unknown) => error as Error,
  );

describe('parse', () => {
  const [status, follow] = [true, true];
  const recorded = { status, output: 'f', maxSize: 50e9, maxAge: 7 * 86_400_000, compress: true };
  it.each<[line: string, argument: unknown, values: object]>([
    ['demo', 'market', {}],
    ['demo raw --rate 0.5 --duration 2', 'raw', { rate: 0.5, duration: 2_000 }],
    ['listen --cluster redis://a --replica c', 'market', { status, cluster: 'redis://a', replica: 'c' }],
    ['listen --duration 250ms', 'market', { status, duration: 250 }],
    ['listen --duration 2h', 'market', { status, duration: 7_200_000 }],
    ['listen --key-file k --ca c --retries 0', 'market', { status, keyFile: 'k', ca: 'c', retries: 0 }],
    ['listen --base-url http://a:1 --no-status', 'market', { baseUrl: 'http://a:1', status: false }],
    ['record raw -o f --max-file-size 1.5MB', 'raw', { status, output: 'f', maxFileSize: 1_500_000 }],
    ['record --max-file-size 0.0015k', 'market', { status, maxFileSize: 1 }],
    ['record -o f --max-size 50GB --max-age 7d --compress', 'market', recorded],
    ['replay --speed 0.5 f --from 0 -q', 'f', { status, speed: 0.5, from: { offset: 0 }, quiet: true }],
    ['replay f --from 2026-01-31T12:00Z --follow', 'f', { status, from: { time: Date.UTC(2026, 0, 31, 12) }, follow }],
    ['replay f --from latest', 'f', { status, from: 'latest' }],
    ['log status f --json', ['status', 'f'], { status, json: true }],
    ['replay f --speed max', 'f', { status, speed: Infinity }],
    ['serve --source -', undefined, { source: '-' }],
    ['serve --source=-odd-name', undefined, { source: '-odd-name' }],
    ['serve --plan developer --port 0 --seed 7', undefined, { plan: 'developer', port: 0, seed: 7 }],
    ['serve --rate 100000 --tls --cert c --key k', undefined, { rate: 100_000, tls: true, cert: 'c', key: 'k' }],
    ['doctor raw --connect --frame-within 1m --json', 'raw', { connect: true, frameWithin: 60_000, json: true }],
  ])('parses `%s`', async (line, argument, values) => {
    const [command] = line.split(' ');
    expect(await parse(line.split(' '))).toStrictEqual({ command, argument, values, run: expect.any(Function) });
  });

  it.each([
    ['--help', '[options] [command]'],
    ['help', '[options] [command]'],
    ['help serve', 'serve [options]'],
    ['listen --help', 'listen [options] [feed]'],
    ['record --help', 'record --output <FOLDER> [options] [feed]'],
  ])('shows the help for `%s`', async (line, usage) => {
    const text = expect.stringContaining(`Usage: rx-trade-feed ${usage}\n`);
    expect(await parse(line.split(' '))).toEqual({ text });
  });

  it.each(commandNames)('names the options of %s as commander does', (name) => {
    const { options = {} } = commands[name] ?? {};
    for (const [key, option] of Object.entries(options)) expect(option.attributeName()).toBe(key);
  });

  it.each([
    ['', /^Missing command\. The commands are demo, listen, record, replay, log, serve, cluster, doctor\.$/],
    ['help sevre', /Did you mean serve\?$/],
    ['listen rwa', /^The feed must be market or raw\.$/],
    ['record market raw', /too many arguments/],
    ['replay', /'log'\.$/],
    ['replay f --speed 0', /^--speed must be a number above 0, up to 1000000, or max\.$/],
    ['replay f --speed 1000001', /^--speed must be/],
    ['replay f --from yesterday', /^--from must be an age such as 1h or 7d, .*, an offset, earliest or latest\.$/],
    ['demo --rate -5', /^--rate must be a number above 0, up to 100000\.$/],
    ['record --max-file-size 0', /^--max-file-size must be a size such as 500kB, 100MB, 2GB or 1TB\.$/],
    ['record --max-file-size 99999999999GB', /^--max-file-size must be/],
    ['listen --coutn 5', /'--coutn'\. Did you mean --count\?$/],
    ['listen --port 5', /'--port'\.$/],
    ['demo --outage_every 5', /unknown option\. Did you mean --outage-every\?$/],
    ['--verson', /Did you mean --version\?$/],
    ['listen -qn', /argument missing\.$/],
    ['listen --count', /^--count needs a value\.$/],
    ['listen --key-file --json', /^--key-file needs a value\.$/],
    ['listen --count=', /^--count must be a whole number, 1 or more\.$/],
    ['listen --count 0', /^--count must be/],
    ['listen --json=yes', /^--json takes no value\.$/],
    ['listen --duration 1d', /^--duration must be a time of at most 24 days, such as 30, 1\.5s, 10m or 2h\.$/],
    ['listen --key-file=', /^--key-file must be followed by a value\.$/],
    ['serve --port 65536', /^--port must be a whole number from 0 to 65535\.$/],
    ['serve --plan gold', /^--plan must be free or developer\.$/],
  ])('refuses `%s`', async (line, says) => {
    expect(await refusalOf(line)).toMatchObject({
      name: 'CliError',
      exitCode: 2,
      message: expect.stringMatching(says),
    });
  });

  it.each([
    'listen --api-key planted-secret',
    'listen --api-key=planted-secret',
    'listen --key planted-secret',
    'listen --x-api-key=planted-secret',
    'replay --token planted-secret',
    '--api-key planted-secret listen',
  ])('explains why it refuses `%s`, without showing the value', async (line) => {
    const { message } = await refusalOf(line);
    expect(message).toMatch(/Don't pass the API key as an argument: .*history.*process list.*--key-file/);
    expect(message).not.toContain('planted-secret');
  });

  it.each([
    'listen SECRET_KEY_0123456789',
    'SECRET_KEY_0123456789',
    'replay file SECRET_KEY_0123456789',
    'listen --SECRET_KEY_0123456789',
    'listen -q0123SECRET',
    'listen --coutn=SECRET',
  ])('never shows what may be a key in the wrong place: `%s`', async (line) => {
    expect((await refusalOf(line)).message).not.toContain('SECRET');
  });
});

describe('run', () => {
  it('shows the version', async () => {
    const context = fakeContext();
    expect(await run(['--version'], context)).toBe(0);
    const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    expect(context.stdout.text).toBe(`${version}\n`);
  });

  it.each([
    ['serve -x', "unknown option '-x'.\nTry rx-trade-feed serve --help.\n"],
    ['lisen', "unknown command 'lisen'. Did you mean listen?\nTry rx-trade-feed --help.\n"],
  ])('says what is wrong with the arguments, and how to get help: `%s`', async (line, says) => {
    const context = fakeContext();
    expect(await run(line.split(' '), context)).toBe(2);
    expect(context.stderr.text).toBe(`rx-trade-feed: ${says}`);
    expect(context.stdout.text).toBe('');
  });

  it.each([
    [new Error('odd'), /^rx-trade-feed: an unexpected error occurred; this is a bug\.\nError: odd\n {4}at /],
    ['odd', /^rx-trade-feed: an unexpected error occurred; this is a bug\.\n'odd'\n$/],
  ])('prints the stack if the error is a bug: %s', async (bug, says) => {
    const context = fakeContext({
      env: { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' },
    });
    expect(await run(['listen', '-q'], { ...context, interrupt$: throwError(() => bug) })).toBe(1);
    expect(context.stderr.text).toMatch(says);
  });
});

describe('the help', () => {
  it.each([undefined, ...commandNames])('names the environment if the command connects: %s', async (name) => {
    const text = await helpText(name);
    expect(text).toMatch(/\S\n$/);
    const connects = name === undefined || 'keyFile' in (commands[name]?.options ?? {});
    expect(/^ {2}TRADE_FEED_API_KEY [^]*^ {2}HTTPS_PROXY /m.test(text)).toBe(connects);
  });

  it.each(commandNames)('shows only valid command lines in the examples of %s', async (name) => {
    const { examples = [] } = commands[name] ?? {};
    expect(examples.length).toBeGreaterThan(1);
    for (const [line] of examples) {
      const [, args = ''] = /rx-trade-feed ([^|>]*)/.exec(line) ?? [];
      expect(await parse(args.trim().split(' '))).toMatchObject({ command: name });
    }
  });
});

describe('the exit codes', () => {
  it('are at most 8, each with one meaning for all commands', async () => {
    const context = fakeContext();
    expect(await run(['help', 'exit-codes'], context)).toBe(0);
    const codes = [...context.stdout.text.matchAll(/^ {2}(\d+) +\S/gm)].map(([, code]) => Number(code));
    expect(codes).toEqual(Object.values(ExitCode));
    expect(new Set(codes).size).toBeLessThanOrEqual(8);
  });

  it.each([
    [createTradeFeedError({ stage: 'stream', closeCode: 4001 }), 4],
    [createTradeFeedError({ stage: 'stream', closeCode: 1006 }), 6],
    [new CliError(ExitCode.usage, 'no'), 2],
    [new LogError('log-in-use', 'no', { path: 'f' }), 1],
    [new Error('a bug'), 1],
    [undefined, 1],
  ])('follow from the error that ended the command (%#)', (error, code) => {
    expect(exitCodeOf(error)).toBe(code);
  });

  it('do not call the service unavailable after a failure that stops the feed', () => {
    const stops = serviceMeanings.filter(({ code, verdict }) => verdict === 'stop' && code !== 'retries-exhausted');
    const failures = stops.map(({ code }) =>
      Object.assign(createTradeFeedError({ stage: 'ticket', status: 401 }), { code }),
    );
    expect(failures.filter((failure) => exitCodeOf(failure) === ExitCode.unavailable)).toEqual([]);
  });

  it.each([
    ['EODD', '', 'Cannot read it: EODD, odd.'],
    [undefined, '', 'Cannot read it: EODD, odd.'],
    ['EADDRINUSE', 'Choose another.', 'Cannot read it: the port is in use. Choose another.'],
  ])('come with the cause of a local error: %s', (code, hint, message) => {
    const error = localError('Cannot read it', Object.assign(new Error('EODD, odd'), { code }), hint);
    expect(error).toMatchObject({ message, exitCode: 1 });
  });
});

const folder = tempFolder();
const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' };

describe('the options of a connection', () => {
  it('come from arguments and files first, then from the environment', async () => {
    const { cert } = await certificateFor();
    const ca = await folder.file('ca.pem', cert);
    const options = { baseUrl: env.TRADE_FEED_BASE_URL, apiKey: 'planted-key', tls: undefined, backoff: undefined };
    expect(await connectionOptions({}, { env })).toStrictEqual(options);
    const values = { baseUrl: 'https://feed.example', keyFile: await folder.file('key', 'a-key\r\n'), ca, retries: 3 };
    const given = await connectionOptions(values, { env });
    expect(given).toMatchObject({ baseUrl: 'https://feed.example', tls: { ca: cert }, backoff: { maxAttempts: 3 } });
    expect(await (given.apiKey as () => Promise<string>)()).toBe('a-key');
  });

  it('read the key file again for every ticket, so the key can rotate and the file be missing for a moment', async () => {
    const given = await connectionOptions({ keyFile: await folder.file('rotating', 'first') }, { env });
    const readKey = given.apiKey as () => Promise<string>;
    await folder.file('rotating', '');
    await expect(readKey()).rejects.toThrow(/--key-file must contain only an API key/);
    await folder.file('rotating', 'second\n');
    expect(await readKey()).toBe('second');
  });

  it('read the key from a pipe only once', async () => {
    const pipe = folder.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const written = folder.file('pipe', 'key-of-the-pipe\n');
    expect((await connectionOptions({ keyFile: pipe }, { env })).apiKey).toBe('key-of-the-pipe');
    await written;
  });

  it.each<[string, object, Readonly<Record<string, string>>, number, RegExp]>([
    ['no address', {}, {}, 2, /^Missing base URL\. .*TRADE_FEED_BASE_URL.*--base-url.*serve/],
    ['no key', {}, { ...env, TRADE_FEED_API_KEY: '' }, 2, /^Missing API key\. .*TRADE_FEED_API_KEY.*--key-file/],
    ['no file', { keyFile: 'missing' }, env, 1, /^Can't read the file of --key-file: there is no such file\.$/],
    ['another file', { keyFile: 'ODD' }, env, 2, /--key-file must contain only an API key/],
    ['no CA', { ca: 'missing' }, env, 1, /^Can't read the file of --ca: there is no such file\.$/],
    ['a CA that is none', { ca: 'ODD' }, env, 2, /--ca must contain certificates in PEM/],
  ])('are refused for %s, without showing the content of a file', async (_what, values, given, exitCode, message) => {
    const odd = await folder.file('odd', 'two planted-words\nand lines');
    const files = Object.fromEntries(Object.entries(values).map(([name, file]) => [name, file === 'ODD' ? odd : file]));
    const error = (await connectionOptions(files, { env: given }).catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ exitCode, message: expect.stringMatching(message) });
    expect(error.message).not.toContain('planted');
  });
});

describe('the signals of the process', () => {
  const signalled = (streams: object, signal: string, listeners = 2) => {
    const exits: number[] = [];
    const exit = (code: number) => exits.push(code);
    const fake = Object.assign(new EventEmitter(), { env: {}, stdin: 1, exit, ...streams });
    const { interrupt$ } = processContext(fake as unknown as NodeJS.Process);
    const signals: string[] = [];
    for (let n = 0; n < listeners; n += 1) interrupt$.subscribe((name) => signals.push(name));
    fake.emit(signal, signal, 2);
    return { signals, exits };
  };
  const [terminal, pipe] = [() => new FakeOutput({ columns: 80, rows: 24 }), () => new FakeOutput()];

  it.each(interrupts)('include %s, which ends the process with 130 unless the command listens', (signal) => {
    const streams = { stdout: pipe(), stderr: pipe() };
    expect(signalled(streams, signal, 1)).toStrictEqual({ signals: [signal], exits: [] });
    expect(signalled(streams, signal, 0)).toStrictEqual({ signals: [], exits: [130] });
  });

  it.each([
    ['SIGINT', terminal(), terminal(), ['', '\n']],
    ['SIGINT', pipe(), terminal(), ['', '\n']],
    ['SIGINT', terminal(), pipe(), ['\n', '']],
    ['SIGINT', pipe(), pipe(), ['', '']],
    ['SIGTERM', terminal(), terminal(), ['', '']],
  ])('end the line of the ^C that a terminal prints, but only once: %s (%#)', (signal, stdout, stderr, written) => {
    signalled({ stdout, stderr }, signal);
    expect([stdout.text, stderr.text]).toEqual(written);
  });
});

it('the command uses control sequences on a terminal unless it is dumb, and colors unless NO_COLOR is set', () => {
  const terminal = new FakeOutput({ columns: 80, rows: 24 });
  const envs = [{}, { TERM: 'dumb' }, { NO_COLOR: '' }, { NO_COLOR: '1' }];
  expect(envs.map((given) => isTerminal(terminal, { env: given }))).toEqual([true, false, true, true]);
  expect(envs.map((given) => hasColors(terminal, { env: given }))).toEqual([true, false, true, false]);
  expect(isTerminal(new FakeOutput(), { env: {} })).toBe(false);
});
