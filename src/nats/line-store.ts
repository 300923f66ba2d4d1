// A line in a stream of NATS.
//
// In: messages, with their places. Out: the same for a minute, and which of them the stream has.
// Never: a message that doesn't follow the last one, or a sequence of the stream outside of this file.
import type { ApiError, Consumer, JsMsg, StoredMsg, StreamInfo } from '@nats-io/jetstream';
import { jetstream, JetStreamApiError, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { headers, type MsgHdrs, nanos, type NatsConnection } from '@nats-io/transport-node';
import { randomUUID } from 'node:crypto';
import { firstValueFrom, from, takeUntil, tap, timer, toArray } from 'rxjs';
import {
  againSubject,
  firstWhere,
  keptBy,
  lineLimits,
  type LineRefusal,
  type LineSpec,
  liveSubject,
  StoreAway,
} from '../log/line-store.js';
import { type Page, type Refused, StoredLine } from '../log/stored-line.js';
import type { Head } from '../protocol/place.js';
import { disconnected, isMissing } from './errors.js';

interface LineParts extends LineSpec {
  readonly connection: NatsConnection;
  /** A disconnected client keeps in memory what it's given, without a limit. */
  readonly isConnected: () => boolean;
  readonly prefix: string;
  readonly replicas: number;
}

/** The server's limit of a message includes its headers, which need less than this. */
export const lineHeaderBytes = 256;

const { requestMs, answerMs } = lineLimits;
/** An answer is due for each 64th message, or after so long or so many bytes. It counts for all messages before. */
const [askEvery, askMs] = [64, 250];
/** A consumer reads four times as fast, but has to be created. */
const maxDirect = 64;
const consumerBatch = 256;

interface Newest {
  readonly head: Head | undefined;
  readonly info: StreamInfo;
}

interface Found {
  readonly key: number;
  readonly head: Head;
}

/** Stores a line in the stream `RTF_LINE_<account>`, and a log in `RTF_LOG_<name>`. */
export class NatsLine extends StoredLine<Newest, number> {
  readonly #parts: LineParts;
  readonly #name: string;
  readonly #live: string;
  readonly #again: string;
  readonly #manager: ReturnType<typeof jetstreamManager>;
  /** The sequence of the last message, and its id if it was sent from here. */
  #seq = 0;
  #id: string | undefined;
  #hasIds = false;
  /** How many messages and bytes were sent since an answer was asked for, and when that was. */
  #unasked = askEvery;
  #unaskedBytes = 0;
  #askedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  /** In the stream of that time, the line's last message up to `end` was at `seq`; 0: it had none. */
  #passed: { readonly created: string; readonly end: number; readonly seq: number } | undefined;

  constructor(parts: LineParts) {
    super();
    const { connection, prefix, kind, name } = parts;
    this.#parts = parts;
    this.#name = `RTF_${kind.toUpperCase()}_${prefix.replaceAll('.', '_')}${name}`;
    this.#live = prefix + liveSubject(parts);
    this.#again = prefix + againSubject(parts);
    this.#manager = jetstreamManager(connection, { checkAPI: false, timeout: requestMs });
  }

  protected get isConnected(): boolean {
    return this.#parts.isConnected();
  }

  protected async newest(): Promise<Newest> {
    const info = await this.#info();
    const ready = info === undefined ? await this.#create() : await this.#limit(info);
    return { info: ready, head: await this.#last(ready) };
  }

  protected follow({ info }: Newest): void {
    this.#seq = info.state.last_seq;
    this.#id = undefined;
    this.#hasIds = info.config.num_replicas === 1;
    this.#unasked = askEvery;
  }

  protected store(head: Head, bytes: Uint8Array, isAgain: boolean): Promise<Refused | undefined> | undefined {
    const { connection, maxUnansweredBytes = Infinity } = this.#parts;
    const subject = isAgain ? this.#again : this.#live;
    const options = { headers: this.#next(), timeout: answerMs };
    this.#unasked += 1;
    this.#unaskedBytes += bytes.byteLength;
    clearTimeout(this.#timer);
    const isDue = this.#unasked >= askEvery || this.#unaskedBytes > maxUnansweredBytes;
    if (!isDue && performance.now() - this.#askedAt < askMs) {
      connection.publish(subject, bytes, options);
      // If no message follows that asks.
      this.#timer = setTimeout(() => void this.hear(head, this.#confirm(head)), askMs);
      return undefined;
    }
    [this.#unasked, this.#unaskedBytes, this.#askedAt] = [0, 0, performance.now()];
    return connection.request(subject, bytes, options).then((message) => refusalIn(message.json()));
  }

  /** The stream refuses it, because it never has that sequence. */
  protected publish(bytes: Uint8Array): undefined {
    this.#parts.connection.publish(this.#live, bytes, { headers: after(Number.MAX_SAFE_INTEGER) });
  }

  /** Searches the line that the stream ends with: what's before that is of another one. */
  protected async find(isFound: (head: Head) => boolean): Promise<Found | undefined> {
    const info = await this.#info();
    const last = info && (await this.#last(info));
    if (info === undefined || last === undefined) return undefined;
    const { first_seq: first, last_seq: end } = info.state;
    const { direct } = await this.#manager;
    const next = async (seq: number): Promise<Found | undefined> => {
      const message = await direct.getMessage(this.#name, { seq, next_by_subj: '>' });
      if (message === null) return undefined;
      const head = this.#parts.headOf(message.data);
      return head === undefined ? next(message.seq + 1) : { key: message.seq, head };
    };
    return firstWhere([first, end + 1], next, (head) => head.line === last.line && isFound(head));
  }

  protected async *pages(from: number, signal: AbortSignal): AsyncIterable<Page<number>> {
    const page = (messages: readonly StoredMsg[] | readonly JsMsg[]) => ({
      messages: messages.map(({ data }) => data),
      next: (next = (messages.at(-1)?.seq ?? next - 1) + 1),
    });
    let next = from;
    for (let [count, isEnd] = [1, false]; !isEnd && !signal.aborted; count = Math.min(maxDirect, 2 * count)) {
      if (count === maxDirect) for await (const messages of this.#consumed(next, signal)) yield page(messages);
      const found = await this.#get(next, count);
      isEnd = found.isEnd;
      yield page(found.messages);
    }
  }

  /** Reads many messages, four times as fast. */
  async *#consumed(from: number, signal: AbortSignal): AsyncIterable<readonly JsMsg[]> {
    const { last_seq: end = 0 } = (await this.#info())?.state ?? {};
    const consumer = end - from < maxDirect ? undefined : await this.#consumer(from);
    for (let next = from; consumer && next <= end && !signal.aborted;) {
      // At the end it would wait for more.
      const messages = await fetched(consumer, Math.min(consumerBatch, end - next + 1));
      if (messages.length === 0) return;
      next = (messages.at(-1) as JsMsg).seq + 1;
      yield messages;
    }
  }

  async last(): Promise<Head | undefined> {
    const info = await this.#info();
    return info && this.#last(info);
  }

  async exists(): Promise<boolean> {
    return (await this.#info()) !== undefined;
  }

  protected async bytes(): Promise<number> {
    return (await this.#info())?.state.bytes ?? 0;
  }

  protected headOf(bytes: Uint8Array): Head | undefined {
    return this.#parts.headOf(bytes);
  }

  /** Asks for messages by their sequences, of which some may be gone. */
  async #get(from: number, count: number) {
    const { direct } = await this.#manager;
    const get = (_: unknown, n: number) => direct.getMessage(this.#name, { seq: from + n, next_by_subj: '>' });
    const found = await Promise.all(Array.from({ length: count }, get));
    const end = found.indexOf(null);
    // One that was stored after the answer that there's none has others before it.
    const messages = (end < 0 ? found : found.slice(0, end)) as readonly StoredMsg[];
    const isNext = ({ seq }: StoredMsg, n: number) => n === 0 || seq > (messages[n - 1] as StoredMsg).seq;
    return { messages: messages.filter(isNext), isEnd: end >= 0 };
  }

  /** Asks the leader for a message. Returns `null` if it's gone, and `undefined` if it isn't of a line. */
  async #headAt(seq: number): Promise<Head | null | undefined> {
    const message = await (await this.#manager).streams.getMessage(this.#name, { seq });
    return message === null ? null : this.#parts.headOf(message.data);
  }

  /** Asks the leader; `undefined` if there's no stream. */
  async #info(): Promise<StreamInfo | undefined> {
    if (!this.#parts.isConnected()) throw disconnected();
    const info = await (await this.#manager).streams.info(this.#name).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    // The prefixes `a.` and `a_` lead to one name.
    if (info?.config.subjects.includes(this.#live) === false)
      throw new Error(`The stream ${this.#name} doesn't store the subject ${this.#live}`);
    return info;
  }

  async #create(): Promise<StreamInfo> {
    const { storage, maxAgeMs, maxBytes } = keptBy(this.#parts);
    return (await this.#manager).streams.add({
      ...{ name: this.#name, subjects: [this.#live, this.#again], allow_direct: true },
      ...{ storage: storage === 'file' ? StorageType.File : StorageType.Memory, num_replicas: this.#parts.replicas },
      ...limitsOf({ maxAgeMs, maxBytes }),
      // The server remembers each id for so long. They only link messages, so a short time will do.
      duplicate_window: nanos(Math.min(1_000, Math.round(maxAgeMs))),
    });
  }

  /** Sets the limits that were given. The others are those that an operator has set. */
  async #limit(info: StreamInfo): Promise<StreamInfo> {
    const { maxAgeMs, maxBytes } = this.#parts;
    const given = limitsOf({ maxAgeMs, maxBytes });
    const isSet = Object.entries(given).every(([name, value]) => info.config[name as keyof typeof given] === value);
    return isSet ? info : (await this.#manager).streams.update(this.#name, given);
  }

  /** Returns the head of the last message. Others may have published to the subject after it: that's passed once. */
  async #last({ created, state }: StreamInfo): Promise<Head | undefined> {
    const { first_seq: first, last_seq: end } = state;
    const passed = this.#passed?.created === created ? this.#passed : undefined;
    const before = (seq: number) => (passed && seq <= passed.end ? Math.min(seq, passed.seq) : seq);
    const remember = (seq: number) => (this.#passed = { created, end, seq });
    // A new leader may not have a message yet.
    let isComplete = true;
    for (let seq = before(end); seq >= Math.max(1, first); seq = before(seq - 1)) {
      const head = await this.#headAt(seq);
      if (head && isComplete) remember(seq);
      if (head) return head;
      isComplete &&= head !== null;
    }
    if (isComplete) remember(0);
    return undefined;
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

  async #confirm({ gen, offset }: Head): Promise<undefined> {
    const stored = await this.#headAt(this.#seq);
    if (stored?.gen !== gen || stored.offset !== offset)
      throw new StoreAway(`The stream ${this.#name} lacks a message that it was sent`);
  }

  /** The server deletes it when it hasn't been used for a while. */
  async #consumer(start: number): Promise<Consumer | undefined> {
    const { consumers } = jetstream(this.#parts.connection, { timeout: answerMs });
    // It's only faster. Of a stream with copies, the server may choose one that's away; and it needs a permission.
    return consumers.get(this.#name, { opt_start_seq: start, inactive_threshold: 30_000 }).catch(() => undefined);
  }
}

/** Returns the next messages; none if nothing arrives for a while. */
const fetched = async (consumer: Consumer, count: number): Promise<readonly JsMsg[]> => {
  const messages = await consumer.fetch({ max_messages: count, expires: answerMs });
  // While disconnected, it would wait without a limit.
  const until$ = timer(requestMs).pipe(tap(() => messages.stop()));
  return firstValueFrom(from(messages).pipe(takeUntil(until$), toArray()));
};

const after = (seq: number): MsgHdrs => {
  const expecting = headers();
  expecting.set('Nats-Expected-Last-Sequence', String(seq));
  return expecting;
};

const limitsOf = ({ maxAgeMs, maxBytes }: Pick<LineSpec, 'maxAgeMs' | 'maxBytes'>) => ({
  ...(maxAgeMs !== undefined && { max_age: maxAgeMs === Infinity ? 0 : nanos(Math.round(maxAgeMs)) }),
  ...(maxBytes !== undefined && { max_bytes: maxBytes === Infinity ? -1 : maxBytes }),
});

const refusalIn = ({ error }: { readonly error?: ApiError }): Refused | undefined =>
  error && { refused: refusalOf(error), error: new JetStreamApiError(error) };

const refusalOf = ({ err_code, description }: ApiError): LineRefusal => {
  // Another message is in the place of the expected one: its id is wrong, or its sequence.
  if ([10_070, 10_071, 10_164].includes(err_code)) return 'fenced';
  return /maximum|exceed|insufficient|resource|no space/i.test(description) ? 'full' : 'away';
};
