// A line in a stream of NATS.
//
// In: messages, with their places. Out: the same for a minute, and which of them the stream has.
// Never: a message that doesn't follow the last one, or a sequence of the stream outside of this file.
import type { Consumer, JsMsg, StreamInfo } from '@nats-io/jetstream';
import { jetstream, JetStreamApiError, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { headers, type MsgHdrs, nanos, type NatsConnection } from '@nats-io/transport-node';
import { randomUUID } from 'node:crypto';
import { Subject } from 'rxjs';
import { LineAppender } from '../log/line-appender.js';
import type { HeadOf, LineStore, LineRefusal, Stored } from '../log/line-store.js';
import { extentOf, firstWhere, lineLimits, liveSubject, reaches } from '../log/line-store.js';
import type { Head } from '../protocol/place.js';
import { disconnected, isMissing } from './log-stream.js';

interface LineParts {
  readonly connection: NatsConnection;
  /** A disconnected client keeps in memory what it's given, without a limit. */
  readonly isConnected: () => boolean;
  readonly account: string;
  readonly prefix: string;
  readonly replicas: number;
  readonly headOf: HeadOf;
}

/** The server's limit of a message includes its headers, which need less than this. */
export const lineHeaderBytes = 256;

const { requestMs, answerMs } = lineLimits;
/** An answer is due for each 64th message, or after so long. It counts for all messages before. */
const [askEvery, askMs] = [64, 250];
/** A consumer reads four times as fast, but has to be created. */
const maxDirect = 64;
const consumerBatch = 256;

/** Stores a line in the stream `RTF_LINE_<account>`. */
export const natsLine = (parts: LineParts): LineStore => {
  const stream = new LineStream(parts);
  const stored$ = new Subject<Stored>();
  let appender = new NatsAppender(stream, stored$);
  return {
    stored$: stored$.asObservable(),
    end: async () => {
      const info = (await stream.info()) ?? (await stream.create());
      const last = await stream.last(info);
      appender.close();
      appender = new NatsAppender(stream, stored$, info, last);
      return last;
    },
    append: (head, bytes, isAgain = false) => appender.append(head, bytes, isAgain),
    read: async function* (from, signal) {
      const result = await stream.search((head) => reaches(head, from));
      if (result?.found === undefined) return;
      for await (const messages of stream.read(result.found.key, result.state.last_seq, signal))
        for (const bytes of messages) {
          if (signal.aborted) return;
          yield bytes;
        }
    },
    // The stream has times as well, but of the server's clock.
    since: async (at) => (await stream.search((head) => head.at >= at))?.found?.head.offset,
    extent: async () => {
      const result = await stream.search(() => true);
      return result && extentOf(result.found?.head, result.last, result.state.bytes);
    },
  };
};

class LineStream {
  readonly parts: LineParts;
  readonly name: string;
  readonly live: string;
  /** For what subscribers have received already, and only the stream lacks. */
  readonly again: string;
  readonly #manager: ReturnType<typeof jetstreamManager>;

  constructor(parts: LineParts) {
    const { connection, prefix, account } = parts;
    this.parts = parts;
    this.name = `RTF_LINE_${prefix.replaceAll('.', '_')}${account}`;
    this.live = prefix + liveSubject(account);
    this.again = `${prefix}rtf.v2.${account}.again`;
    this.#manager = jetstreamManager(connection, { checkAPI: false, timeout: requestMs });
  }

  /** Asks the leader; `undefined` if there's no stream. One that exists keeps its limits: an operator may set others. */
  async info(): Promise<StreamInfo | undefined> {
    if (!this.parts.isConnected()) throw disconnected();
    const { streams } = await this.#manager;
    const info = await streams.info(this.name).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    // The prefixes `a.` and `a_` lead to one name.
    if (info?.config.subjects.includes(this.live) === false)
      throw new Error(`The stream ${this.name} doesn't store the subject ${this.live}`);
    return info;
  }

  async create(): Promise<StreamInfo> {
    const { name, live, again } = this;
    return (await this.#manager).streams.add({
      ...{ name, subjects: [live, again], storage: StorageType.Memory, num_replicas: this.parts.replicas },
      ...{ max_age: nanos(lineLimits.maxAgeMs), max_bytes: lineLimits.maxBytes, allow_direct: true },
      // The server remembers each id for so long. They only link messages, so a short time will do.
      duplicate_window: nanos(1_000),
    });
  }

  /** Asks the leader for a message. Returns `undefined` if it's gone, or not of a line. */
  async headAt(seq: number): Promise<Head | undefined> {
    const message = await (await this.#manager).streams.getMessage(this.name, { seq });
    return message === null ? undefined : this.parts.headOf(message.data);
  }

  /** Returns the head of the last message. Others may have published to the subject after it. */
  async last({ state }: StreamInfo): Promise<Head | undefined> {
    for (let seq = state.last_seq; seq > 0 && seq >= state.first_seq; seq -= 1) {
      const head = await this.headAt(seq);
      if (head !== undefined) return head;
    }
    return undefined;
  }

  /** Finds a message of the line that the stream ends with: what's before that is of another one. */
  async search(isFound: (head: Head) => boolean) {
    const info = await this.info();
    const last = info && (await this.last(info));
    if (info === undefined || last === undefined) return undefined;
    const { state } = info;
    const { direct } = await this.#manager;
    const next = async (seq: number): Promise<{ readonly key: number; readonly head: Head } | undefined> => {
      const message = await direct.getMessage(this.name, { seq, next_by_subj: '>' });
      if (message === null) return undefined;
      const head = this.parts.headOf(message.data);
      return head === undefined ? next(message.seq + 1) : { key: message.seq, head };
    };
    const isOfLine = (head: Head): boolean => head.line === last.line && isFound(head);
    const first = await next(state.first_seq);
    if (first && isOfLine(first.head)) return { found: first, last, state };
    return { found: await firstWhere([state.first_seq, state.last_seq + 1], next, isOfLine), last, state };
  }

  async *read(start: number, end: number, signal: AbortSignal): AsyncIterable<readonly Uint8Array[]> {
    const { direct } = await this.#manager;
    let consumer = end - start < maxDirect ? undefined : await this.#consumer(start);
    for (let next = start; next <= end && !signal.aborted;) {
      const count = Math.min(consumer ? consumerBatch : maxDirect, end - next + 1);
      const consumed = consumer && (await fetched(consumer, count, signal));
      if (consumed?.length === 0) {
        consumer = undefined;
        continue;
      }
      const get = (_: unknown, n: number) => direct.getMessage(this.name, { seq: next + n });
      const messages = consumed ?? (await Promise.all(Array.from({ length: count }, get)));
      next = (consumed?.at(-1)?.seq ?? next + count - 1) + 1;
      yield messages.flatMap((message) => message?.data ?? []);
    }
  }

  /** The server deletes it when it hasn't been used for a while. */
  async #consumer(start: number): Promise<Consumer | undefined> {
    const { consumers } = jetstream(this.parts.connection, { timeout: answerMs });
    // It's only faster. Of a stream with copies, the server may choose one that's away; and it needs a permission.
    return consumers.get(this.name, { opt_start_seq: start, inactive_threshold: 30_000 }).catch(() => undefined);
  }
}

/** Returns the next messages; none if nothing arrives for a while. */
const fetched = async (consumer: Consumer, count: number, signal: AbortSignal): Promise<readonly JsMsg[]> => {
  const messages = await consumer.fetch({ max_messages: count, expires: answerMs });
  // While disconnected, it would wait without a limit.
  const stop = AbortSignal.any([signal, AbortSignal.timeout(requestMs)]);
  stop.onabort = () => messages.stop();
  if (stop.aborted) messages.stop();
  const batch: JsMsg[] = [];
  for await (const message of messages) batch.push(message);
  stop.onabort = null;
  return batch;
};

class NatsAppender extends LineAppender {
  readonly #stream: LineStream;
  /** The sequence of the last message, and its id if this appender has sent it. */
  #seq: number;
  #id: string | undefined;
  readonly #hasIds: boolean;
  /** How many messages were sent since an answer was asked for, and when that was. */
  #unasked = askEvery;
  #askedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: LineStream, stored$: Subject<Stored>, info?: StreamInfo, last?: Head) {
    super(last, stored$);
    this.#stream = stream;
    this.#seq = info?.state.last_seq ?? 0;
    this.#hasIds = info?.config.num_replicas === 1;
  }

  protected get isConnected(): boolean {
    return this.#stream.parts.isConnected();
  }

  protected store(head: Head, bytes: Uint8Array, isAgain: boolean): void {
    const { live, again, parts } = this.#stream;
    const subject = isAgain ? again : live;
    const options = { headers: this.#next(), timeout: answerMs };
    this.#unasked += 1;
    clearTimeout(this.#timer);
    if (this.#unasked < askEvery && performance.now() - this.#askedAt < askMs) {
      parts.connection.publish(subject, bytes, options);
      // If no message follows that asks.
      this.#timer = setTimeout(() => this.#heard(head, this.#confirm(head)), askMs);
      return;
    }
    [this.#unasked, this.#askedAt] = [0, performance.now()];
    const request = parts.connection.request(subject, bytes, options);
    const answer = request.then((message) => message.json<Answer>());
    this.#heard(head, answer);
  }

  /** The stream refuses it, because it never has that sequence. */
  protected publish(bytes: Uint8Array): void {
    const { live, parts } = this.#stream;
    parts.connection.publish(live, bytes, { headers: after(Number.MAX_SAFE_INTEGER) });
  }

  /**
   * Only sequences would let in a replaced owner that sends many messages at once: the stream refuses the first ones,
   * but takes the one that expects the sequence at which the new owner happens to be. Nobody else's message has the id.
   * The copies of a stream may not agree about the last id, so they only get sequences, and readers drop such messages.
   */
  #next(): MsgHdrs {
    const next = after(this.#seq);
    this.#seq += 1;
    if (!this.#hasIds) return next;
    if (this.#id !== undefined) next.set('Nats-Expected-Last-Msg-Id', this.#id);
    this.#id = randomUUID();
    next.set('Nats-Msg-Id', this.#id);
    return next;
  }

  async #confirm({ gen, offset }: Head): Promise<Answer> {
    const stored = await this.#stream.headAt(this.#seq);
    if (stored?.gen === gen && stored.offset === offset) return {};
    throw new Error(`The stream ${this.#stream.name} lacks a message that it was sent`);
  }

  #heard(head: Head, answer: Promise<Answer>): void {
    answer
      .then(({ error }) => (error ? this.refuse(refusalOf(error), new JetStreamApiError(error)) : this.stored(head)))
      .catch((error: unknown) => this.refuse('away', error));
  }
}

const after = (seq: number): MsgHdrs => {
  const expecting = headers();
  expecting.set('Nats-Expected-Last-Sequence', String(seq));
  return expecting;
};

interface Answer {
  readonly error?: ConstructorParameters<typeof JetStreamApiError>[0];
}

const refusalOf = ({ err_code, description }: NonNullable<Answer['error']>): LineRefusal => {
  // Another message is in the place of the expected one: its id is wrong, or its sequence.
  if ([10_070, 10_071, 10_164].includes(err_code)) return 'fenced';
  return /maximum|exceed|insufficient|resource|no space/i.test(description) ? 'full' : 'away';
};
