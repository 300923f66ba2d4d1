import type { Place } from '../../../src/protocol/place.js';
import type { Timeline } from '../../simulation/timeline.js';
import type { LogRecord } from '../../../src/log/records.js';

/** What the observers of a log have received, taken together. */
export interface Truth {
  /** The content of each offset in its generation, which must never change. */
  readonly contents: Map<string, string>;
  /** What was received since the last power failure, which must stay. */
  readonly sinceBoot: Map<string, Numbered>;
  /** The newest offset that was received. */
  newest: Numbered;
  /** Whether records may be gone, through retention or a power failure. */
  canLose: boolean;
  /** Whether somebody has removed or cut a segment. */
  hasLost: boolean;
  readonly timeline: Timeline;
  received: number;
  gaps: number;
}

/** An offset means nothing without the generation that wrote it. */
export interface Numbered {
  readonly gen: number;
  readonly offset: number;
}

/** What an observer had received up to an offset. */
interface Reached {
  readonly at: Numbered;
  readonly n: number | undefined;
  readonly hasGap: boolean;
}

export const keyOf = ({ gen, offset }: Numbered): string => `${gen}/${offset}`;

export const isLater = (one: Numbered, other: Numbered): boolean =>
  one.gen === other.gen ? one.offset > other.offset : one.gen > other.gen;

/** Checks what one reader receives, and the positions it reports. */
export class Observer {
  readonly name: string;
  readonly #truth: Truth;
  readonly offsets = new Set<string>();
  first: Numbered | undefined;
  /** The number in the newest frame. */
  newest = 0;
  isGone = false;
  #last: Numbered | undefined;
  #n: number | undefined;
  /** How many frames the gaps since the last frame report as missing; `undefined` if a gap has no number. */
  #missing: number | undefined = 0;
  #hasGap = false;
  #isJump = false;
  #hasDamage = false;
  #watermark = -Infinity;
  #counted: number | undefined;
  #holes = 0;

  readonly #reached: Reached[] = [];

  /** @param after - where another one has left off, which it continues */
  constructor(name: string, truth: Truth, after?: Numbered, before?: Observer) {
    this.name = name;
    this.#truth = truth;
    if (after === undefined || after.offset === 0) return;
    const last = (this.#last = { gen: after.gen, offset: after.offset - 1 });
    if (before !== undefined) this.#reached = before.#reached.filter(({ at }) => !isLater(at, last));
    const { n, hasGap = false } = this.#reached.at(-1) ?? {};
    [this.#n, this.#hasGap, this.#missing] = [n, hasGap, undefined];
  }

  receive(records: readonly LogRecord[], position: Place | undefined): void {
    for (const record of records) {
      this.#receive(record);
      if (record.type === 'watermark' || record.position === undefined) continue;
      const { gen, offset } = record.position;
      this.#reached.push({ at: { gen, offset: offset - 1 }, n: this.#n, hasGap: this.#hasGap });
    }
    const frames = Number.isNaN(position?.frames) ? undefined : position?.frames;
    // The log has lost gaps, and who knows what they counted. `missed` of the next one is unknown as well.
    const holes = position?.holes ?? 0;
    if (holes < this.#holes) this.#counted = undefined;
    this.#holes = holes;
    // After a loss, a kill before the gap is stored leaves the log with a lower number.
    if (this.#truth.hasLost && frames !== this.#counted) this.#counted = undefined;
    if (frames !== undefined && this.#counted !== undefined && frames !== this.#counted)
      this.#wrong(`the position says ${frames} frames, it received ${this.#counted}`);
    this.#counted = frames;
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
      this.#wrong(`a gap at ${this.#last?.offset}, but all records are there`);
    if (record.type === 'disconnected' && record.failure.code === 'log-writer-gone') this.isGone = true;
    if (record.offset === undefined) return;
    this.isGone = false;
    const at = record.type === 'frame' ? record.receivedAt : record.type === 'gap' ? record.to : record.at;
    // An event may be late, because the writer repeats the status after a disk outage.
    if (at < this.#watermark && record.type === 'frame') this.#wrong(`a frame of ${at} after ${this.#watermark}`);
    this.#place(
      { ...record.position, offset: record.offset },
      record.type === 'frame' ? record.text() : `${record.type} ${at}`,
    );
    if (record.type === 'frame') this.#frame((JSON.parse(record.text()) as { n: number }).n);
  }

  #gap(missed: number | undefined): void {
    this.#truth.gaps += 1;
    this.#hasGap = true;
    this.#missing = missed === undefined || this.#missing === undefined ? undefined : this.#missing + missed;
    if (this.#counted !== undefined) this.#counted = missed === undefined ? undefined : this.#counted + missed;
  }

  #place({ gen, offset }: Numbered, content: string): void {
    const { contents, sinceBoot } = this.#truth;
    const [at, last] = [{ gen, offset }, this.#last];
    const key = keyOf(at);
    const known = contents.get(key);
    if (known !== undefined && known !== content) this.#wrong(`${key} was ${known} and is ${content}`);
    contents.set(key, content);
    sinceBoot.set(key, at);
    this.first ??= at;
    this.offsets.add(key);
    if (isLater(at, this.#truth.newest)) this.#truth.newest = at;
    if (last !== undefined && !isLater(at, last)) this.#wrong(`${key} after ${keyOf(last)}`);
    this.#isJump ||= last !== undefined && offset > last.offset + 1;
    this.#last = at;
  }

  #frame(n: number): void {
    this.#truth.received += 1;
    if (this.#counted !== undefined) this.#counted += 1;
    if (this.#isJump && !this.#hasGap) this.#wrong(`a jump to ${this.#last?.offset} without a gap`);
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
