import { given, type OptionTable, perSecond, text, timeMs, wholeNumber, word } from './option.js';

const common = {
  help: { ...given, short: 'h', help: 'show this help' },
} as const satisfies OptionTable;

const connection = {
  'base-url': { ...text('URL'), help: 'the address of the service (default: TRADE_FEED_BASE_URL)' },
  'key-file': { ...text('FILE'), help: 'read the API key from a file (default: TRADE_FEED_API_KEY)' },
  ca: { ...text('FILE'), help: 'trust the CA certificates in this PEM file, and no others' },
  retries: { ...wholeNumber('N', 0), help: 'give up after N reconnects in a row (default: never)' },
  duration: { ...timeMs, help: 'end after this time: 30, 1.5s, 10m, 2h' },
} as const satisfies OptionTable;

/** The options of `demo`. */
export const demoOptions = {
  ...connection,
  rate: { ...perSecond, help: 'frames a second of the local service (default: 20)' },
  'outage-every': {
    ...timeMs,
    help: 'how often the local service ends the connection, to show a reconnect; 0: never (default: 30)',
  },
  ...common,
} as const satisfies OptionTable;

/** The options of `listen`. */
export const listenOptions = {
  ...connection,
  count: { ...wholeNumber('N', 1), short: 'n', help: 'end after N frames' },
  json: {
    ...given,
    help: 'one JSON object a line: each frame with its metadata, and gaps and reconnects in their place',
  },
  'no-status': { ...given, help: 'plain lines on stderr, no status line, also on a terminal' },
  quiet: { ...given, short: 'q', help: 'nothing on stderr but errors and dropped frames' },
  ...common,
} as const satisfies OptionTable;

/** The options of `serve`. */
export const serveOptions = {
  plan: {
    ...word('free', 'developer'),
    help: 'the plan of the account; free delays each frame by 500 ms (default: free)',
  },
  port: { ...wholeNumber('N', 0, 65_535), help: 'the port on 127.0.0.1 (default: any free one)' },
  rate: { ...perSecond, help: 'frames a second of each feed (default: 20)' },
  seed: { ...wholeNumber('N', 0, 2 ** 32 - 1), help: 'the same seed makes the same payloads (default: 1)' },
  source: { ...text('FILE|-'), help: 'send the lines of a file, or of stdin, one payload a line' },
  feed: { ...word('market', 'raw'), help: 'the feed that --source goes to (default: market)' },
  tls: { ...given, help: 'https: and wss: with a certificate made for this run' },
  cert: { ...text('FILE'), help: 'https: and wss: with this PEM certificate' },
  key: { ...text('FILE'), help: 'the PEM key that belongs to --cert' },
  ...common,
} as const satisfies OptionTable;

/** What the help says of a command, and which options it takes. */
export interface CommandSpec {
  /** What follows the name. */
  readonly takesFeed: boolean;
  readonly summary: string;
  readonly about: readonly string[];
  readonly options: OptionTable;
  /** Command lines, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
}

/** Every command. */
export const commands = {
  demo: {
    takesFeed: true,
    summary: 'show the live feed at a glance, of a local service unless told otherwise',
    about: [
      'Starts a local service, connects to it and shows what happens. With TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY set (or --base-url and --key-file) it streams from that service instead. Ctrl-C ends it with a summary.',
    ],
    options: demoOptions,
    examples: [
      ['rx-trade-feed demo', 'the market feed of a local service'],
      ['rx-trade-feed demo raw --rate 500', 'a faster one'],
    ],
  },
  listen: {
    takesFeed: true,
    summary: 'write the frames of a feed to stdout, one a line',
    about: [
      'A text payload is written as it is, byte for byte, and a newline behind it: a payload that holds newlines takes several lines. A binary payload is written as base64. With --json each line is one JSON object, whatever the payload. On a terminal, control characters of a payload are shown as pictures, so that a feed cannot steer the terminal.',
      'Frames are read as fast as they come, however slow the reader of stdout is. Up to 64 MiB wait for it; beyond that the oldest lines are dropped, counted and told on stderr, and in their place with --json.',
    ],
    options: listenOptions,
    examples: [
      ['rx-trade-feed listen | jq .', 'read frames with jq'],
      ['rx-trade-feed listen raw --duration 10m > frames.ndjson', 'record; replay with serve --source'],
      ['rx-trade-feed listen --count 1 --duration 10s -q', 'a health check: exit code 0 when a frame came'],
      ['rx-trade-feed listen --json | jq \'select(.type=="gap")\'', 'watch for lost time alone'],
    ],
  },
  serve: {
    takesFeed: false,
    summary: 'run a local service that keeps the whole contract',
    about: [
      'Prints its address, a key for this run, and what to type next; tells on stderr what it sees. Ctrl-C ends it (1001).',
      'With --source, the lines of a pipe or of stdin are sent as they come, whether or not a client is there; those of a file at 20 a second, from when the first client of the feed has connected. With --rate either is sent at that rate, from the first client on. Empty lines are left out. The other feed keeps its made-up payloads.',
    ],
    options: serveOptions,
    examples: [
      ['rx-trade-feed serve --port 8080 --plan developer', 'a service at a fixed address'],
      ['rx-trade-feed serve --source frames.ndjson --rate 100', 'replay a recording'],
      ['tail -F orders.log | rx-trade-feed serve --source -', 'make a feed of any program'],
      ['rx-trade-feed serve --tls', 'over TLS, with what a client needs to trust it'],
    ],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
/** Names a command. */
export type CommandName = keyof typeof commands;

/** Tells whether a word names a command. */
export const isCommand = (name: string | undefined): name is CommandName =>
  name !== undefined && Object.hasOwn(commands, name);
