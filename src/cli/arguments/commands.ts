import { Argument, Option } from 'commander';
import { usageError } from '../cli-error.js';
import { type TopSource, topSource } from '../top/source.js';
import {
  clusterExitCodeMeanings,
  demoExitCodeMeanings,
  doctorExitCodeMeanings,
  exitCodeMeanings,
  recordExitCodeMeanings,
  replayExitCodeMeanings,
  serveExitCodeMeanings,
  topExitCodeMeanings,
} from '../exit-code.js';
import {
  anyText,
  engineUrl,
  integer,
  name,
  oneOf,
  periodMs,
  perSecond,
  sizeBytes,
  speed,
  timeMs,
  valueOption,
  webSocketUrl,
} from './values.js';

/** A command: its argument, its options, and the texts of its help. */
export interface CommandSpec {
  readonly argument?: Argument;
  readonly summary: string;
  /** Paragraphs of the help. */
  readonly description: readonly string[];
  readonly options: readonly Option[];
  /** Command lines, each with its effect. */
  readonly examples: readonly (readonly [line: string, effect: string])[];
  readonly exitCodes: Readonly<Record<number, string>>;
}

/** Repeats a word only if it looks like a misspelt name: any other word may be a secret. */
export const quoted = (word: string): string =>
  /^-{0,2}[a-z][a-z-]{0,15}$/i.test(word) ? ` ${word}` : ' of that name';

const feed = new Argument('[feed]', 'market or raw (default: market)').argParser((word) => {
  if (word === 'market' || word === 'raw') return word;
  throw usageError(`There is no feed${quoted(word)}. The feeds are market and raw.`);
});

const source = new Argument('<source...>', 'market, raw, market:FILE, raw:FILE, or the address of a status').argParser(
  (word, before: readonly TopSource[] | undefined) => [...(before ?? []), topSource(word)],
);

const service = [
  valueOption('--base-url <URL>', anyText, 'the address of the service (default: TRADE_FEED_BASE_URL)'),
  valueOption('--key-file <FILE>', anyText, 'read the API key from a file (default: TRADE_FEED_API_KEY)'),
  valueOption('--ca <FILE>', anyText, 'trust only the CA certificates in this PEM file'),
];
const duration = valueOption('--duration <TIME>', timeMs, 'end after this time: 30, 1.5s, 10m, 2h');
const connection = [
  ...service,
  valueOption('--retries <N>', integer(0), 'stop after N reconnects in a row (default: never)'),
  duration,
];
const cluster = [
  valueOption(
    '--cluster <URL>',
    engineUrl,
    'share one connection with other replicas, over nats:// or redis:// (default: TRADE_FEED_CLUSTER, if it is set)',
  ),
  valueOption(
    '--account <NAME>',
    name,
    'the name under which the replicas of an account find each other (default: main)',
  ),
];
const count = valueOption('-n, --count <N>', integer(1), 'end after N frames');
const noStatus = new Option('--no-status', 'write plain lines to stderr on a terminal, without a status line');
const quiet = new Option('-q, --quiet', 'write only errors to stderr');

/** All commands. */
export const commands = {
  demo: {
    argument: feed,
    summary: 'show a live feed, from a local service by default',
    description: [
      'Starts a local service, connects to it and shows what happens. If TRADE_FEED_BASE_URL and TRADE_FEED_API_KEY are set (or --base-url and --key-file), it connects to that service instead. Ctrl-C ends it with a summary.',
    ],
    options: [
      ...connection,
      valueOption('--rate <N>', perSecond, 'frames per second of the local service (default: 20)'),
      valueOption(
        '--outage-every <TIME>',
        timeMs,
        'how often the local service closes the connection, to show a reconnect; 0: never (default: 30)',
      ),
      valueOption(
        '--replicas <N>',
        integer(2, 9),
        'show replicas that share one connection, with keys to kill, stop and hand over; uses nats-server or redis-server, if one is installed',
      ),
    ],
    examples: [
      ['rx-trade-feed demo', 'the market feed of a local service'],
      ['rx-trade-feed demo raw --rate 500', 'a faster feed'],
      ['rx-trade-feed demo --replicas 3', 'three replicas, one of which owns the connection'],
    ],
    exitCodes: demoExitCodeMeanings,
  },
  listen: {
    argument: feed,
    summary: 'write the frames of a feed to stdout, one per line',
    description: [
      'Writes a text payload unchanged, followed by a newline. A payload that contains newlines takes several lines. A binary payload is written as base64. With --json each line is one JSON object, for every payload. On a terminal, control characters of a payload are shown as symbols, so that a feed cannot control the terminal.',
      'Frames are read as fast as they arrive, even if the reader of stdout is slow. Up to 64 MiB wait for it. Then the oldest lines are dropped. The number of dropped lines is reported on stderr, and with --json also in their place.',
    ],
    options: [
      ...connection,
      ...cluster,
      valueOption('--replica <NAME>', name, 'the name of this replica in the cluster (default: host and process id)'),
      count,
      new Option('--json', 'one JSON object per line: frames with metadata, and gaps and reconnects in between'),
      noStatus,
      new Option('-q, --quiet', 'write only errors and dropped frames to stderr'),
    ],
    examples: [
      ['rx-trade-feed listen | jq .', 'read frames with jq'],
      ['rx-trade-feed listen raw --duration 10m > frames.ndjson', 'only the payloads, for serve --source'],
      ['rx-trade-feed listen --count 1 --duration 10s -q', 'a health check: exit code 0 if a frame arrived'],
      ['rx-trade-feed listen --json | jq \'select(.type=="gap")\'', 'show only the gaps'],
      [
        'rx-trade-feed listen --cluster nats://127.0.0.1:4222 --account main',
        'a replica: one connection for all of them',
      ],
    ],
    exitCodes: exitCodeMeanings,
  },
  record: {
    argument: feed,
    summary: 'record a feed to a file, with its gaps',
    description: [
      'Writes frames and gaps as listen --json does, one JSON object per line. jq can read the file; replay and serve --replay send it again. Every byte of a payload is preserved. A crash loses at most the last moment.',
      'Appends to an existing recording, and records the time in between as a gap. A file that is not a recording, or that another recorder uses, is refused and left unchanged. If no frame arrives, no new file remains. Ctrl-C ends it with a summary.',
    ],
    options: [
      valueOption('-o, --output <FILE>', anyText, 'the recording; an existing one is appended to'),
      valueOption(
        '--max-file-size <SIZE>',
        sizeBytes,
        'continue in FILE.1, FILE.2 and so on when a file is full: 500kB, 100MB, 2GB, 1TB (default: one file)',
      ),
      ...connection,
      count,
      noStatus,
      quiet,
    ],
    examples: [
      ['rx-trade-feed record --output market.ndjson', 'until Ctrl-C'],
      ['rx-trade-feed record raw --output raw.ndjson --max-file-size 1GB --duration 24h', 'a day, in files of 1 GB'],
    ],
    exitCodes: recordExitCodeMeanings,
  },
  replay: {
    argument: new Argument('<file>', 'the recording'),
    summary: 'write the frames of a recording to stdout, one per line',
    description: [
      'Reads a file of record, recordTo or listen --json, then FILE.1, FILE.2 and so on. Writes the frames as listen does, with the recorded intervals. If the reader of stdout is slow, the replay waits for it.',
      'At the end it prints the offset after the last line that stdout accepted. A later replay can continue from this offset.',
    ],
    options: [
      valueOption('--speed <N|max>', speed, 'a multiple of the recorded speed; max: as fast as possible (default: 1)'),
      valueOption('--offset <N>', integer(0), 'continue from an offset that an earlier replay printed'),
      count,
      new Option('--json', 'one JSON object per line: frames with metadata, and gaps in between'),
      noStatus,
      quiet,
    ],
    examples: [
      ['rx-trade-feed replay market.ndjson | jq .', 'at the recorded speed'],
      ['rx-trade-feed replay market.ndjson --speed max --json', 'everything at once, with metadata and gaps'],
    ],
    exitCodes: replayExitCodeMeanings,
  },
  serve: {
    summary: 'run a local service that follows the whole contract',
    description: [
      'Prints its address, an API key for this run and the commands to type next. Reports its events on stderr. Ctrl-C ends it (1001).',
      'With --source, the lines of a pipe or of stdin are sent as they arrive, with or without a client. The lines of a file are sent at 20 per second, beginning when the first client of the feed connects. With --rate both are sent at that rate, beginning with the first client. Empty lines are skipped. The other feed sends generated payloads.',
      'With --replay, each feed sends its recorded frames, beginning when its first client connects. A recorded gap is a pause.',
      'With --upstream, raw sends the pending transactions of an Ethereum node (JSON-RPC: eth_subscribe newPendingTransactions), and market sends batches of them. The contract shows no payload format: the real service may send another one.',
    ],
    options: [
      valueOption(
        '--plan <free|developer>',
        oneOf('free', 'developer'),
        'the plan of the account; free delays each frame by 500 ms (default: free)',
      ),
      valueOption('--port <N>', integer(0, 65_535), 'the port on 127.0.0.1 (default: any free port)'),
      valueOption('--rate <N>', perSecond, 'frames per second of each feed (default: 20)'),
      valueOption('--seed <N>', integer(0, 2 ** 32 - 1), 'the same seed generates the same payloads (default: 1)'),
      valueOption('--source <FILE|->', anyText, 'send the lines of a file, or of stdin, one payload per line'),
      valueOption('--feed <market|raw>', oneOf('market', 'raw'), 'the feed of --source (default: market)'),
      valueOption('--replay <FILE>', anyText, 'send a recording: each frame to its feed, with the recorded intervals'),
      valueOption('--speed <N|max>', speed, 'the speed of --replay, as a multiple (default: 1)'),
      valueOption(
        '--upstream <URL>',
        webSocketUrl,
        'send the pending transactions of the Ethereum node at this address',
      ),
      new Option('--tls', 'https: and wss: with a certificate that is created for this run'),
      valueOption('--cert <FILE>', anyText, 'https: and wss: with this PEM certificate'),
      valueOption('--key <FILE>', anyText, 'the PEM key of --cert'),
    ],
    examples: [
      ['rx-trade-feed serve --port 8080 --plan developer', 'a service at a fixed address'],
      ['rx-trade-feed serve --replay market.ndjson --speed 10', 'a recording, ten times as fast'],
      ['rx-trade-feed serve --source frames.ndjson --rate 100', 'the lines of a file'],
      ['tail -F orders.log | rx-trade-feed serve --source -', 'use the output of any program as a feed'],
      ['rx-trade-feed serve --upstream ws://127.0.0.1:8545', 'the transactions of an Ethereum node'],
      ['rx-trade-feed serve --tls', 'over TLS, with instructions for the client'],
    ],
    exitCodes: serveExitCodeMeanings,
  },
  cluster: {
    argument: new Argument('<action>', 'status, hand-over or resume').argParser((word) => {
      if (word === 'status' || word === 'hand-over' || word === 'resume') return word;
      throw usageError(`There is no action${quoted(word)}. The actions are status, hand-over and resume.`);
    }),
    summary: 'show or change which replica owns a connection',
    description: [
      'status shows the owner, its generation, the replicas that could replace it, and the last changes of the owner. hand-over moves the ownership to another replica. resume allows the replicas to connect again after another client replaced their connection; the replicas that have stopped need a restart.',
      'A user and a password in the address are visible in the list of processes. Use TRADE_FEED_CLUSTER for such an address.',
    ],
    options: [...cluster, new Option('--json', 'write the status as one JSON object')],
    examples: [
      ['rx-trade-feed cluster status --cluster nats://127.0.0.1:4222', 'which replica owns the connection'],
      ['rx-trade-feed cluster hand-over --cluster redis://127.0.0.1:6379', 'move the ownership before a maintenance'],
    ],
    exitCodes: clusterExitCodeMeanings,
  },
  doctor: {
    argument: feed,
    summary: 'find out why a feed does not work',
    description: [
      'Checks Node, the settings, the proxy, DNS, TCP, TLS, the API key and the clock, and prints what is wrong and what to do. It requests one ticket. Later checks are skipped after a check that failed.',
      'With --connect it also opens a connection, and waits 10 s for another client of the account and for the first frame. A new connection closes the connection of another client of the account (4001), so it is not opened without --connect.',
    ],
    options: [
      ...service,
      new Option('--connect', 'open a connection; closes the connection of another client of the account'),
      valueOption('--frame-within <TIME>', timeMs, 'with --connect: how long the first frame may take (default: 10)'),
      new Option('--json', 'one JSON object with all findings'),
    ],
    examples: [
      ['rx-trade-feed doctor', 'check everything up to the ticket'],
      ['rx-trade-feed doctor raw --connect --frame-within 30', 'also the connection, and the first frame of raw'],
      ['rx-trade-feed doctor --json | jq \'.checks[] | select(.status == "failed")\'', 'only the check that failed'],
    ],
    exitCodes: doctorExitCodeMeanings,
  },
  top: {
    argument: source,
    summary: 'show several feeds and relays in a table',
    description: [
      'Shows the state, rate, age of the last frame, gaps, reconnects by cause, clients and replica of each source. On a terminal it updates a table, and q or Ctrl-C ends it. Otherwise it writes a line for each source every 2 s.',
      'A source is the address at which an app shows its status as JSON: relay.status() with more fields, see the guide on relays. Or it is a feed: then top opens a connection, which closes the connection of another client of the account (4001). market:FILE uses the API key in the file, so that feeds of several accounts can be shown.',
    ],
    options: [
      ...service,
      valueOption('--header-file <FILE>', anyText, 'headers for the addresses, one per line: Name: value'),
      valueOption('--every <TIME>', periodMs, 'how often an address is requested (default: 1)'),
      duration,
    ],
    examples: [
      ['rx-trade-feed top https://a.example/status https://b.example/status', 'two replicas of an app'],
      ['rx-trade-feed top market:one.key raw:two.key', 'two feeds of two accounts'],
    ],
    exitCodes: topExitCodeMeanings,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

/** Names a command. */
export type CommandName = keyof typeof commands;
/** The names of all commands. */
export const commandNames = Object.keys(commands) as readonly CommandName[];

/** Returns whether a word is the name of a command. */
export const isCommand = (name: string | undefined): name is CommandName =>
  name !== undefined && Object.hasOwn(commands, name);
