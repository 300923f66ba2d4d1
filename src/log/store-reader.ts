// The reader of a log in a store.
//
// In: the messages of the store, and what the writer says live. Out: the lines of records, and where the log ends.
// Never: a record that only was on its way to the store, or a search where the next message follows.
import type { Subscription } from 'rxjs';
import { setTimeout as delay } from 'node:timers/promises';
import { between } from '../protocol/place.js';
import { Lines } from './lines.js';
import { type LineStore, liveSubject } from './line-store.js';
import { LogError } from './log-error.js';
import { bodyOf, type LogHead, logHeadOf } from './log-message.js';
import { RecordReader } from './record-reader.js';
import { damageAt, type ReaderSettings } from './records.js';
import type { Tip } from './segments.js';
import { awayMs, refusedBy, type StoredLog } from './stored-log.js';

/** How often a reader asks for the end even if no writer says that there's more, in ms. */
const pollMs = 1_000;
/** The first and the longest wait for a message that was announced, in ms. */
const [firstWaitMs, maxWaitMs] = [4, 250];

/** What a writer has said last, and when. */
interface Heard {
  readonly head: LogHead;
  readonly at: number;
}

export class StoreReader extends RecordReader {
  readonly #log: StoredLog;
  readonly #line: LineStore;
  readonly #closed = new AbortController();
  readonly #listening: Subscription;
  /** The messages that are being read. */
  #reading: AsyncIterator<Uint8Array> | undefined;
  /** Where to read on: at an offset, or after the last record (`next`). */
  #from: number | 'next' | undefined;
  /** From where the store was searched last. */
  #searched: number | undefined;
  #heard: Heard | undefined;
  #askedAt = -Infinity;
  #awaySince: number | undefined;
  #waitMs = firstWaitMs;
  #failure: { readonly error: unknown } | undefined;
  /** The parts of a large record so far. */
  #parts: Buffer[] = [];
  /** The lines that are still to be read. */
  readonly #waiting: { readonly lines: Lines; readonly path: string }[] = [];
  #wake: (() => void) | undefined;

  constructor(log: StoredLog, settings: ReaderSettings) {
    super(log.path, settings, Date.now);
    this.#log = log;
    this.#line = log.engine.line(log.spec);
    const failed = (error: unknown): void => {
      this.#failure ??= { error };
      this.#wake?.();
    };
    this.#listening = log.engine.subscribe(liveSubject(log.spec)).subscribe({
      next: (bytes) => this.#hear(logHeadOf(bytes), Date.now()),
      error: failed,
    });
    const closed = () => failed(new Error('its connection was closed'));
    this.#listening.add(log.engine.connected$.subscribe({ error: failed, complete: closed }));
  }

  /** The end of the log, as far as this reader knows. */
  get end(): Pick<Tip, 'offset' | 'at'> | undefined {
    return this.#heard?.head.next;
  }

  override close(): void {
    if (this.isClosed) return;
    super.close();
    this.#closed.abort();
    this.#listening.unsubscribe();
    this.#wake?.();
  }

  protected tip(): Tip | undefined {
    if (this.#heard === undefined) return undefined;
    const { head, at: writtenAt } = this.#heard;
    const { line, began: run, writer: boot, closed = false, next, reached = next.at } = head;
    return { pid: 0, line, boot, run, offset: next.offset, at: reached, writtenAt, closed };
  }

  protected woken(): Promise<void> {
    const ms = this.#isBehind() ? this.#waitMs : maxWaitMs;
    this.#waitMs = Math.min(2 * this.#waitMs, maxWaitMs);
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        done();
      };
      if (this.#failure !== undefined) this.#wake();
    });
  }

  protected async read(): Promise<boolean> {
    if (this.#failure !== undefined) throw refusedBy(this.#log, 'read', this.#failure.error);
    try {
      const hasRead = await this.#read();
      this.#awaySince = undefined;
      return hasRead;
    } catch (error) {
      this.#reading = undefined;
      this.#from = this.position?.offset;
      if (!this.#log.isAway(error)) throw refusedBy(this.#log, 'read', error);
      this.#awaySince ??= performance.now();
      // A reader that follows emits `log-writer-gone`, because it hears nothing.
      if (this.settings.follow) return false;
      if (performance.now() - this.#awaySince > awayMs) throw refusedBy(this.#log, 'read', error);
      await delay(maxWaitMs);
      return true;
    }
  }

  async #read(): Promise<boolean> {
    this.#reading ??= await this.#begin();
    const reading = this.#reading;
    if (reading === undefined || this.isClosed) return false;
    const next: IteratorResult<Uint8Array, undefined> = await reading.next();
    // It may have been closed meanwhile.
    if (this.#closed.signal.aborted) return false;
    if (next.value !== undefined) {
      this.#waitMs = firstWaitMs;
      this.#receive(next.value);
      return true;
    }
    this.#reading = undefined;
    this.#from = 'next';
    return false;
  }

  /** Begins to read, unless there's certainly nothing more. */
  async #begin(): Promise<AsyncIterator<Uint8Array> | undefined> {
    const { position } = this;
    if (position === undefined) {
      const from = typeof this.#from === 'number' ? this.#from : await this.#locate();
      return from === undefined ? undefined : this.#readFrom(from);
    }
    if (typeof this.#from === 'number') return this.#readFrom(this.#from);
    if (Math.abs(performance.now() - this.#askedAt) >= pollMs) {
      this.#askedAt = performance.now();
      const last = (await this.#line.last()) as LogHead | undefined;
      const answer = last && between(position, last);
      if (answer?.type === 'other') return this.#readFrom(0);
      if (answer?.type === 'hole') return this.#readFrom(position.offset);
    }
    return this.#isBehind() ? this.#readFrom(position.offset, true) : undefined;
  }

  #readFrom(from: number, isNext = false): AsyncIterator<Uint8Array> {
    this.#from = undefined;
    if (!isNext) this.#searched = from;
    const messages = this.#line.read(from, this.#closed.signal, isNext)[Symbol.asyncIterator]();
    return messages;
  }

  /** Returns the offset to begin with; `undefined` if there's no log yet. */
  async #locate(): Promise<number | undefined> {
    const { from, follow } = this.settings;
    const extent = await this.#line.extent();
    if (extent === undefined) {
      if (follow || (await this.#line.exists())) return undefined;
      throw new LogError('log-missing', `There is no log ${this.path}.`, { path: this.path, advice: missingAdvice });
    }
    // It shows where the log ends, and with which status.
    const last = Math.max(extent.from, extent.to - 1);
    if (from === 'earliest') return 0;
    if (from === 'latest') return last;
    if ('offset' in from) return Math.min(from.offset, last);
    // The message before may end with records of that time.
    return Math.max(0, ((await this.#line.since(from.time)) ?? last + 1) - 1);
  }

  /** Whether a writer has said that there's more. */
  #isBehind(): boolean {
    const { position } = this;
    if (position === undefined || this.#heard === undefined) return this.#heard !== undefined;
    const { line, gen, next } = this.#heard.head;
    return line !== position.line || gen > position.gen || (gen === position.gen && next.offset > position.offset);
  }

  #hear(head: LogHead | undefined, at: number): void {
    // A writer that was replaced may still say something.
    if (head === undefined || (this.#heard?.head.line === head.line && this.#heard.head.gen > head.gen)) return;
    this.#heard = { head, at };
    this.#wake?.();
  }

  #receive(bytes: Uint8Array): void {
    const head = logHeadOf(bytes);
    if (head === undefined) {
      // Another program has published to the subject: no record is missing.
      if (this.settings.onDamage === 'error') throw damageAt({ path: `a message of ${this.path}`, position: 0 });
      return;
    }
    if (!this.#isExpected(head)) return;
    // Until its writer says more, the message itself shows that it's alive.
    const { gen = -1, next = head.next } = this.#heard?.head ?? {};
    if (gen < head.gen || (gen === head.gen && next.offset < head.next.offset)) this.#heard = { head, at: Date.now() };
    const { part, parts } = head;
    this.#parts = part === 0 ? [bodyOf(bytes)] : part === this.#parts.length ? [...this.#parts, bodyOf(bytes)] : [];
    if (part === 0 && !this.records.message(head)) this.#parts = [];
    if (this.#parts.length === parts) {
      const path = `the message of ${this.path} at the offset ${head.offset}`;
      this.#waiting.push({ lines: new Lines(Buffer.concat(this.#parts)), path });
    }
  }

  /** Whether a message is the next one, or after records that are certainly missing. Otherwise it's read again. */
  #isExpected(head: LogHead): boolean {
    const answer = between(this.records.placeIn(head), head);
    if (answer.type === 'old') return this.position === undefined;
    // The offsets of another line say nothing.
    const again = answer.type === 'hole' ? answer.from : answer.type === 'other' ? 0 : undefined;
    // A search that ends where it began.
    if (again === undefined || again === this.#searched) return true;
    this.#reading = undefined;
    this.#from = again;
    return false;
  }

  protected take(max: number): void {
    const { records } = this;
    for (let next = this.#waiting[0]; next !== undefined && records.length < max; next = this.#waiting[0]) {
      const { lines, path } = next;
      const position = lines.position;
      if (lines.next()) records.line(lines.line, { path, position });
      if (lines.position === lines.end) this.#waiting.shift();
    }
  }
}

const missingAdvice =
  'Check the name and the server. The first `append` creates it; to wait for it, read with `follow: true`.';
