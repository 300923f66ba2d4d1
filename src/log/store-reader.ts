// The reader of a log in a store.
//
// In: the messages of the store. Out: the lines of records, and what the writer says about the end of the log.
import { setTimeout as delay } from 'node:timers/promises';
import { Lines } from './lines.js';
import type { LineStore } from './line-store.js';
import { LogError } from './log-error.js';
import { bodyOf, type LogHead } from './log-message.js';
import { RecordReader } from './record-reader.js';
import { damageAt, type LogEnd, type ReaderSettings, type WriterTip } from './records.js';
import { StoredMessages } from './store-messages.js';
import { awayMs, refusedBy, type StoredLog } from './stored-log.js';

const retryMs = 250;

export class StoreReader extends RecordReader {
  readonly #log: StoredLog;
  readonly #messages: StoredMessages;
  #awaySince: number | undefined;
  /** The parts of a large record so far. */
  #parts: Buffer[] = [];
  /** The lines that are still to be read. */
  readonly #waiting: { readonly lines: Lines; readonly path: string }[] = [];

  constructor(log: StoredLog, settings: ReaderSettings) {
    super(log.path, settings, Date.now);
    this.#log = log;
    this.#messages = new StoredMessages(log, this.records, (store) => this.#locate(store));
  }

  /** Its time is that of the last record, not how far the feed is. */
  override end(): LogEnd | undefined {
    const { heard } = this.#messages;
    return heard && { ...heard.head.next, began: heard.head.began };
  }

  override close(): void {
    if (this.isClosed) return;
    super.close();
    this.#messages.close();
  }

  protected tip(): WriterTip | undefined {
    const { heard } = this.#messages;
    if (heard === undefined) return undefined;
    const { line, gen, began, closed = false, next, reached = next.at } = heard.head;
    return { line, gen, began, offset: next.offset, at: reached, writtenAt: heard.at, closed };
  }

  protected woken(): Promise<void> {
    return this.#messages.woken();
  }

  protected async read(): Promise<boolean> {
    try {
      const message = await this.#messages.next();
      this.#awaySince = undefined;
      if (message === undefined) return false;
      if (message.head !== undefined) this.#receive(message.head, message.bytes);
      // Another program has published to the subject: no record is missing.
      else if (this.settings.onDamage === 'error') throw damageAt({ path: `a message of ${this.path}`, position: 0 });
      return true;
    } catch (error) {
      if (!this.#log.isAway(error)) throw refusedBy(this.#log, 'read', error);
      this.#awaySince ??= performance.now();
      // A reader that follows emits `log-writer-gone`, because it hears nothing.
      if (this.settings.follow) return false;
      if (performance.now() - this.#awaySince > awayMs) throw refusedBy(this.#log, 'read', error);
      await delay(retryMs);
      return true;
    }
  }

  /** Returns the offset to begin with; `undefined` if there's no log yet. */
  async #locate(store: LineStore): Promise<number | undefined> {
    const { from, follow } = this.settings;
    const extent = await store.extent();
    if (extent === undefined) {
      if (follow || (await store.exists())) return undefined;
      throw new LogError('log-missing', `There is no log ${this.path}.`, { path: this.path, advice: missingAdvice });
    }
    // It shows where the log ends, and with which status.
    const last = Math.max(extent.from, extent.to - 1);
    if (from === 'earliest') return 0;
    if (from === 'latest') return last;
    if ('offset' in from) return Math.min(from.offset, last);
    // The message before may end with records of that time.
    return Math.max(0, ((await store.since(from.time)) ?? last + 1) - 1);
  }

  #receive(head: LogHead, bytes: Uint8Array): void {
    const { part, parts } = head;
    this.#parts = part === 0 ? [bodyOf(bytes)] : part === this.#parts.length ? [...this.#parts, bodyOf(bytes)] : [];
    if (part === 0 && !this.records.message(head)) this.#parts = [];
    if (this.#parts.length === parts) {
      const path = `the message of ${this.path} at the offset ${head.offset}`;
      this.#waiting.push({ lines: new Lines(Buffer.concat(this.#parts)), path });
    }
  }

  protected take(max: number): void {
    const { records } = this;
    for (let next = this.#waiting[0]; next !== undefined && records.length < max; next = this.#waiting[0]) {
      const { lines, path } = next;
      const position = lines.position;
      if (lines.next()) records.line(lines, { path, position });
      if (lines.position === lines.end) this.#waiting.shift();
    }
  }
}

const missingAdvice =
  'Check the name and the server. The first `append` creates it; to wait for it, read with `follow: true`.';
