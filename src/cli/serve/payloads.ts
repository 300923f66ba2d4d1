import type { Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import type { Feed } from '../../index.js';
import { marketBatches$, pendingTransactions$ } from '../../testing/index.js';
import type { ServeCommand } from '../arguments/parse.js';
import { usageError } from '../cli-error.js';
import { openReplay } from './recording.js';
import { openSource } from './source.js';

/** What each feed sends, what to say of it, and the feed to listen to. */
export interface Payloads {
  readonly sources: Readonly<Record<Feed, Observable<string | Uint8Array>>>;
  readonly feeds: Readonly<Record<Feed, string>>;
  readonly feed: Feed;
}

/**
 * Chooses what the feeds send: a recording, the lines of a source, or made-up payloads.
 *
 * @param clients - emits when a client of a feed has connected
 * @throws CliError or RecordingError when the options do not go together, or a file cannot be read
 */
export const payloadsFor = async (
  options: Options,
  stdin: Readable,
  clients: (feed: Feed) => Observable<unknown>,
): Promise<Payloads> => {
  checkOptions(options);
  const { rate, seed = 1, source, feed = 'market', replay, speed = 1 } = options;
  if (replay !== undefined) {
    const { payloads, description, feed } = await openReplay({ file: replay, speed, firstClient: clients });
    return {
      sources: { market: payloads('market'), raw: payloads('raw') },
      feeds: { market: description('market'), raw: description('raw') },
      feed,
    };
  }
  const given =
    source === undefined ? undefined : await openSource({ source, rate, stdin, firstClient$: clients(feed) });
  const madeUp = `made-up payloads, ${rate ?? 20} a second (seed ${seed})`;
  const made = { market: marketBatches$({ rate, seed }), raw: pendingTransactions$({ rate, seed }) };
  return {
    sources: { ...made, ...(given && { [feed]: given.lines$ }) },
    feeds: { market: madeUp, raw: madeUp, ...(given && { [feed]: given.description }) },
    feed,
  };
};

type Options = ServeCommand['options'];

const checkOptions = ({ feed, source, replay, speed, rate, seed }: Options): void => {
  if (feed !== undefined && source === undefined) throw usageError('--feed says where --source goes: give both.');
  if (speed !== undefined && replay === undefined) throw usageError('--speed is that of --replay: give both.');
  if (replay === undefined) return;
  if (source !== undefined) throw usageError('--replay and --source both say what to send: give one.');
  if (rate !== undefined || seed !== undefined)
    throw usageError('--rate and --seed are for made-up payloads; --replay has --speed.');
};
