import { readFile } from 'node:fs/promises';
import {
  combineLatest,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  NEVER,
  type Observable,
  startWith,
  tap,
  throttleTime,
  timer,
} from 'rxjs';
import { Agent } from 'undici';
import { proxyFromEnvironment, tradeFeedEvents$, type TradeFeedOptions } from '../../index.js';
import type { TopCommand } from '../arguments/parsed-command.js';
import { localError, usageError } from '../cli-error.js';
import { connectionOptions, tlsOf } from '../connection.js';
import { type CliContext, isTerminal } from '../context.js';
import { ExitCode } from '../exit-code.js';
import { endings$ } from '../follow/ending.js';
import type { Ending } from '../follow/event.js';
import { tickMs } from '../follow/follow.js';
import { feedSnapshots$ } from '../top/feed-snapshots.js';
import { checkKeys, type FeedSource, type TopSource } from '../top/source.js';
import { type StatusRequest, statusSnapshots$ } from '../top/status-snapshots.js';
import type { Row } from '../top/table.js';
import { topView } from '../top/top-views.js';
import { withKeys } from '../view/keys.js';

/** The shortest time between two updates of the table, in ms. */
const drawEveryMs = 100;

/**
 * Shows the status of several feeds and relays until it is interrupted.
 *
 * @returns the exit code
 * @throws CliError when a source or an option is not valid
 */
export const top = async ({ source: sources, options }: TopCommand, context: CliContext): Promise<number> => {
  checkKeys(sources);
  const settings = await statusRequest(options, context);
  const rows = await Promise.all(sources.map((source) => rows$(source, options, context, settings)));
  const isDrawn = isTerminal(context.stdout, context);
  const view = topView(context);
  const shown$ = combineLatest([combineLatest(rows), timer(0, tickMs)]).pipe(
    throttleTime(drawEveryMs, undefined, { leading: true, trailing: true }),
    tap(([current]) => view.show(current)),
    ignoreElements(),
  );
  try {
    const endings = endings$(isDrawn ? withKeys(context) : context);
    const ending = await firstValueFrom(merge(endings, timeUp$(options.duration), shown$));
    if (ending.kind === 'failed') throw ending.error;
    return ExitCode.ok;
  } finally {
    view.close();
    await settings.dispatcher.destroy();
  }
};

type Options = TopCommand['options'];

const rows$ = async (
  source: TopSource,
  options: Options,
  context: CliContext,
  settings: StatusRequest,
): Promise<Observable<Row>> => {
  const snapshots$ =
    source.kind === 'status'
      ? statusSnapshots$(source.url, settings, options.every)
      : feedSnapshots$(tradeFeedEvents$(source.feed, await feedOptions(source, options, context)));
  return snapshots$.pipe(
    startWith(undefined),
    map((snapshot) => ({ name: source.name, snapshot })),
  );
};

const feedOptions = ({ keyFile }: FeedSource, options: Options, context: CliContext): Promise<TradeFeedOptions> =>
  connectionOptions({ ...options, ...(keyFile !== undefined && { keyFile }) }, context);

const timeUp$ = (durationMs: number | undefined): Observable<Ending> =>
  durationMs === undefined ? NEVER : timer(durationMs).pipe(map(() => ({ kind: 'time-up' })));

/** How long a connection to an app may take, in ms. */
const connectTimeoutMs = 5_000;

const statusRequest = async (options: Options, { env }: CliContext): Promise<StatusRequest> => {
  const tls = await tlsOf(options);
  const { dispatcher } = await proxyFromEnvironment({ env, tls });
  return {
    headers: options.headerFile === undefined ? {} : await headersFromFile(options.headerFile),
    dispatcher: dispatcher ?? new Agent({ connect: { ...tls, timeout: connectTimeoutMs } }),
  };
};

const headersFromFile = async (file: string): Promise<Readonly<Record<string, string>>> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw localError('Cannot read the file of --header-file', error);
  });
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
