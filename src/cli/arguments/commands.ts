import { given, type OptionTable, perSecond, sizeBytes, speed, text, timeMs, wholeNumber, word } from './option.js';

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

const count = {
  count: { ...wholeNumber('N', 1), short: 'n', help: 'end after N frames' },
} as const satisfies OptionTable;

const status = {
  'no-status': { ...given, help: 'plain lines on stderr, no status line, also on a terminal' },
} as const satisfies OptionTable;

const quiet = {
  quiet: { ...given, short: 'q', help: 'nothing on stderr but errors' },
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
  ...count,
  json: {
    ...given,
    help: 'one JSON object a line: each frame with its metadata, and gaps and reconnects in their place',
  },
  ...status,
  quiet: { ...given, short: 'q', help: 'nothing on stderr but errors and dropped frames' },
  ...common,
} as const satisfies OptionTable;

/** The options of `record`. */
export const recordOptions = {
  output: { ...text('FILE'), short: 'o', help: 'the recording; what it holds already is kept' },
  'max-file-size': {
    ...sizeBytes,
    help: 'go on in FILE.1, FILE.2 and so on when a file would get larger: 500kB, 100MB, 2GB, 1TB (default: one file)',
  },
  ...connection,
  ...count,
  ...status,
  ...quiet,
  ...common,
} as const satisfies OptionTable;

/** The options of `replay`. */
export const replayOptions = {
  speed: { ...speed, help: 'how many times as fast as recorded; max: as fast as it is read (default: 1)' },
  offset: { ...wholeNumber('N', 0), help: 'go on from there: the offset that an earlier replay told at its end' },
  ...count,
  json: { ...given, help: 'one JSON object a line: each frame with its metadata, and gaps in their place' },
  ...status,
  ...quiet,
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
  replay: { ...text('FILE'), help: 'send a recording: each frame to its feed, with the recorded spacing' },
  speed: { ...speed, help: 'how many times as fast --replay is (default: 1)' },
  tls: { ...given, help: 'https: and wss: with a certificate made for this run' },
  cert: { ...text('FILE'), help: 'https: and wss: with this PEM certificate' },
  key: { ...text('FILE'), help: 'the PEM key that belongs to --cert' },
  ...common,
} as const satisfies OptionTable;

/** What the help says of a command, and which options it takes. */
export interface CommandSpec {
  /** What follows the name. */
  readonly takes: 'feed' | 'file' | 'nothing';
  readonly summary: string;
  readonly about: readonly string[];
  readonly options: OptionTable;
  /** Command lines, each with what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
}

/** Every command. */
export const commands = {
  demo: {
    takes: 'feed',
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
    takes: 'feed',
    summary: 'write the frames of a feed to stdout, one a line',
    about: [
      'A text payload is written as it is, byte for byte, and a newline behind it: a payload that holds newlines takes several lines. A binary payload is written as base64. With --json each line is one JSON object, whatever the payload. On a terminal, control characters of a payload are shown as pictures, so that a feed cannot steer the terminal.',
      'Frames are read as fast as they come, however slow the reader of stdout is. Up to 64 MiB wait for it; beyond that the oldest lines are dropped, counted and told on stderr, and in their place with --json.',
    ],
    options: listenOptions,
    examples: [
      ['rx-trade-feed listen | jq .', 'read frames with jq'],
      ['rx-trade-feed listen raw --duration 10m > frames.ndjson', 'its payloads alone, for serve --source'],
      ['rx-trade-feed listen --count 1 --duration 10s -q', 'a health check: exit code 0 when a frame came'],
      ['rx-trade-feed listen --json | jq \'select(.type=="gap")\'', 'watch for lost time alone'],
    ],
  },
  record: {
    takes: 'feed',
    summary: 'record a feed to a file, with its gaps',
    about: [
      'Writes one JSON object a line, as listen --json does, frames and gaps alone: jq reads it, replay and serve --replay send it again. Every byte of a payload survives. A crash costs the last moment at most.',
      'Goes on behind what the file holds already, and records the time between as a gap. A file that is no recording, or that another recorder writes to, is refused and left unchanged. When no frame comes, no file is left behind. Ctrl-C ends it with a summary.',
    ],
    options: recordOptions,
    examples: [
      ['rx-trade-feed record --output market.ndjson', 'until Ctrl-C'],
      ['rx-trade-feed record raw --output raw.ndjson --max-file-size 1GB --duration 24h', 'a day, in files of 1 GB'],
    ],
  },
  replay: {
    takes: 'file',
    summary: 'write the frames of a recording to stdout, one a line',
    about: [
      'Reads what record, recordTo or listen --json has written: the file, then FILE.1, FILE.2 and so on. Frames come with their recorded spacing, and as listen writes them. When the reader of stdout is slow, the replay waits for it.',
      'At its end it tells the offset from which another replay can go on: right behind what stdout has taken.',
    ],
    options: replayOptions,
    examples: [
      ['rx-trade-feed replay market.ndjson | jq .', 'as it was'],
      ['rx-trade-feed replay market.ndjson --speed max --json', 'everything at once, with metadata and gaps'],
    ],
  },
  serve: {
    takes: 'nothing',
    summary: 'run a local service that keeps the whole contract',
    about: [
      'Prints its address, a key for this run, and what to type next; tells on stderr what it sees. Ctrl-C ends it (1001).',
      'With --source, the lines of a pipe or of stdin are sent as they come, whether or not a client is there; those of a file at 20 a second, from when the first client of the feed has connected. With --rate either is sent at that rate, from the first client on. Empty lines are left out. The other feed keeps its made-up payloads.',
      'With --replay, each feed sends the frames that were recorded from it, the first one when its first client has connected; a recorded gap is silence.',
    ],
    options: serveOptions,
    examples: [
      ['rx-trade-feed serve --port 8080 --plan developer', 'a service at a fixed address'],
      ['rx-trade-feed serve --replay market.ndjson --speed 10', 'a recording, ten times as fast'],
      ['rx-trade-feed serve --source frames.ndjson --rate 100', 'the lines of a file'],
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
