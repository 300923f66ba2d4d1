// A reader of a log on JetStream: it asks for message after message, so a restart of the server takes nothing from it.
import { newline } from '../log/lines.js';
import { LogError, toLogError } from '../log/log-error.js';
import { type LogPosition, type LogRecord, type ReaderSettings, Records } from '../log/records.js';
import type { Tip } from '../log/segments.js';
import type { LogStream, Message, MessageHeader } from './log-stream.js';

const maxAhead = 16;
/** How often a reader asks although no writer says that there is more. */
const pollMs = 1_000;

export class JetStreamReader {
  readonly #stream: LogStream;
  readonly #settings: ReaderSettings;
  readonly #records: Records;
  readonly #stop: () => void;
  /** The next message to ask for; `undefined` before the place to begin is found. */
  #seq: number | undefined;
  /** How many messages are asked for at once. */
  #ahead = 1;
  /** The messages whose lines are not read yet, and the position in the first of them. */
  readonly #messages: Message[] = [];
  #position = 0;
  /** The parts of a large record so far. */
  #parts: Message[] = [];
  #header: MessageHeader | undefined;
  /** Where the writer of the newest message is. The tip of another writer may be old. */
  #tip: Tip | undefined;
  #hasNews = false;
  #askedAt = -Infinity;
  #wake: (() => void) | undefined;
  #isClosed = false;

  constructor(stream: LogStream, settings: ReaderSettings) {
    this.#stream = stream;
    this.#settings = settings;
    this.#records = new Records(settings, Date.now);
    this.#stop = stream.listen((tip) => {
      if (tip.boot === this.#header?.run) this.#tip = tip;
      else this.#hasNews = true;
      this.#wake?.();
    });
  }

  get position(): LogPosition | undefined {
    return this.#records.position;
  }

  readonly tip = (): Tip | undefined => this.#tip;

  async next(max = Infinity): Promise<LogRecord[] | undefined> {
    try {
      while (!this.#isClosed) {
        this.#take(max);
        if (this.#records.length > 0) return this.#records.take();
        if (this.#mayHaveMore() && (await this.#read())) continue;
        this.#records.atEnd(this.tip);
        if (this.#records.length > 0) return this.#records.take();
        if (!this.#settings.follow) return undefined;
        await this.#woken();
      }
      return undefined;
    } catch (cause) {
      if (this.#isClosed) return undefined;
      throw toLogError('read', this.#stream.path, cause);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.#wake?.();
  }

  /** After each message its writer tells where the log ends, so a reader that is there does not ask. */
  #mayHaveMore(): boolean {
    const { offset = 0 } = this.position ?? {};
    const isBehind = this.#tip === undefined || this.#tip.pid === 0 ? this.#ahead > 1 : this.#tip.offset > offset;
    const isDue = Math.abs(Date.now() - this.#askedAt) >= pollMs;
    return isBehind || isDue || this.#hasNews || !this.#settings.follow;
  }

  #woken(): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, pollMs / 4);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  /** Asks for the next messages; `false` if there are none. */
  async #read(): Promise<boolean> {
    return this.#stream.persist(
      async () => {
        this.#hasNews = false;
        const seq = (this.#seq ??= await this.#locate(this.#settings.from));
        if (seq === undefined) return false;
        const asked = Array.from({ length: this.#ahead }, (_, n) => this.#stream.from(seq + n));
        const found = await Promise.all(asked);
        const end = found.indexOf(undefined);
        for (const message of found.slice(0, end < 0 ? found.length : end) as Message[]) this.#receive(message);
        this.#ahead = end < 0 ? Math.min(maxAhead, this.#ahead * 2) : 1;
        return (this.#seq as number) > seq || this.#hasMore(seq);
      },
      () => this.#isClosed,
    );
  }

  /** At the end: whether the server has more, or has lost messages that this reader has received. */
  async #hasMore(seq: number): Promise<boolean> {
    this.#askedAt = Date.now();
    const last = await this.#stream.lastSeq();
    if (last === undefined || last < seq - 1) this.#seq = undefined;
    return last !== undefined && last >= seq;
  }

  #receive(message: Message): void {
    // Where retention has removed messages, several requests find the same one.
    if (message.seq < (this.#seq as number)) return;
    this.#seq = message.seq + 1;
    const { part = 0, parts = 1 } = message.header ?? {};
    const isNext = part === this.#parts.length && this.#parts.at(-1)?.seq === message.seq - 1;
    if (part === 0) this.#parts = [message];
    else if (isNext) this.#parts.push(message);
    if (this.#parts.length < parts || (part > 0 && !isNext)) return;
    const bytes = this.#parts.map((each, n) =>
      n === 0 ? each.bytes : each.bytes.subarray(each.bytes.indexOf(newline) + 1),
    );
    this.#messages.push({ ...message, bytes: parts === 1 ? message.bytes : Buffer.concat(bytes) });
    this.#parts = [];
  }

  /** Takes complete lines. */
  #take(max: number): void {
    const records = this.#records;
    for (let message = this.#messages[0]; message !== undefined && records.length < max; message = this.#messages[0]) {
      const { bytes, seq, header } = message;
      const from = this.#position;
      const to = bytes.indexOf(newline, from);
      const where = { path: `message ${seq} of ${this.#stream.path}`, position: from };
      if (from === 0) this.#begin(header, bytes, to, where);
      else if (to > 0) records.line(bytes, from, to, where);
      this.#position = to + 1;
      if (to >= 0 && to < bytes.length - 1) continue;
      this.#messages.shift();
      this.#position = 0;
    }
  }

  #begin(
    header: MessageHeader | undefined,
    bytes: Buffer,
    to: number,
    where: { path: string; position: number },
  ): void {
    if (header !== undefined && header.run !== this.#header?.run) {
      // Until its writer tells more, a message says that it is there.
      const { log, run: boot, offset: run, next } = header;
      const { offset, at = 0 } = next;
      this.#tip = { ...{ pid: 0, log, boot, run, offset, at }, writtenAt: Date.now(), closed: false };
    }
    this.#header = header ?? this.#header;
    this.#records.header(bytes.subarray(0, to), header?.offset ?? this.position?.offset ?? 0, where);
  }

  /** Finds the last message that begins before a place; `undefined` without a stream. */
  async #locate(from: ReaderSettings['from']): Promise<number | undefined> {
    const { follow } = this.#settings;
    const last = await this.#stream.lastSeq();
    if (last === undefined && !follow) {
      const { path } = this.#stream;
      throw new LogError('log-corrupt', `There is no stream ${path}.`, { path });
    }
    if (last === undefined || last === 0) return last && 1;
    const place = this.position ?? from;
    if (place === 'earliest') return 1;
    let [low, high] = [place === 'latest' ? last : 1, last];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const { seq, header } = (await this.#stream.from(middle)) ?? { seq: Infinity };
      const { offset, at = -Infinity } = header ?? { offset: -1 };
      if (seq <= high && typeof place === 'object' && ('offset' in place ? offset <= place.offset : at < place.time))
        low = seq;
      else high = middle - 1;
    }
    const found = await this.#stream.from(low);
    return found === undefined ? low : found.seq - (found.header?.part ?? 0);
  }
}
