// A reader of a log on JetStream. It asks for one message at a time, so it loses nothing when the server restarts.
//
// In: messages with lines, and what the writer says about the end of the log. Out: the lines.
// Never: a skipped message, even if the server has lost some and reused their sequences.
import { Lines } from '../log/lines.js';
import { LogError } from '../log/log-error.js';
import { RecordReader } from '../log/record-reader.js';
import { damageAt, type ReaderSettings } from '../log/records.js';
import type { Tip } from '../log/segments.js';
import type { Place } from '../protocol/place.js';
import { type LogStream, type Message, type MessageHead, placeAfter } from './log-stream.js';

const missingAdvice =
  'Check the name and the server. The first `append` creates the stream; to wait for it, read with `follow: true`.';

const maxAhead = 16;
/** How often a reader asks even if no writer says that there's more. */
const pollMs = 1_000;

export class JetStreamReader extends RecordReader {
  readonly #stream: LogStream;
  readonly #stop: () => void;
  /** The next message to ask for; `undefined` before the place to begin is found. */
  #seq: number | undefined;
  /** How many messages to request at once. */
  #ahead = 1;
  #askedAt = -Infinity;
  /** The header of the newest message. */
  #newest: MessageHead | undefined;
  /** The end of the log by that message's writer. What another writer says may be old. */
  #tip: Tip | undefined;
  /** Whether another writer has said something. */
  #hasNews = false;
  #end: Pick<Tip, 'offset' | 'at'> | undefined;
  /** The parts of a large record so far. */
  #parts: Message[] = [];
  /** The messages whose lines are still to be read. */
  readonly #messages: { readonly seq: number; readonly header: MessageHead; readonly lines: Lines }[] = [];
  #wake: (() => void) | undefined;

  constructor(stream: LogStream, settings: ReaderSettings) {
    super(stream.path, settings, Date.now);
    this.#stream = stream;
    this.#stop = stream.listen((tip) => {
      if (tip.boot === this.#newest?.run) this.#tip = tip;
      else this.#hasNews = true;
      this.#heard(tip);
      this.#wake?.();
    });
  }

  /** The end of the log, as far as this reader knows. */
  get end(): Pick<Tip, 'offset' | 'at'> | undefined {
    return this.#end;
  }

  override close(): void {
    super.close();
    this.#stop();
    this.#wake?.();
  }

  protected tip(): Tip | undefined {
    return this.#tip;
  }

  /** The writer publishes where the log ends after each message, so a reader at the end has nothing to request. */
  #mayHaveMore(): boolean {
    const { offset = 0 } = this.position ?? {};
    const isBehind = this.#tip === undefined || this.#tip.pid === 0 ? this.#ahead > 1 : this.#tip.offset > offset;
    const isDue = Math.abs(Date.now() - this.#askedAt) >= pollMs;
    return isBehind || isDue || this.#hasNews || !this.settings.follow;
  }

  #heard({ offset, at }: Pick<Place, 'offset' | 'at'>): void {
    if (offset >= (this.#end?.offset ?? 0)) this.#end = { offset, at };
  }

  protected woken(): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, pollMs / 4);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }

  /** Asks for the next messages, unless there are certainly none. */
  protected async read(): Promise<boolean> {
    const read = async (): Promise<boolean> => {
      this.#hasNews = false;
      const seq = (this.#seq ??= await this.#locate(this.settings.from));
      if (seq === undefined) return false;
      const asked = Array.from({ length: this.#ahead }, (_, n) => this.#stream.from(seq + n));
      const found = await Promise.all(asked);
      const end = found.indexOf(undefined);
      this.#ahead = end < 0 ? Math.min(maxAhead, this.#ahead * 2) : 1;
      // A later one was stored after the answer that there is none.
      for (const message of end < 0 ? found : found.slice(0, end)) this.#receive(message as Message);
      return this.#seq !== seq || this.#hasMore(seq);
    };
    return this.#mayHaveMore() && this.#stream.persist(read, () => this.isClosed);
  }

  /** At the end: checks whether the server has more, or has lost messages that this reader has read. */
  async #hasMore(seq: number): Promise<boolean> {
    this.#askedAt = Date.now();
    const { seq: last = 0, header, bytes } = await this.#stream.last();
    if (last < seq - 1 || (last === seq - 1 && header?.run !== this.#newest?.run)) this.#searchAgain();
    // Retention may have removed all messages.
    return bytes !== undefined && last >= seq;
  }

  #searchAgain(): void {
    this.#seq = this.#newest = undefined;
    this.#hasNews = true;
  }

  #receive(message: Message): void {
    const { seq, header } = message;
    // Where retention has removed messages, several requests find the same one.
    if (this.#seq === undefined || seq < this.#seq) return;
    if (header === undefined) {
      // Another program has published to the subject: no record is missing.
      if (this.settings.onDamage === 'error') throw damageAt(whereIn(this.#stream, seq, 0));
      this.#seq = seq + 1;
      return;
    }
    const before = this.#newest;
    const isOther = before !== undefined && header.run !== before.run;
    // The beginning of this writer is in the place of messages that the server has lost.
    if (isOther && header.after === undefined && header.offset !== placeAfter(before).offset)
      return this.#searchAgain();
    this.#seq = seq + 1;
    this.#told(header);
    const { part, parts } = header;
    const isNext = part > 0 && part === this.#parts.length && this.#parts.at(-1)?.seq === seq - 1;
    this.#parts = isNext ? [...this.#parts, message] : part === 0 ? [message] : [];
    if (this.#parts.length < parts) return;
    const bytes = this.#parts.map((each, n) => each.bytes.subarray(n === 0 ? 0 : each.bytes.indexOf('\n') + 1));
    this.#messages.push({ seq, header, lines: new Lines(Buffer.concat(bytes)) });
  }

  #told(header: MessageHead): void {
    const { line, run: boot, offset: run, next } = header;
    const { offset, at } = next;
    // Until its writer says more, the message itself shows that it's alive.
    if (boot !== this.#newest?.run)
      this.#tip = { pid: 0, line, boot, run, offset, at, writtenAt: Date.now(), closed: false };
    this.#newest = header;
  }

  protected take(max: number): void {
    const records = this.records;
    for (let message = this.#messages[0]; message !== undefined && records.length < max; message = this.#messages[0]) {
      const { lines, seq, header } = message;
      const where = whereIn(this.#stream, seq, lines.position);
      lines.next();
      if (where.position > 0) records.line(lines.line, where);
      else records.header(lines.line, header.offset, where);
      if (lines.position === lines.end) this.#messages.shift();
    }
  }

  /** Finds the last message that begins before a place; `undefined` without a stream. */
  async #locate(from: ReaderSettings['from']): Promise<number | undefined> {
    const { path } = this.#stream;
    const { seq: last, header: newest } = await this.#stream.last();
    if (newest !== undefined) this.#heard(newest.next);
    if (last === undefined && !this.settings.follow)
      throw new LogError('log-corrupt', `There is no stream ${path}.`, { path, advice: missingAdvice });
    const place = this.position ?? from;
    if (last === undefined) return undefined;
    if (place === 'earliest' || last === 0) return 1;
    // Its offsets are those of another log.
    if (typeof place === 'object' && 'line' in place && place.line && newest && place.line !== newest.line) return 1;
    let [low, high] = [place === 'latest' ? last : 1, last];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const { seq, header } = (await this.#stream.from(middle)) ?? { seq: Infinity };
      const { offset = -1, at = -Infinity } = header ?? {};
      const isBefore = typeof place === 'object' && ('offset' in place ? offset <= place.offset : at < place.time);
      if (isBefore && seq <= high) low = seq;
      else high = middle - 1;
    }
    const found = await this.#stream.from(low);
    return found === undefined ? low : found.seq - (found.header?.part ?? 0);
  }
}

const whereIn = ({ path }: LogStream, seq: number, position: number) => ({
  path: `message ${seq} of ${path}`,
  position,
});
