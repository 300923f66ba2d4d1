import { describe, expect, it } from '@jest/globals';
import { parse } from '../../../src/cli/arguments/parse.js';

const helpOf = (usage: string): object => ({
  command: 'print',
  text: expect.stringContaining(`Usage: rx-trade-feed ${usage}\n`),
});

describe('parse', () => {
  const good: readonly (readonly [line: string, command: object])[] = [
    ['--help', helpOf('[options] [command]')],
    ['-h', helpOf('[options] [command]')],
    ['help', helpOf('[options] [command]')],
    ['help serve', helpOf('serve [options]')],
    ['listen --help', helpOf('listen [options] [feed]')],
    ['demo -h', helpOf('demo [options] [feed]')],
    ['--version', { command: 'print', text: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) }],
    ['-v', { command: 'print', text: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) }],
    ['demo', { command: 'demo', feed: 'market', options: {} }],
    ['demo raw --rate 0.5 --duration 2', { command: 'demo', feed: 'raw', options: { rate: 0.5, duration: 2_000 } }],
    ['demo --replicas 3', { command: 'demo', feed: 'market', options: { replicas: 3 } }],
    [
      'cluster status --cluster nats://a --account b --json',
      { command: 'cluster', action: 'status', options: { cluster: 'nats://a', account: 'b', json: true } },
    ],
    [
      'listen --cluster redis://a --account b --replica c',
      {
        command: 'listen',
        feed: 'market',
        options: { status: true, cluster: 'redis://a', account: 'b', replica: 'c' },
      },
    ],
    ['demo --outage-every 0', { command: 'demo', feed: 'market', options: { outageEvery: 0 } }],
    ['listen', { command: 'listen', feed: 'market', options: { status: true } }],
    ['listen market', { command: 'listen', feed: 'market', options: { status: true } }],
    ['listen --json raw', { command: 'listen', feed: 'raw', options: { status: true, json: true } }],
    ['listen -n 5 -q', { command: 'listen', feed: 'market', options: { status: true, count: 5, quiet: true } }],
    ['listen --count=5 --count=6', { command: 'listen', feed: 'market', options: { status: true, count: 6 } }],
    ['listen --duration 1.5s', { command: 'listen', feed: 'market', options: { status: true, duration: 1_500 } }],
    ['listen --duration 250ms', { command: 'listen', feed: 'market', options: { status: true, duration: 250 } }],
    ['listen --duration 10m', { command: 'listen', feed: 'market', options: { status: true, duration: 600_000 } }],
    ['listen --duration 2h', { command: 'listen', feed: 'market', options: { status: true, duration: 7_200_000 } }],
    [
      'listen --base-url http://127.0.0.1:1 --key-file k --ca c --retries 0 --no-status',
      {
        command: 'listen',
        feed: 'market',
        options: { baseUrl: 'http://127.0.0.1:1', keyFile: 'k', ca: 'c', retries: 0, status: false },
      },
    ],
    [
      'record raw -o f --max-file-size 1.5MB --duration 24h -n 3',
      {
        command: 'record',
        feed: 'raw',
        options: { status: true, output: 'f', maxFileSize: 1_500_000, duration: 86_400_000, count: 3 },
      },
    ],
    [
      'record --output f --max-file-size 7',
      { command: 'record', feed: 'market', options: { status: true, output: 'f', maxFileSize: 7 } },
    ],
    ['record --max-file-size 2gb', { command: 'record', feed: 'market', options: { status: true, maxFileSize: 2e9 } }],
    ['record --max-file-size 1T', { command: 'record', feed: 'market', options: { status: true, maxFileSize: 1e12 } }],
    [
      'record --max-file-size 500kB',
      { command: 'record', feed: 'market', options: { status: true, maxFileSize: 500_000 } },
    ],
    [
      'record --max-file-size 0.0015k',
      { command: 'record', feed: 'market', options: { status: true, maxFileSize: 1 } },
    ],
    ['replay f', { command: 'replay', file: 'f', options: { status: true } }],
    [
      'replay --speed 0.5 f --offset 0 --json -q --count 2',
      {
        command: 'replay',
        file: 'f',
        options: { status: true, speed: 0.5, offset: 0, json: true, quiet: true, count: 2 },
      },
    ],
    ['replay f --speed max', { command: 'replay', file: 'f', options: { status: true, speed: Infinity } }],
    ['serve --replay f --speed 10', { command: 'serve', options: { replay: 'f', speed: 10 } }],
    ['serve', { command: 'serve', options: {} }],
    ['serve --source -', { command: 'serve', options: { source: '-' } }],
    ['serve --upstream wss://node.example/key', { command: 'serve', options: { upstream: 'wss://node.example/key' } }],
    [
      'top market raw:two.key https://a.example/status --header-file h --duration 1 --every 5 --ca c --base-url u --key-file k',
      {
        command: 'top',
        source: [
          { kind: 'feed', name: 'market', feed: 'market', keyFile: undefined },
          { kind: 'feed', name: 'raw:two.key', feed: 'raw', keyFile: 'two.key' },
          { kind: 'status', name: 'a.example/status', url: new URL('https://a.example/status') },
        ],
        options: { headerFile: 'h', duration: 1_000, every: 5_000, ca: 'c', baseUrl: 'u', keyFile: 'k' },
      },
    ],
    ['doctor', { command: 'doctor', feed: 'market', options: {} }],
    [
      'doctor raw --connect --frame-within 1m --json --base-url u --key-file k --ca c',
      {
        command: 'doctor',
        feed: 'raw',
        options: { connect: true, frameWithin: 60_000, json: true, baseUrl: 'u', keyFile: 'k', ca: 'c' },
      },
    ],
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
  it.each(good)('reads `%s`', (line, command) => {
    expect(parse(line.split(' '))).toStrictEqual(command);
  });

  const bad: readonly (readonly [line: string, says: RegExp])[] = [
    ['', /^A command is missing\. The commands are demo, listen, record, replay, serve, cluster, doctor, top\.$/],
    ['lisen', /^There is no command lisen\. Did you mean listen\?$/],
    ['lsiten', / Did you mean listen\?$/],
    ['listn --help', / Did you mean listen\?$/],
    ['listenn', / Did you mean listen\?$/],
    ['sarve', / Did you mean serve\?$/],
    ['dmo', / Did you mean demo\?$/],
    ['publish', /^There is no command publish\. The commands are /],
    ['help sevre', /Did you mean serve\?/],
    [
      'frobnicate',
      /^There is no command frobnicate\. The commands are demo, listen, record, replay, serve, cluster, doctor, top\.$/,
    ],
    ['listen rwa', /^There is no feed rwa\. The feeds are market and raw\.$/],
    ['listen market raw', /^There are too many arguments\. Usage: rx-trade-feed listen \[options\] \[feed\]$/],
    ['serve market', /^There are too many arguments\. Usage: rx-trade-feed serve \[options\]$/],
    ['record market raw', /^There are too many arguments\. Usage: rx-trade-feed record \[options\] \[feed\]$/],
    ['replay', /^The file is missing\. Usage: rx-trade-feed replay \[options\] <file>$/],
    ['replay f g', /^There are too many arguments\. Usage: rx-trade-feed replay \[options\] <file>$/],
    ['replay f --speed 0', /^--speed must be a number above 0, up to 1000000, or max\.$/],
    ['replay f --speed fast', /^--speed must be/],
    ['replay f --speed 1000001', /^--speed must be/],
    ['replay f --offset -1', /^--offset must be a whole number, 0 or more\.$/],
    ['demo --rate -5', /^--rate must be a number above 0, up to 100000\.$/],
    ['demo --rate -.5', /^--rate must be a number above 0/],
    ['demo --duration -1.5s', /^--duration must be a time of at most 24 days/],
    ['record --max-file-size 0', /^--max-file-size must be a size such as 500kB, 100MB, 2GB or 1TB\.$/],
    ['record --max-file-size 1PB', /^--max-file-size must be/],
    ['record --max-file-size 1.2.3k', /^--max-file-size must be/],
    ['record --max-file-size B', /^--max-file-size must be/],
    ['record --max-file-size 99999999999GB', /^--max-file-size must be/],
    ['listen --coutn 5', /^There is no option --coutn\. Did you mean --count\?$/],
    ['listen --coutn=500000', /^There is no option --coutn\. Did you mean --count\?$/],
    ['listen --ount 5', / Did you mean --count\?$/],
    ['listen --port 5', /^There is no option --port\.$/],
    ['listen -x', /^There is no option -x\.$/],
    ['listen --count', /^--count needs a value: N\.$/],
    ['listen -qn', /^The arguments are not valid\. Usage: /],
    ['listen --key-file --json', /^--key-file needs a value: FILE\.$/],
    ['serve --source --tls', /^--source needs a value: FILE\|-\.$/],
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
    ['doctor --retries 3', /^There is no option --retries\.$/],
    ['top', /^The source is missing\. Usage: rx-trade-feed top \[options\] <source\.\.\.>$/],
    ['top raw --every 99ms', /^--every must be a time from 100ms to 24 days\.$/],
    ['top raw --every soon', /^--every must be/],
    ['top nonsense', /^A source of top is market, raw, market:FILE, raw:FILE, or the http: or https: address/],
    ['top ftp://a.example', /^A source of top is/],
    ['top https://u:planted@a.example', /^An address of top must not contain a password\. Use --header-file FILE\.$/],
    ['serve --upstream http://127.0.0.1:8545', /^--upstream must be a ws: or wss: address, such as ws:/],
    ['serve --upstream nonsense', /^--upstream must be/],
    ['serve --port 65536', /^--port must be a whole number from 0 to 65535\.$/],
    ['serve --plan gold', /^--plan must be free or developer\.$/],
    ['serve --rate 0', /^--rate must be a number above 0, up to 100000\.$/],
    ['serve --rate fast', /^--rate must be/],
    ['serve --rate 100001', /^--rate must be/],
  ];
  it.each(bad)('refuses `%s`', (line, says) => {
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
  it.each(keyLines)('explains why `%s` is refused, without the value', (line) => {
    expect(() => parse(line.split(' '))).toThrow(/not accepted as an argument, .*history.*processes.*--key-file/);
    expect(() => parse(line.split(' '))).not.toThrow(/planted-secret/);
  });

  it.each([
    'listen SECRET_KEY_0123456789',
    'SECRET_KEY_0123456789',
    'listen market SECRET_KEY_0123456789',
    'replay file SECRET_KEY_0123456789',
    'listen --SECRET_KEY_0123456789',
    'top SECRET_KEY_0123456789',
  ])('never repeats what may be a key in the wrong place: `%s`', (line) => {
    expect(() => parse(line.split(' '))).toThrow();
    expect(() => parse(line.split(' '))).not.toThrow(/SECRET/);
  });
});
