import { describe, expect, test } from '@jest/globals';
import { parse } from '../../../src/cli/arguments/parse.js';

describe('parse', () => {
  const good: readonly (readonly [line: string, command: object])[] = [
    ['--help', { command: 'help' }],
    ['-h', { command: 'help' }],
    ['help', { command: 'help' }],
    ['help serve', { command: 'help', topic: 'serve' }],
    ['listen --help', { command: 'help', topic: 'listen' }],
    ['demo -h', { command: 'help', topic: 'demo' }],
    ['--version', { command: 'version' }],
    ['-v', { command: 'version' }],
    ['demo', { command: 'demo', feed: 'market', options: {} }],
    ['demo raw --rate 0.5 --duration 2', { command: 'demo', feed: 'raw', options: { rate: 0.5, duration: 2_000 } }],
    ['demo --outage-every 0', { command: 'demo', feed: 'market', options: { 'outage-every': 0 } }],
    ['listen', { command: 'listen', feed: 'market', options: {} }],
    ['listen market', { command: 'listen', feed: 'market', options: {} }],
    ['listen --json raw', { command: 'listen', feed: 'raw', options: { json: true } }],
    ['listen -n 5 -q', { command: 'listen', feed: 'market', options: { count: 5, quiet: true } }],
    ['listen --count=5 --count=6', { command: 'listen', feed: 'market', options: { count: 6 } }],
    ['listen --duration 1.5s', { command: 'listen', feed: 'market', options: { duration: 1_500 } }],
    ['listen --duration 250ms', { command: 'listen', feed: 'market', options: { duration: 250 } }],
    ['listen --duration 10m', { command: 'listen', feed: 'market', options: { duration: 600_000 } }],
    ['listen --duration 2h', { command: 'listen', feed: 'market', options: { duration: 7_200_000 } }],
    [
      'listen --base-url http://127.0.0.1:1 --key-file k --ca c --retries 0 --no-status',
      {
        command: 'listen',
        feed: 'market',
        options: { 'base-url': 'http://127.0.0.1:1', 'key-file': 'k', ca: 'c', retries: 0, 'no-status': true },
      },
    ],
    [
      'record raw -o f --max-file-size 1.5MB --duration 24h -n 3',
      {
        command: 'record',
        feed: 'raw',
        options: { output: 'f', 'max-file-size': 1_500_000, duration: 86_400_000, count: 3 },
      },
    ],
    [
      'record --output f --max-file-size 7',
      { command: 'record', feed: 'market', options: { output: 'f', 'max-file-size': 7 } },
    ],
    ['record --max-file-size 2gb', { command: 'record', feed: 'market', options: { 'max-file-size': 2e9 } }],
    ['record --max-file-size 1T', { command: 'record', feed: 'market', options: { 'max-file-size': 1e12 } }],
    ['record --max-file-size 500kB', { command: 'record', feed: 'market', options: { 'max-file-size': 500_000 } }],
    ['record --max-file-size 0.0015k', { command: 'record', feed: 'market', options: { 'max-file-size': 1 } }],
    ['replay f', { command: 'replay', file: 'f', options: {} }],
    [
      'replay --speed 0.5 f --offset 0 --json -q --count 2',
      { command: 'replay', file: 'f', options: { speed: 0.5, offset: 0, json: true, quiet: true, count: 2 } },
    ],
    ['replay f --speed max', { command: 'replay', file: 'f', options: { speed: Infinity } }],
    ['serve --replay f --speed 10', { command: 'serve', options: { replay: 'f', speed: 10 } }],
    ['serve', { command: 'serve', options: {} }],
    ['serve --source -', { command: 'serve', options: { source: '-' } }],
    ['serve --source=-odd-name', { command: 'serve', options: { source: '-odd-name' } }],
    [
      'serve --plan developer --port 0 --rate 100000 --seed 7 --feed raw --tls --cert c --key k',
      {
        command: 'serve',
        options: {
          plan: 'developer',
          port: 0,
          rate: 100_000,
          seed: 7,
          feed: 'raw',
          tls: true,
          cert: 'c',
          key: 'k',
        },
      },
    ],
  ];
  test.each(good)('reads `%s`', (line, command) => {
    expect(parse(line.split(' '))).toStrictEqual(command);
  });

  const bad: readonly (readonly [line: string, says: RegExp])[] = [
    ['', /^Give a command: demo, listen, record, replay, serve\.$/],
    ['lisen', /^There is no command lisen\. Did you mean listen\?$/],
    ['help sevre', /Did you mean serve\?/],
    ['frobnicate', /^There is no command frobnicate\. The commands are demo, listen, record, replay, serve\.$/],
    ['listen rwa', /^There is no feed rwa\. The feeds are market and raw\.$/],
    ['listen market raw', /^listen takes one feed\.$/],
    ['serve market', /^serve takes options alone\.$/],
    ['record market raw', /^record takes one feed\.$/],
    ['replay', /^replay takes one file\.$/],
    ['replay f g', /^replay takes one file\.$/],
    ['replay f --speed 0', /^--speed must be a number above 0, up to 1000000, or max\.$/],
    ['replay f --speed fast', /^--speed must be/],
    ['replay f --speed 1000001', /^--speed must be/],
    ['replay f --offset -1', /^--offset needs a value: N\.$/],
    ['record --max-file-size 0', /^--max-file-size must be a size such as 500kB, 100MB, 2GB or 1TB\.$/],
    ['record --max-file-size 1PB', /^--max-file-size must be/],
    ['record --max-file-size 1.2.3k', /^--max-file-size must be/],
    ['record --max-file-size B', /^--max-file-size must be/],
    ['record --max-file-size 99999999999GB', /^--max-file-size must be/],
    ['listen --coutn 5', /^There is no option --coutn\. Did you mean --count\?$/],
    ['listen --port 5', /^There is no option --port\.$/],
    ['listen -x', /^There is no option -x\.$/],
    ['listen --count', /^--count needs a value: N\.$/],
    ['listen --count --json', /^--count needs a value: N\.$/],
    ['listen --count=', /^--count must be a whole number, 1 or more\.$/],
    ['listen --count 0', /^--count must be a whole number, 1 or more\.$/],
    ['listen --count 1.5', /^--count must be/],
    ['listen --count 99999999999999999999', /^--count must be/],
    ['listen --json=yes', /^--json takes no value\.$/],
    ['listen --duration 1d', /^--duration must be a time of at most 24 days, such as 30, 1\.5s, 10m or 2h\.$/],
    ['listen --duration 1.2.3', /^--duration must be/],
    ['listen --duration 25h.', /^--duration must be/],
    ['listen --duration 999h', /^--duration must be/],
    ['listen --key-file=', /^--key-file must be followed by a value\.$/],
    ['serve --port 65536', /^--port must be a whole number from 0 to 65535\.$/],
    ['serve --plan gold', /^--plan must be free or developer\.$/],
    ['serve --rate 0', /^--rate must be a number above 0, up to 100000\.$/],
    ['serve --rate fast', /^--rate must be/],
    ['serve --rate 100001', /^--rate must be/],
  ];
  test.each(bad)('refuses `%s`', (line, says) => {
    const args = line === '' ? [] : line.split(' ');
    expect(() => parse(args)).toThrow(
      expect.objectContaining({ name: 'CliError', exitCode: 2, message: expect.stringMatching(says) }),
    );
  });

  const keyLines = [
    'listen --api-key planted-secret',
    'listen --api-key=planted-secret',
    'listen --apikey planted-secret',
    'listen --key planted-secret',
    'listen --token=planted-secret',
    'listen --x-api-key=planted-secret',
    'demo --api-key planted-secret',
    'record --api-key planted-secret',
    'replay --token planted-secret',
    'serve --api-key=planted-secret',
    '--api-key=planted-secret listen',
    '--api-key planted-secret listen',
  ];
  test.each(keyLines)('explains why `%s` is refused, without the value', (line) => {
    expect(() => parse(line.split(' '))).toThrow(/never taken from an argument: .*history.*processes.*--key-file/);
    expect(() => parse(line.split(' '))).not.toThrow(/planted-secret/);
  });

  test.each([
    'listen SECRET_KEY_0123456789',
    'SECRET_KEY_0123456789',
    'listen market SECRET_KEY_0123456789',
    'replay file SECRET_KEY_0123456789',
    'listen --SECRET_KEY_0123456789',
  ])('never repeats what may be a key in the wrong place: `%s`', (line) => {
    expect(() => parse(line.split(' '))).toThrow();
    expect(() => parse(line.split(' '))).not.toThrow(/SECRET/);
  });
});
