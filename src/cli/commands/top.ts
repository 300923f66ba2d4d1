import { combineLatest, firstValueFrom, ignoreElements, map, merge, type Observable, startWith, tap } from 'rxjs';
import { throttleTime, timer } from 'rxjs';
import { type Feed, proxyFromEnvironment, tradeFeedEvents$ } from '../../index.js';
import { connectionOptions, readFileOf, tlsOf } from '../connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { usageError } from '../errors.js';
import { endings$, finish, tickMs, timeUp$ } from '../follow.js';
import { anyText, argument, defineCommand, duration, option, periodMs, service, type ValuesOf } from '../options.js';
import { feedSnapshots$, type Row, rowLogLine, type Snapshot, type StatusRequest } from '../top.js';
import { statusSnapshots$, table, totalLogLine } from '../top.js';
import { screenView, type TerminalSize, type View, withKeys } from '../view/terminal.js';

const options = {
  ...service,
  headerFile: option('--header-file <FILE>', anyText, 'headers for the addresses, one per line: Name: value'),
  every: option('--every <TIME>', periodMs, 'how often an address is requested (default: 1)'),
  duration,
};
type Values = ValuesOf<typeof options>;

export const command = defineCommand({
  argument: argument<readonly TopSource[]>(
    '<source...>',
    'market, raw, market:FILE, raw:FILE, or the address of a status',
    (word, before = []) => [...before, topSource(word)],
  ),
  summary: 'show several feeds and relays in a table',
  description: `
    Shows the state, rate, age of the last frame, gaps, reconnects by cause, clients and replica of each source. On a
    terminal it updates a table, and q or Ctrl-C ends it. Otherwise it writes a line for each source every 2 s.

    A source is the address at which your app shows its status as JSON: relay.status() with more fields, see the guide on
    relays. Or it's a feed: then top opens a connection, which kicks out any other client of the account (4001).
    market:FILE takes the API key from the file, so you can watch the feeds of several accounts.
  `,
  options,
  examples: [
    ['rx-trade-feed top https://a.example/status https://b.example/status', 'two replicas of an app'],
    ['rx-trade-feed top market:one.key raw:two.key', 'two feeds of two accounts'],
  ],
  run: async (sources, values, context) => {
    checkKeys(sources);
    const request = await statusRequest(values, context);
    const rows = await Promise.all(sources.map((source) => rows$(source, values, context, request)));
    const view = topView(context);
    const shown$ = combineLatest([combineLatest(rows), timer(0, tickMs)]).pipe(
      throttleTime(drawEveryMs, undefined, { leading: true, trailing: true }),
      tap(([current]) => view.show(current)),
      ignoreElements(),
    );
    try {
      const endings = endings$(isTerminal(context.stdout, context) ? withKeys(context) : context);
      const ending = await firstValueFrom(merge(endings, timeUp$(values.duration), shown$));
      return finish(ending, {}, true);
    } finally {
      view.close();
      await request.dispatcher.destroy();
    }
  },
});

const drawEveryMs = 100;

/** A feed, with its key file unless `--key-file` or the environment has the key; or an app, by its address. */
type TopSource =
  | { readonly name: string; readonly feed: Feed; readonly keyFile: string | undefined }
  | { readonly name: string; readonly url: URL };

// The word may be a secret, so no error shows it.
const topSource = (word: string): TopSource => {
  const [, feed, keyFile] = /^(market|raw)(?::(.+))?$/.exec(word) ?? [];
  if (feed !== undefined) return { name: word, feed: feed as Feed, keyFile };
  const url = URL.canParse(word) ? new URL(word) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usageError(
      'A source of top is market, raw, market:FILE, raw:FILE, or the http: or https: address of a status.',
    );
  if (url.username !== '' || url.password !== '')
    throw usageError('An address of top must not contain a password. Use --header-file FILE.');
  return { name: `${url.host}${url.pathname}`, url };
};

/** Refuses two feeds with the same key: the service would close one of the connections (4001). */
const checkKeys = (sources: readonly TopSource[]): void => {
  const files = sources.flatMap((source) => ('feed' in source ? [source.keyFile] : []));
  if (new Set(files).size < files.length)
    throw usageError(
      'An account has one connection, so each feed needs the key of another account: market:FILE raw:FILE.',
    );
};

const rows$ = async (
  source: TopSource,
  values: Values,
  context: CliContext,
  request: StatusRequest,
): Promise<Observable<Row>> => {
  const named = map((snapshot: Snapshot): Row => ({ name: source.name, ...snapshot }));
  const connecting = startWith<Snapshot>({ state: 'connecting' });
  if ('url' in source) return statusSnapshots$(source.url, request, values.every).pipe(connecting, named);
  const { feed, keyFile = values.keyFile } = source;
  const options = await connectionOptions({ ...values, keyFile }, context);
  return feedSnapshots$(feed, tradeFeedEvents$(feed, options)).pipe(connecting, named);
};

const connectTimeoutMs = 5_000;

const statusRequest = async (values: Values, { env }: CliContext): Promise<StatusRequest> => {
  const tls = await tlsOf(values);
  const { dispatcher } = await proxyFromEnvironment({ env, tls });
  const { Agent } = await import('undici');
  return {
    headers: values.headerFile === undefined ? {} : headersIn(await readFileOf('--header-file', values.headerFile)),
    dispatcher: dispatcher ?? new Agent({ connect: { ...tls, timeout: connectTimeoutMs } }),
  };
};

const headersIn = (text: string): Readonly<Record<string, string>> => {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([!#$%&'*+.^`|~\w-]+):\s*([\x20-\x7e]+?)\s*$/.exec(line) ?? [];
      if (name === undefined || value === undefined)
        throw usageError('The file of --header-file must contain lines such as Authorization: Bearer of-your-app.');
      return [name.toLowerCase(), value];
    }),
  );
};

/** How often each status goes to a log, in ms. A new state is written at once. */
const logEveryMs = 2_000;

const topView = (context: CliContext): View<readonly Row[]> => {
  const startedAt = Date.now();
  let states: readonly string[] = [];
  const tableOf = (rows: readonly Row[], size: TerminalSize) => table(rows, { startedAt, now: Date.now(), ...size });
  return screenView<readonly Row[]>(context, {
    lines: tableOf,
    // Leaves out the title and the line about the keys.
    last: (rows, size) => tableOf(rows, size).slice(2, -2),
    logEveryMs,
    log: (rows, isDue) => {
      const shown = rows.filter(({ state }, n) => isDue || state !== (states[n] ?? 'connecting'));
      states = rows.map(({ state }) => state);
      const total = isDue && rows.length > 1 ? [totalLogLine(rows)] : [];
      return [...shown.map((row) => rowLogLine(row, Date.now())), ...total];
    },
  });
};
