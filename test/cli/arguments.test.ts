import { describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { throwError } from 'rxjs';
import { CliError, ExitCode, exitCodeOf, exitCodeRows, localError } from '../../src/cli/errors.js';
import { commandNames, loadCommands, parse, run } from '../../src/cli/program.js';
import { createTradeFeedError } from '../../src/index.js';
import { LogError } from '../../src/log/index.js';
import { serviceMeanings } from '../../src/protocol/failures/classify.js';
import { fakeContext } from './support/fakes.js';
import { helpText } from './support/help-text.js';

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
    ['demo --outage-every 0', 'market', { outageEvery: 0 }],
    [
      'cluster status --cluster nats://a --account b --json',
      'status',
      { cluster: 'nats://a', account: 'b', json: true },
    ],
    ['listen --cluster redis://a --replica c', 'market', { status, cluster: 'redis://a', replica: 'c' }],
    ['listen --json raw', 'raw', { status, json: true }],
    ['listen -n 5 -q', 'market', { status, count: 5, quiet: true }],
    ['listen --count=5 --count=6', 'market', { status, count: 6 }],
    ['listen --duration 1.5s', 'market', { status, duration: 1_500 }],
    ['listen --duration 250ms', 'market', { status, duration: 250 }],
    ['listen --duration 10m', 'market', { status, duration: 600_000 }],
    ['listen --duration 2h', 'market', { status, duration: 7_200_000 }],
    ['listen --key-file k --ca c --retries 0', 'market', { status, keyFile: 'k', ca: 'c', retries: 0 }],
    ['listen --base-url http://a:1 --no-status', 'market', { baseUrl: 'http://a:1', status: false }],
    ['record raw -o f --max-file-size 1.5MB', 'raw', { status, output: 'f', maxFileSize: 1_500_000 }],
    ['record --max-file-size 7', 'market', { status, maxFileSize: 7 }],
    ['record --max-file-size 2gb', 'market', { status, maxFileSize: 2e9 }],
    ['record --max-file-size 1T', 'market', { status, maxFileSize: 1e12 }],
    ['record --max-file-size 0.0015k', 'market', { status, maxFileSize: 1 }],
    ['record -o f --max-size 50GB --max-age 7d --compress', 'market', recorded],
    ['replay --speed 0.5 f --from 0 -q', 'f', { status, speed: 0.5, from: { offset: 0 }, quiet: true }],
    ['replay f --from 2026-01-31T12:00Z --follow', 'f', { status, from: { time: Date.UTC(2026, 0, 31, 12) }, follow }],
    ['replay f --from latest', 'f', { status, from: 'latest' }],
    ['log status f --json', ['status', 'f'], { status, json: true }],
    ['replay f --speed max', 'f', { status, speed: Infinity }],
    ['serve --replay f --speed 10', undefined, { replay: 'f', speed: 10 }],
    ['serve --source -', undefined, { source: '-' }],
    ['serve --source=-odd-name', undefined, { source: '-odd-name' }],
    ['serve --plan developer --port 0 --seed 7', undefined, { plan: 'developer', port: 0, seed: 7 }],
    ['serve --rate 100000 --tls --cert c --key k', undefined, { rate: 100_000, tls: true, cert: 'c', key: 'k' }],
    [
      'top market raw:two.key https://a.example/status --header-file h --every 5',
      [
        { name: 'market', feed: 'market', keyFile: undefined },
        { name: 'raw:two.key', feed: 'raw', keyFile: 'two.key' },
        { name: 'a.example/status', url: new URL('https://a.example/status') },
      ],
      { headerFile: 'h', every: 5_000 },
    ],
    ['doctor raw --connect --frame-within 1m --json', 'raw', { connect: true, frameWithin: 60_000, json: true }],
  ])('reads `%s`', async (line, argument, values) => {
    const [command] = line.split(' ');
    expect(await parse(line.split(' '))).toStrictEqual({ command, argument, values, run: expect.any(Function) });
  });

  it.each([
    ['--help', '[options] [command]'],
    ['-h', '[options] [command]'],
    ['help', '[options] [command]'],
    ['help serve', 'serve [options]'],
    ['listen --help', 'listen [options] [feed]'],
    ['demo -h', 'demo [options] [feed]'],
  ])('shows the help for `%s`', async (line, usage) => {
    const text = expect.stringContaining(`Usage: rx-trade-feed ${usage}\n`);
    expect(await parse(line.split(' '))).toEqual({ text });
  });

  it.each(commandNames)('names the options of %s as commander does', (name) => {
    const { options = {} } = commands[name] ?? {};
    for (const [key, option] of Object.entries(options)) expect(option.attributeName()).toBe(key);
  });

  it.each([
    ['', /^A command is missing\. The commands are demo, listen, record, replay, log, serve, cluster, doctor, top\.$/],
    ['lisen', /^There is no command lisen\. Did you mean listen\?$/],
    ['publish', /^There is no command publish\. The commands are demo, listen, .*, top\.$/],
    ['help sevre', /Did you mean serve\?/],
    ['listen rwa', /^There is no feed rwa\. The feeds are market and raw\.$/],
    ['listen market raw', /^There are too many arguments\. Usage: rx-trade-feed listen \[options\] \[feed\]$/],
    ['serve market', /^There are too many arguments\. Usage: rx-trade-feed serve \[options\]$/],
    ['replay', /^The log is missing\. Usage: rx-trade-feed replay \[options\] <log>$/],
    ['replay f --speed 0', /^--speed must be a number above 0, up to 1000000, or max\.$/],
    ['replay f --speed 1000001', /^--speed must be/],
    [
      'replay f --from yesterday',
      /^--from must be an age such as 1h or 7d, a time such as .*, an offset, earliest or latest\.$/,
    ],
    ['demo --rate -5', /^--rate must be a number above 0, up to 100000\.$/],
    ['demo --rate 100001', /^--rate must be/],
    ['demo --duration -1.5s', /^--duration must be a time of at most 24 days/],
    ['record --max-file-size 0', /^--max-file-size must be a size such as 500kB, 100MB, 2GB or 1TB\.$/],
    ['record --max-file-size 1PB', /^--max-file-size must be/],
    ['record --max-file-size 1.2.3k', /^--max-file-size must be/],
    ['record --max-file-size B', /^--max-file-size must be/],
    ['record --max-file-size 99999999999GB', /^--max-file-size must be/],
    ['listen --coutn 5', /^There is no option --coutn\. Did you mean --count\?$/],
    ['listen --coutn=500000', /^There is no option --coutn\. Did you mean --count\?$/],
    ['listen --port 5', /^There is no option --port\.$/],
    ['listen -x', /^There is no option -x\.$/],
    ['listen -qn', /^The arguments are not valid\. Usage: /],
    ['listen --count', /^--count needs a value: N\.$/],
    ['listen --key-file --json', /^--key-file needs a value: FILE\.$/],
    ['serve --source --tls', /^--source needs a value: FILE\|-\.$/],
    ['listen --count=', /^--count must be a whole number, 1 or more\.$/],
    ['listen --count 0', /^--count must be/],
    ['listen --count 1.5', /^--count must be/],
    ['listen --count 99999999999999999999', /^--count must be/],
    ['listen --json=yes', /^--json takes no value\.$/],
    ['listen --duration 1d', /^--duration must be a time of at most 24 days, such as 30, 1\.5s, 10m or 2h\.$/],
    ['listen --duration 999h', /^--duration must be/],
    ['listen --key-file=', /^--key-file must be followed by a value\.$/],
    ['top', /^The source is missing\. Usage: rx-trade-feed top \[options\] <source\.\.\.>$/],
    ['top raw --every 99ms', /^--every must be a time from 100ms to 24 days\.$/],
    ['top nonsense', /^A source of top is market, raw, market:FILE, raw:FILE, or the http: or https: address/],
    ['top ftp://a.example', /^A source of top is/],
    ['top https://u:planted@a.example', /^An address of top must not contain a password\. Use --header-file FILE\.$/],
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
    'listen --apikey planted-secret',
    'listen --key planted-secret',
    'listen --token=planted-secret',
    'listen --x-api-key=planted-secret',
    'replay --token planted-secret',
    '--api-key=planted-secret listen',
    '--api-key planted-secret listen',
  ])('explains why `%s` is refused, without the value', async (line) => {
    const { message } = await refusalOf(line);
    expect(message).toMatch(/not accepted as an argument, .*history.*processes.*--key-file/);
    expect(message).not.toContain('planted-secret');
  });

  it.each([
    'listen SECRET_KEY_0123456789',
    'SECRET_KEY_0123456789',
    'listen market SECRET_KEY_0123456789',
    'replay file SECRET_KEY_0123456789',
    'listen --SECRET_KEY_0123456789',
    'top SECRET_KEY_0123456789',
  ])('never repeats what may be a key in the wrong place: `%s`', async (line) => {
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
    [[], /^rx-trade-feed: A command is missing\. .*\nTry rx-trade-feed --help\.\n$/],
    [['listne'], /^rx-trade-feed: .* Did you mean listen\?\nTry rx-trade-feed --help\.\n$/],
    [['serve', '-x'], /^rx-trade-feed: There is no option -x\.\nTry rx-trade-feed serve --help\.\n$/],
  ])('explains the problem with %j and how to get help', async (args, says) => {
    const context = fakeContext();
    expect(await run(args, context)).toBe(2);
    expect(context.stderr.text).toMatch(says);
    expect(context.stdout.text).toBe('');
  });

  it.each([
    [new Error('odd'), /^rx-trade-feed: an unexpected error occurred; this is a bug\.\nError: odd\n {4}at /],
    ['odd', /^rx-trade-feed: an unexpected error occurred; this is a bug\.\n'odd'\n$/],
  ])('shows the stack of a bug: %s', async (bug, says) => {
    const context = fakeContext({
      env: { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'planted-key' },
    });
    expect(await run(['listen', '-q'], { ...context, interrupt$: throwError(() => bug) })).toBe(1);
    expect(context.stderr.text).toMatch(says);
  });
});

describe('the help', () => {
  it.each([undefined, ...commandNames])('of %s fits 80 columns, except for command lines', async (name) => {
    const text = await helpText(name);
    const wide = text.split('\n').filter((line) => line.length > 80 && !line.startsWith('  rx-trade-feed'));
    expect(wide).toStrictEqual([]);
    expect(text).toMatch(/\S\n$/);
    const connects = name === undefined || 'keyFile' in (commands[name]?.options ?? {});
    expect(/^ {2}TRADE_FEED_API_KEY [^]*^ {2}HTTPS_PROXY /m.test(text)).toBe(connects);
  });

  it.each(commandNames)('of %s has examples that are valid command lines', async (name) => {
    const { examples = [] } = commands[name] ?? {};
    expect(examples.length).toBeGreaterThan(1);
    for (const [line] of examples) {
      const [, args = ''] = /rx-trade-feed ([^|>]*)/.exec(line) ?? [];
      expect(await parse(args.trim().split(' '))).toMatchObject({ command: name });
    }
  });
});

describe('the exit codes', () => {
  it('fit 80 columns in their help, which names the commands of a meaning that not all of them have', async () => {
    const context = fakeContext();
    expect(await run(['help', 'exit-codes'], context)).toBe(0);
    expect(context.stdout.text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(context.stdout.text).toMatch(/^ {2}1 +an unexpected error/m);
    expect(context.stdout.text).toMatch(
      / {8}cluster: the engine was not available, or refused .+\n {8}doctor: the service is not available\n/,
    );
  });

  it('are explained only with options of the command', () => {
    for (const [, names, meaning] of exitCodeRows)
      for (const name of names)
        for (const long of meaning.match(/--[a-z-]+/g) ?? [])
          expect(Object.values(commands[name]?.options ?? {}).map((option) => option.long)).toContain(long);
  });

  it.each([
    [createTradeFeedError({ stage: 'stream', closeCode: 4001 }), 4],
    [createTradeFeedError({ stage: 'stream', closeCode: 1006 }), 7],
    [new CliError(ExitCode.usage, 'no'), 2],
    [new LogError('log-in-use', 'no', { path: 'f' }), 8],
    [new Error('a bug'), 1],
    [undefined, 1],
  ])('follow from the error that ended the command: %s', (error, code) => {
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
    ['ENOENT', '', 'Cannot read it: there is no such file.'],
    ['EODD', '', 'Cannot read it: EODD, odd.'],
    [undefined, '', 'Cannot read it: EODD, odd.'],
    ['EADDRINUSE', 'Choose another.', 'Cannot read it: the port is in use. Choose another.'],
  ])('of a local error come with its cause: %s', (code, hint, message) => {
    const error = localError('Cannot read it', Object.assign(new Error('EODD, odd'), { code }), hint);
    expect(error).toMatchObject({ message, exitCode: 8 });
  });
});
