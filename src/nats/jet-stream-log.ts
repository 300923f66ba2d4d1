import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Observable } from 'rxjs';
import { randomUUID } from 'node:crypto';
import {
  appended,
  appendDefaults as folderDefaults,
  type AppendOptions,
  appendRules as folderRules,
} from '../log/append.js';
import type { Cursor } from '../log/consume.js';
import { type FeedLog, readingOf } from '../log/feed-log.js';
import { LogError } from '../log/log-error.js';
import { placeOf } from '../log/lines.js';
import type { Place } from '../protocol/place.js';
import { aName, checkRequired, type Rule, validated } from '../protocol/validate.js';
import { JetStreamReader } from './jet-stream-reader.js';
import { JetStreamWriter } from './jet-stream-writer.js';
import { isConflict, LogStream } from './log-stream.js';
import { aReplicaCount, checkConnection } from './nats-engine.js';

/** The options of {@link jetStreamLog}. */
export interface JetStreamLogOptions {
  /** The name of the log: letters, digits, `-` and `_`. Its stream is `RTF_LOG_<name>`. */
  readonly name: string;
  /** How many NATS servers store the log and its cursors: 1, 3 or 5. @defaultValue 1 */
  readonly replicas?: number | undefined;
}

/** The options of {@link JetStreamLog.append}. */
export interface JetStreamAppendOptions extends Pick<
  AppendOptions,
  'maxBytes' | 'maxAgeMs' | 'maxWaitingBytes' | 'onError'
> {
  /**
   * The generation of the owner, for example `cluster.status.generation`. A writer of a higher generation takes over
   * the log, and one of a lower generation ends with the error `log-fenced`.
   *
   * @defaultValue that of the log: the first writer keeps the log until it ends or stops answering
   */
  readonly generation?: number | undefined;
}

/** A log on JetStream: {@link jetStreamLog}. */
export interface JetStreamLog extends FeedLog {
  /**
   * Writes the frames and events of a feed to the log, and passes everything on at once, unchanged. When the source
   * completes, it waits until NATS has confirmed all records.
   *
   * Errors with a `LogError` if another writer has the log (`log-in-use`) or has taken it over (`log-fenced`), or if
   * NATS refuses records or stays away until `maxWaitingBytes` are waiting (`log-write-failed`).
   */
  append(options?: JetStreamAppendOptions): <E>(source: Observable<E>) => Observable<E>;
}

/**
 * Opens a log in a stream of NATS JetStream. It works like `feedLog`, but with readers and writers on several machines.
 *
 * The server stores each record once, in order and without a hole, whatever happens to it, to the network and to the
 * writers. Cursors are in the key-value bucket `rtf-cursors`. Set up the connection as for {@link natsEngine}. The log
 * doesn't close it.
 *
 * @param connection - an open connection of `@nats-io/transport-node`
 * @param options - see {@link JetStreamLogOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { connect } from '@nats-io/transport-node';
 * import { tradeFeedEvents$ } from 'rx-trade-feed';
 * import { jetStreamLog } from 'rx-trade-feed/nats';
 *
 * const connection = await connect({
 *   servers: '127.0.0.1:4222',
 *   maxReconnectAttempts: -1,
 * });
 * const log = jetStreamLog(connection, { name: 'market' });
 *
 * tradeFeedEvents$('market')
 *   .pipe(log.append({ maxAgeMs: 7 * 86_400_000 }))
 *   .subscribe();
 * ```
 */
export const jetStreamLog = (connection: NatsConnection, options: JetStreamLogOptions): JetStreamLog => {
  checkConnection(connection);
  const { name, replicas = 1 } = validated(options, { name: aName, replicas: aReplicaCount });
  checkRequired({ name }, { name: aName });
  const stream = new LogStream(connection, name, replicas);
  const cursors = new Cursors(stream, name, () =>
    new Kvm(connection).create(bucketName, { history: 1, replicas, allow_direct: false }),
  );
  return {
    append: (append = {}) => appendTo(stream, { ...appendDefaults, ...validated(append, appendRules) }),
    ...readingOf({
      path: stream.path,
      now: Date.now,
      openReader: (settings) => new JetStreamReader(stream, settings),
      openCursor: (consumer) => cursors.open(consumer),
      newest: (reader) => (reader as JetStreamReader).end,
    }),
    committed: (consumer) => cursors.committed(consumer),
  };
};

const appendTo =
  (stream: LogStream, { onError, ...settings }: typeof appendDefaults) =>
  <E>(source: Observable<E>): Observable<E> =>
    appended(source, stream.path, onError, (fail) => new JetStreamWriter(stream, settings, fail));

/** The cursors of consumers: one key of a bucket each, which only its newest process can change. */
class Cursors {
  readonly #stream: LogStream;
  readonly #log: string;
  readonly #openBucket: () => Promise<KV>;

  constructor(stream: LogStream, log: string, openBucket: () => Promise<KV>) {
    this.#stream = stream;
    this.#log = log;
    this.#openBucket = openBucket;
  }

  async committed(consumer: string): Promise<Place | undefined> {
    return (await this.#read(await this.#openBucket(), consumer)).position;
  }

  async open(consumer: string): Promise<Cursor> {
    const release = await this.#stream.take(`consumer.${consumer}`);
    if (release === undefined) throw this.#inUse(consumer);
    let isClosed = false;
    const persist = <T>(request: () => Promise<T>): Promise<T> => this.#stream.persist(request, () => isClosed);
    try {
      const bucket = await persist(this.#openBucket);
      const owner = randomUUID();
      const { position, revision: found } = await persist(() => this.#read(bucket, consumer));
      let revision = found;
      const set = async (next: Place | undefined): Promise<void> => {
        const text = JSON.stringify({ ...next, owner });
        try {
          revision = await persist(() => bucket.put(this.#key(consumer), text, { previousSeq: revision }));
        } catch (error) {
          if (!isConflict(error)) throw error;
          const stored = await persist(() => this.#read(bucket, consumer));
          // Only the confirmation was lost.
          if (stored.text !== text) throw this.#inUse(consumer);
          ({ revision } = stored);
        }
      };
      // From now on, a suspended process that had this name before can't commit.
      await set(position);
      let committing: Promise<void> = Promise.resolve();
      return {
        position,
        commit: (next) => (committing = committing.then(() => set(next))),
        close: () => {
          isClosed = true;
          release();
        },
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #read(bucket: KV, consumer: string): Promise<StoredCursor> {
    const entry = await bucket.get(this.#key(consumer));
    const revision = entry?.revision ?? 0;
    if (entry?.operation !== 'PUT') return { position: undefined, revision, text: undefined };
    const text = entry.string();
    try {
      const position = JSON.parse(text) as Partial<Place>;
      return { position: hasOffset(position) ? placeOf(position) : undefined, revision, text };
    } catch (cause) {
      // Never `earliest`: the consumer would do all its work again.
      const path = `${bucketName}/${this.#key(consumer)}`;
      const message = `The cursor ${path} can't be read. Correct it, or remove it to begin again.`;
      throw new LogError('log-corrupt', message, { path, cause });
    }
  }

  readonly #key = (consumer: string): string => `${this.#log}.${consumer}`;

  #inUse(consumer: string): LogError {
    const { path } = this.#stream;
    return new LogError('consumer-in-use', `The consumer ${consumer} of the log ${path} runs already.`, { path });
  }
}

interface StoredCursor {
  readonly position: Place | undefined;
  readonly revision: number;
  readonly text: string | undefined;
}

const hasOffset = (position: Partial<Place>): position is Place => 'offset' in position;

const bucketName = 'rtf-cursors';

const { maxBytes, maxAgeMs, maxWaitingBytes, onError } = folderDefaults;
const noGeneration: { readonly generation?: number } = {};
const appendDefaults = { maxBytes, maxAgeMs, maxWaitingBytes, onError, ...noGeneration };

const appendRules: Readonly<Record<keyof JetStreamAppendOptions, Rule>> = {
  maxBytes: folderRules.maxBytes,
  maxWaitingBytes: folderRules.maxWaitingBytes,
  onError: folderRules.onError,
  generation: folderRules.generation,
  maxAgeMs: { allowed: 'a number of ms, 100 or more, or Infinity', is: (v) => typeof v === 'number' && v >= 100 },
};
