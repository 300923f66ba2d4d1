import type { Feed } from '../../index.js';
import { usageError } from '../cli-error.js';

/** What a row of `top` shows. */
export type TopSource = FeedSource | StatusSource;

/** A feed of the service. `top` opens a connection. */
export interface FeedSource {
  readonly kind: 'feed';
  readonly name: string;
  readonly feed: Feed;
  /** The file of the API key; `undefined` for the key of `--key-file` or the environment. */
  readonly keyFile: string | undefined;
}

/** The address at which an app shows the status of its feed and its relay as JSON. */
export interface StatusSource {
  readonly kind: 'status';
  readonly name: string;
  readonly url: URL;
}

/**
 * Reads an argument of `top`: `market`, `raw`, `market:FILE`, `raw:FILE`, or an `http:` or `https:` address.
 *
 * @throws CliError for any other word, without the word, which may be a secret
 */
export const topSource = (word: string): TopSource => {
  const [, feed, keyFile] = /^(market|raw)(?::(.+))?$/.exec(word) ?? [];
  if (feed !== undefined) return { kind: 'feed', name: word, feed: feed as Feed, keyFile };
  const url = URL.canParse(word) ? new URL(word) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usageError(
      'A source of top is market, raw, market:FILE, raw:FILE, or the http: or https: address of a status.',
    );
  if (url.username !== '' || url.password !== '')
    throw usageError('An address of top must not contain a password. Use --header-file FILE.');
  return { kind: 'status', name: `${url.host}${url.pathname}`, url };
};

/**
 * Checks that no two feeds use the same key: the service closes the connection of one of them (4001).
 *
 * @throws CliError when two feeds use one key
 */
export const checkKeys = (sources: readonly TopSource[]): void => {
  const files = sources.flatMap((source) => (source.kind === 'feed' ? [source.keyFile] : []));
  if (new Set(files).size < files.length)
    throw usageError(
      'An account has one connection, so each feed needs the key of another account: market:FILE raw:FILE.',
    );
};
