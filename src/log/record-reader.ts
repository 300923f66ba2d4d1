// What the readers of all engines are: history and live are one loop over the same lines.
//
// In: the lines that an engine reads. Out: what `Records` makes of them, in rounds.
// Never: a wait although there is more to read, or a reader that stays open after its end. So an engine listens before
// the read that finds nothing.
import type { Place } from '../protocol/place.js';
import { toLogError } from './log-error.js';
import { type LogEnd, type LogRecord, type ReaderSettings, Records, type WriterTip } from './records.js';

export abstract class RecordReader {
  protected readonly path: string;
  protected readonly settings: ReaderSettings;
  protected readonly records: Records;
  protected isClosed = false;

  constructor(path: string, settings: ReaderSettings, now: () => number) {
    this.path = path;
    this.settings = settings;
    this.records = new Records(settings, now);
  }

  /** Passes lines that were read to `records`, while it has fewer than `max`. */
  protected abstract take(max: number): void;

  /** Reads more lines; `false` if there are none. From here on, a new one wakes `woken`. */
  protected abstract read(): Promise<boolean>;

  /** Returns what the writer says about the end of the log. */
  protected abstract tip(): WriterTip | undefined;

  /** Resolves when there may be more to read, and once the reader is closed. */
  protected abstract woken(): Promise<void>;

  /** The place after the last record of `next`; `undefined` before the first one. */
  get position(): Place | undefined {
    return this.records.position;
  }

  /** Returns the end of the log, if it's known. */
  end(): LogEnd | undefined {
    return this.tip();
  }

  /**
   * Resolves with at least one record, of at most `max` lines; with `undefined` at the end without `follow`, and if it
   * is closed. An end and an error close it: no caller has to.
   */
  async next(max = Infinity): Promise<LogRecord[] | undefined> {
    try {
      const records = await this.#next(max);
      if (records === undefined) this.close();
      return records;
    } catch (cause) {
      if (this.isClosed) return undefined;
      this.close();
      throw toLogError('read', this.path, cause);
    }
  }

  async #next(max: number): Promise<LogRecord[] | undefined> {
    const { records, settings } = this;
    // A read may take long.
    const isClosed = (): boolean => this.isClosed;
    while (!isClosed()) {
      this.take(max);
      if (records.length > 0) return records.take();
      if ((await this.read()) || isClosed()) continue;
      records.atEnd(() => this.tip());
      if (records.length > 0) return records.take();
      if (!settings.follow) return undefined;
      await this.woken();
    }
    return undefined;
  }

  /** Ends the reader: a call of `next` that waits resolves with `undefined`. */
  close(): void {
    this.isClosed = true;
  }
}
