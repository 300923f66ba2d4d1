import type { Place } from '../../../src/protocol/place.js';
import type { Timeline } from '../../simulation/timeline.js';
import type { LogRecord } from '../../../src/log/records.js';

/** What the observers of a log have received, taken together. */
export interface Truth {
  /** The content of each offset, which must never change. */
  readonly contents: Map<number, string>;
  /** The offsets received since the last power failure, which must stay. */
  readonly sinceBoot: Set<number>;
  /** Whether records may be gone, through retention or a power failure. */
  canLose: boolean;
  /** Whether somebody has removed or cut a segment. */
  hasLost: boolean;
  readonly timeline: Timeline;
  received: number;
  gaps: number;
}

/** Checks what one reader receives, and the positions it reports. */
export class Observer {
  readonly name: string;
  readonly #truth: Truth;
  readonly offsets = new Set<number>();
  /** The number in the newest frame. */
  newest = 0;
  isGone = false;
  #offset: number | undefined;
  #n: number | undefined;
  /** How many frames the gaps since the last frame report as missing; `undefined` if a gap has no number. */
  #missing: number | undefined = 0;
  #hasGap = false;
  #isJump = false;
  #hasDamage = false;
  #watermark = -Infinity;
  #counted: number | undefined;
  #next = 0;

  /** @param after - the next offset, for a reader that continues where another one left off */
  constructor(name: string, truth: Truth, after?: number) {
    this.name = name;
    this.#truth = truth;
    if (after !== undefined && after > 0) this.#offset = after - 1;
  }

  receive(records: readonly LogRecord[], position: Place | undefined): void {
    for (const record of records) this.#receive(record);
    const frames = Number.isNaN(position?.frames) ? undefined : position?.frames;
    // After a power failure the writer may count frames that no reader has received.
    if ((position?.offset ?? 0) > this.#next + 1_000_000) this.#counted = undefined;
    // Then a kill before the gap is stored leaves the log with a lower number.
    if (this.#truth.hasLost && frames !== this.#counted) this.#counted = undefined;
    if (frames !== undefined && this.#counted !== undefined && frames !== this.#counted)
      this.#wrong(`the position says ${frames} frames, it received ${this.#counted}`);
    this.#counted = frames;
    this.#next = position?.offset ?? 0;
  }

  #wrong(text: string): void {
    this.#truth.timeline.wrong(`${this.name}: ${text}`);
  }

  #receive(record: LogRecord): void {
    if (record.type === 'watermark') {
      if (record.at < this.#watermark) this.#wrong(`the time goes back to ${record.at}`);
      this.#watermark = record.at;
      return;
    }
    if (record.type === 'gap') {
      // The gap of a loss also counts the frames of damaged lines, for which this one stands.
      this.#hasDamage ||= this.#truth.hasLost && record.failure.code === 'log-damaged';
      this.#gap(this.#hasDamage ? undefined : record.missed);
      if (record.failure.code === 'log-write-failed') this.#hasDamage = false;
    }
    if (record.type === 'gap' && record.offset === undefined && !this.#truth.canLose)
      this.#wrong(`a gap at ${this.#offset}, but all records are there`);
    if (record.type === 'disconnected' && record.failure.code === 'log-writer-gone') this.isGone = true;
    if (record.offset === undefined) return;
    this.isGone = false;
    const at = record.type === 'frame' ? record.receivedAt : record.type === 'gap' ? record.to : record.at;
    // An event may be late, because the writer repeats the status after a disk outage.
    if (at < this.#watermark && record.type === 'frame') this.#wrong(`a frame of ${at} after ${this.#watermark}`);
    this.#place(record.offset, record.type === 'frame' ? record.text() : `${record.type} ${at}`);
    if (record.type === 'frame') this.#frame((JSON.parse(record.text()) as { n: number }).n);
  }

  #gap(missed: number | undefined): void {
    this.#truth.gaps += 1;
    this.#hasGap = true;
    this.#missing = missed === undefined || this.#missing === undefined ? undefined : this.#missing + missed;
    if (this.#counted !== undefined) this.#counted = missed === undefined ? undefined : this.#counted + missed;
  }

  #place(offset: number, content: string): void {
    const { contents, sinceBoot } = this.#truth;
    const known = contents.get(offset);
    if (known !== undefined && known !== content) this.#wrong(`offset ${offset} was ${known} and is ${content}`);
    contents.set(offset, content);
    sinceBoot.add(offset);
    this.offsets.add(offset);
    if (this.#offset !== undefined && offset <= this.#offset) this.#wrong(`${offset} after ${this.#offset}`);
    this.#isJump ||= this.#offset !== undefined && offset > this.#offset + 1;
    this.#offset = offset;
  }

  #frame(n: number): void {
    this.#truth.received += 1;
    if (this.#counted !== undefined) this.#counted += 1;
    if (this.#isJump && !this.#hasGap) this.#wrong(`a jump to ${this.#offset} without a gap`);
    if (this.#n !== undefined) {
      const lost = n - this.#n - 1;
      if (lost < 0) this.#wrong(`frame ${n} after ${this.#n}`);
      if (lost > 0 && !this.#hasGap) this.#wrong(`frame ${n} after ${this.#n} without a gap`);
      if (this.#missing !== undefined && this.#missing !== lost)
        this.#wrong(`gaps say ${this.#missing}, ${lost} are missing before ${n}`);
    }
    this.#n = this.newest = n;
    this.#missing = 0;
    this.#hasGap = this.#isJump = false;
  }
}
