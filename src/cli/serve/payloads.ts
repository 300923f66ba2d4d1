import type { Observable } from 'rxjs';
import type { Feed } from '../../index.js';
import { marketBatches$, pendingTransactions$ } from '../../testing/index.js';
import type { ServeCommand } from '../arguments/parsed-command.js';
import { usageError } from '../cli-error.js';
import type { CliContext } from '../context.js';
import { openLineSource } from './line-source.js';
import { openRecordingSource } from './recording-source.js';
import { openUpstream } from './upstream.js';

/** The payloads of each feed, their description, and the feed to listen to. */
export interface Payloads {
  readonly sources: Readonly<Record<Feed, Observable<string | Uint8Array>>>;
  readonly feeds: Readonly<Record<Feed, string>>;
  readonly feed: Feed;
}

/**
 * Chooses the payloads of the feeds: a recording, the transactions of a node, the lines of a source, or generated payloads.
 *
 * @param clients - emits when a client of a feed has connected
 * @throws CliError or RecordingError when the options cannot be combined, or a file cannot be read
 */
export const payloadsFor = async (
  options: Options,
  context: Pick<CliContext, 'env' | 'stdin' | 'stderr'>,
  clients: (feed: Feed) => Observable<unknown>,
): Promise<Payloads> => {
  checkOptions(options);
  const { rate, seed = 1, source, feed = 'market', replay, speed = 1, upstream } = options;
  if (upstream !== undefined) return { ...(await openUpstream(upstream, context)), feed: 'raw' };
  if (replay !== undefined) {
    const { payloads, description, feed } = await openRecordingSource({ file: replay, speed, firstClient: clients });
    return {
      sources: { market: payloads('market'), raw: payloads('raw') },
      feeds: { market: description('market'), raw: description('raw') },
      feed,
    };
  }
  const lineSource =
    source === undefined
      ? undefined
      : await openLineSource({ source, rate, stdin: context.stdin, firstClient$: clients(feed) });
  const description = `generated payloads, ${rate ?? 20} a second (seed ${seed})`;
  const generated = { market: marketBatches$({ rate, seed }), raw: pendingTransactions$({ rate, seed }) };
  return {
    sources: { ...generated, ...(lineSource && { [feed]: lineSource.lines$ }) },
    feeds: { market: description, raw: description, ...(lineSource && { [feed]: lineSource.description }) },
    feed,
  };
};

type Options = ServeCommand['options'];

const checkOptions = ({ feed, source, replay, speed, rate, seed, upstream }: Options): void => {
  if (feed !== undefined && source === undefined) throw usageError('--feed is the feed of --source: use both.');
  if (speed !== undefined && replay === undefined) throw usageError('--speed is the speed of --replay: use both.');
  if (upstream !== undefined && [source, replay, rate, seed].some((option) => option !== undefined))
    throw usageError('--upstream cannot be combined with --source, --replay, --rate or --seed.');
  if (replay === undefined) return;
  if (source !== undefined) throw usageError('--replay and --source cannot be combined: use one of them.');
  if (rate !== undefined || seed !== undefined)
    throw usageError('--rate and --seed do not apply to --replay; use --speed.');
};
