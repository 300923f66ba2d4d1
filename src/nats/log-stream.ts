// A log in a stream of NATS. Like a segment of a folder, a message has a header line, then the lines of records.
import {
  type JetStreamManager,
  jetstream,
  JetStreamApiCodes,
  JetStreamApiError,
  jetstreamManager,
} from '@nats-io/jetstream';
import {
  ConnectionError,
  type Msg,
  nanos,
  type NatsConnection,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import { setTimeout } from 'node:timers/promises';
import { headerLine, placeOf, readHeader, type SegmentHead } from '../log/lines.js';
import { LogError } from '../log/log-error.js';
import type { Tip } from '../log/segments.js';
import { type Place, startOf } from '../protocol/place.js';

/**
 * The header of a message. `gen`: that of its writer, and a higher one takes the log over. `boot`: the server that took
 * it, because another one may have lost the newest messages.
 */
export interface MessageHead extends SegmentHead {
  /** The id of the writer. */
  readonly run: string;
  /** The place after the message. */
  readonly next: Place;
  /** A record that is too large for one message is in adjacent ones. */
  readonly part: number;
  readonly parts: number;
}

export interface Message {
  readonly seq: number;
  /** `undefined` if something else was published to the subject. */
  readonly header: MessageHead | undefined;
  readonly bytes: Buffer;
}

const timeoutMs = 2_000;
const retryMs = 100;

export class LogStream {
  readonly path: string;
  readonly #connection: NatsConnection;
  readonly #replicas: number;
  readonly #subject: string;
  readonly #manager: Promise<JetStreamManager>;

  constructor(connection: NatsConnection, name: string, replicas: number) {
    this.path = `RTF_LOG_${name}`;
    this.#connection = connection;
    this.#replicas = replicas;
    this.#subject = `rtf.log.${name}`;
    this.#manager = jetstreamManager(connection, { checkAPI: false, timeout: timeoutMs });
  }

  /** The server, or `undefined` while disconnected: the client would then keep everything it sends in memory. */
  get server(): string | undefined {
    return this.#connection.isClosed() ? undefined : this.#connection.info?.server_id;
  }

  /** Repeats a request while no server answers, until the connection is closed, or `isOver`. */
  async persist<T>(request: () => Promise<T>, isOver: () => boolean): Promise<T> {
    for (;;) {
      let problem: unknown = disconnected();
      try {
        if (this.server !== undefined) return await request();
      } catch (error) {
        if (!isAway(error)) throw error;
        problem = error;
      }
      if (this.#connection.isClosed() || isOver()) throw problem;
      await setTimeout(retryMs);
    }
  }

  /** Creates the stream, or sets its limits. */
  async create(maxBytes: number, maxAgeMs: number): Promise<void> {
    const { streams } = await this.#manager;
    const limits = {
      max_bytes: maxBytes === Infinity ? -1 : maxBytes,
      max_age: maxAgeMs === Infinity ? 0 : nanos(maxAgeMs),
      duplicate_window: nanos(Math.min(maxAgeMs, 120_000)),
    };
    if ((await this.lastSeq()) !== undefined) await streams.update(this.path, limits);
    else
      await streams.add({
        name: this.path,
        subjects: [this.#subject],
        allow_direct: true,
        num_replicas: this.#replicas,
        ...limits,
      });
  }

  /** The sequence of the newest message that was ever stored; `undefined` without a stream. */
  async lastSeq(): Promise<number | undefined> {
    try {
      const { state } = await (await this.#manager).streams.info(this.path);
      return state.last_seq;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Asks the leader, whose answer is never out of date. */
  async last(): Promise<Partial<Message>> {
    const seq = await this.lastSeq();
    if (seq === undefined) return {};
    const message = await (await this.#manager).streams.getMessage(this.path, { last_by_subj: this.#subject });
    return message === null ? { seq } : messageIn(message);
  }

  /** The first message at or after a sequence. Any server with the stream may answer. */
  async from(seq: number): Promise<Message | undefined> {
    const { direct } = await this.#manager;
    const message = await direct.getMessage(this.path, { seq, next_by_subj: this.#subject });
    return message === null ? undefined : messageIn(message);
  }

  /** Stores a message directly after another one or fails, so nothing is missing, doubled or out of order. */
  async append(header: MessageHead, body: Buffer, after: number): Promise<number> {
    if (this.server === undefined) throw disconnected();
    const bytes = Buffer.concat([Buffer.from(headerLine(header)), body]);
    const options = { expect: { lastSequence: after, streamName: this.path }, timeout: timeoutMs };
    return (await jetstream(this.#connection).publish(this.#subject, bytes, options)).seq;
  }

  /** How many bytes of records a message can have. */
  roomFor(header: MessageHead): number {
    const { max_payload: limit = 1024 * 1024 } = this.#connection.info ?? {};
    // The client's headers and the numbers of parts count as well.
    return Math.max(1, limit - Buffer.byteLength(headerLine(header)) - 512);
  }

  /** Takes a role, unless a process that has it answers. Returns a function that gives it back. */
  async take(role: string, generation = 0): Promise<(() => void) | undefined> {
    const subject = `${this.#subject}.${role}`;
    // No answer: the role is free, or its holder is cut off and learns that from its next refused message or commit.
    const holder = await this.#ask(subject);
    if (holder !== undefined && Number(holder.string()) >= generation) return undefined;
    const refusals: Error[] = [];
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error) refusals.push(error);
        else message.respond(String(generation));
      },
    });
    // A server that refuses the subscription says so before it answers this. The others wouldn't see who has the role.
    await this.#ask(subject);
    if (refusals.length > 0) throw this.#refused(subject, refusals[0]);
    return () => subscription.unsubscribe();
  }

  async #ask(subject: string): Promise<Msg | undefined> {
    try {
      return await this.#connection.request(subject, '', { timeout: timeoutMs });
    } catch (error) {
      if (isRefused(error)) throw this.#refused(subject, error);
      return undefined;
    }
  }

  #refused(subject: string, cause: unknown): LogError {
    const problem =
      `NATS refuses the subject ${subject}. ` +
      `Give the user permission to publish and to subscribe to ${this.#subject}.>.`;
    return new LogError('log-write-failed', problem, { path: this.path, cause });
  }

  /** Publishes where the log ends. That wakes the readers, and shows them that the writer is alive. */
  tell(tip: Tip): void {
    if (this.server !== undefined) this.#connection.publish(`${this.#subject}.tip`, JSON.stringify(tip));
  }

  listen(receive: (tip: Tip) => void): () => void {
    const subscription = this.#connection.subscribe(`${this.#subject}.tip`, {
      callback: (error, message) => {
        const tip = error ? undefined : tipIn(message.string());
        if (tip !== undefined) receive({ ...tip, writtenAt: Date.now() });
      },
    });
    return () => subscription.unsubscribe();
  }
}

/** A writer that died may have left a part of a record, whose offset is then free. */
export const placeAfter = (last: MessageHead | undefined): Place => {
  if (last === undefined) return startOf('');
  return last.part === last.parts - 1 ? last.next : placeOf(last);
};

const messageIn = ({ seq, data }: { readonly seq: number; readonly data: Uint8Array }): Message => {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return {
    seq,
    bytes,
    header: readHeader(bytes.toString('utf8', 0, bytes.indexOf('\n'))) as MessageHead | undefined,
  };
};

/** The client ends its connection if this throws. */
const tipIn = (text: string): Tip | undefined => {
  try {
    return JSON.parse(text) as Tip;
  } catch {
    // Another program publishes to this subject.
    return undefined;
  }
};

export const disconnected = (): Error => new ConnectionError('NATS is disconnected');

/** Whether the user has no permission. */
const isRefused = (error: unknown): boolean =>
  [error, (error as Error).cause].some((each) => each instanceof PermissionViolationError);

const awayErrors = [TimeoutError, RequestError, ConnectionError];

/** Whether a server may answer the same request later. */
export const isAway = (error: unknown): boolean => {
  if (isRefused(error)) return false;
  if (error instanceof JetStreamApiError) return error.status === 503;
  return [error, (error as Error).cause].some((each) => awayErrors.some((type) => each instanceof type));
};

/** Whether there is no such stream. */
export const isMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;

export const isConflict = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence;
