// What the lines of a log tell: the records, and the gaps, statuses and times that a reader adds to them.
//
// In: the lines of the segments in order, each with its header first; at the end of the log, the tip. Out: records.
// Never: a record twice or out of order, or a missing one without a gap in its place.
import type { LifecycleEvent, Watermark } from '../protocol/event.js';
import type { Frame } from '../protocol/frame.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import {
  afterEvent,
  afterFrame,
  type FeedState,
  noFeed,
  snapshotAfterGap,
  stateOf,
  snapshotAt,
} from '../protocol/feed-state.js';
import { afterRecord, between, type Head, missedBetween, type Place, startOf } from '../protocol/place.js';
import { isTime } from '../protocol/type-guards.js';
import type { Rule } from '../protocol/validate.js';
import { LogError, logMeanings } from './log-error.js';
import {
  aFrame,
  isOther,
  type Lines,
  logGap,
  placeBefore,
  placeOf,
  readHeader,
  type Recorded,
  readRecord,
  type SegmentHead,
  stamped,
} from './lines.js';
import { recordsAfter, type Tip } from './segments.js';

/**
 * What a log emits: a frame or an event with its offset; an event without one, which the reader adds (the status where
 * it begins, a gap in place of records that are gone, `log-writer-gone`); or the time that the log has reached.
 * `position` is the place after it: pass it as `from` to go on there. A status that comes before its gap has the place
 * before both.
 *
 * The status is for operators that begin with this reader. To those that had an earlier one, it's another connection, so
 * something may be missing: pass them only gaps, and what has an offset.
 *
 * A log of a cluster also has its events, such as `owner-changed`.
 */
export type LogRecord =
  | ((Frame | LifecycleEvent) & { readonly offset: number; readonly position: Place })
  | (LifecycleEvent & { readonly offset?: undefined; readonly position?: Place | undefined })
  | Watermark;

/** Where a reader begins. `offset`: the next record; with the rest of its place if you have it. `time`: epoch ms. */
export type From = 'earliest' | 'latest' | (Pick<Place, 'offset'> & Partial<Place>) | { readonly time: number };

const isFrom = (value: unknown): boolean => {
  if (value === 'earliest' || value === 'latest') return true;
  const { offset, time, line } = Object(value) as Readonly<Record<string, unknown>>;
  if (offset === undefined) return isTime(time);
  return Number.isSafeInteger(offset) && (offset as number) >= 0 && (line === undefined || typeof line === 'string');
};

export const fromRule: Rule = { allowed: "'earliest', 'latest', { offset } or { time }", is: isFrom };

export interface ReaderSettings {
  readonly from: From;
  readonly follow: boolean;
  readonly onDamage: 'gap' | 'error';
  /** Whether frames are emitted as {@link RawFrame}. */
  readonly isRaw?: boolean;
}

/** What a writer says about the end of a log. */
export type WriterTip = Omit<Tip, 'pid'>;

/** Where a log ends, and the generation of its writer. */
export type LogEnd = Pick<Tip, 'gen' | 'began' | 'offset' | 'at'>;

/** Whether a writer has ended, or doesn't respond: it hasn't written its tip for 2 s. */
export const isGone = ({ closed, writtenAt }: WriterTip, now: number): boolean => closed || now - writtenAt > 2_000;

/** Where a line is. */
interface LineAt {
  readonly path: string;
  /** In bytes. */
  readonly position: number;
}

export class Records {
  readonly #settings: ReaderSettings;
  /** The place to begin, if it's an offset. */
  readonly #requested: Place | undefined;
  readonly #now: () => number;
  /** The place after the last record; `undefined` before the first header. After damage, NaN up to the next header. */
  #place: Place | undefined;
  /** The generation of the next record; `undefined` after a damaged header. */
  #gen: number | undefined = 0;
  #state: FeedState = noFeed;
  /** Says which records come before the place to begin; `undefined` once that is reached. */
  #isBefore: ((offset: number, at: number) => boolean) | undefined;
  #out: LogRecord[] = [];
  /** The last watermark; `undefined` until the end of the log was reached once. */
  #watermark: number | undefined;
  #isGone = false;
  /** The first damaged line after the place. The offset of the next record says how many are gone. */
  #damagedAt: LineAt | undefined;
  /** The frames that this reader has, and that the next gap counts: they are no longer in the log. NaN: unknown. */
  #surplus = 0;

  constructor(settings: ReaderSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
    const { from } = settings;
    const isPlace = typeof from === 'object' && 'offset' in from;
    this.#requested = isPlace ? placeOf(from) : undefined;
    if (isPlace) this.#isBefore = (offset) => offset < from.offset;
    else this.#isBefore = typeof from === 'object' ? (_, at) => at < from.time : () => from === 'latest';
  }

  /** The place after the last record; `undefined` before the first header. */
  get position(): Place | undefined {
    return this.#place;
  }

  /** How many records wait to be taken. */
  get length(): number {
    return this.#out.length;
  }

  /** Returns the records that wait. */
  take(): LogRecord[] {
    const records = this.#out;
    this.#out = [];
    const { at = 0 } = this.#place ?? {};
    // Whoever has received a watermark needs one more for the time to go on.
    if (this.#watermark !== undefined && at > this.#watermark) {
      this.#watermark = at;
      records.push({ type: 'watermark', at });
    }
    return records;
  }

  /** A file is a log without headers and offsets. */
  beginFile(): void {
    this.#place ??= startOf('');
  }

  /** @param first - the offset in the name of the segment */
  header(line: string | undefined, first: number, where: LineAt): void {
    const header = readHeader(line);
    if (header === undefined) {
      this.#damagedLine(where);
      const begins = this.#requested ?? { ...startOf('', first), frames: first === 0 ? 0 : NaN };
      this.#place ??= begins;
      // In front of its first record nothing is unknown yet.
      if (this.#place.offset < first) this.#place = { ...this.#place, frames: NaN };
      this.#gen = undefined;
      return;
    }
    // It has all records up to the next header.
    if (!this.message({ count: Infinity, ...header })) return;
    // Without a record, the next writer removes the segment.
    if (this.#place?.offset === header.offset) this.#place = { ...this.#place, gen: placeBefore(header).gen };
  }

  /** Takes the head of a message of a store. Returns `false` for one of a writer that was replaced. */
  message(head: Head & Pick<SegmentHead, 'state'>): boolean {
    const before = this.placeIn(head);
    const answer = between(before, head);
    if (answer.type === 'old' && this.#place !== undefined) return false;
    // Lines after a damaged header may be those of another generation, with offsets that the reader has.
    const isDamaged = this.#gen === undefined && this.#damagedAt !== undefined;
    this.#gen = head.gen;
    if (answer.type === 'old') {
      // It reads from before the place to begin.
      [this.#place, this.#state] = [placeOf(head), stateOf(head.state)];
      return true;
    }
    const isNext = answer.type === 'next';
    const isAhead = 'surplus' in answer && answer.surplus > 0;
    // A log without a record has no gap for those that it has lost.
    const isHole = answer.type === 'hole' || answer.type === 'other';
    const isLost = isHole || isDamaged || (isAhead && head.at === 0);
    // What the place to begin counts before it is no longer in the log, and other records have its offsets.
    if (isAhead && this.#isBefore !== undefined) this.#isBefore = (offset) => offset < head.began;
    if (this.#place === undefined || !isNext) this.#state = stateOf(head.state);
    if (isLost) this.#surplus = 0;
    else if (before && before.gen !== head.gen) this.#surplus = surplusOf(before, head);
    if (this.#place === undefined || !isNext || answer.skip === 0) this.#place = this.#withSurplus(placeOf(head));
    if (isLost) this.#lost(before, placeOf(head), answer.type !== 'other' && !isAhead);
    this.#damagedAt = undefined;
    return true;
  }

  /** The place after the last record, or else the place to begin, in the line of a message. */
  placeIn({ line, gen }: Head): Place | undefined {
    const requested = this.#isBefore && this.#requested;
    // Those of a later generation may come after the place to begin, although their offsets are lower.
    const isLater = requested !== undefined && requested.gen > 0 && gen > requested.gen;
    const known = isLater ? requested : (this.#place ?? requested);
    const isUnknown = known?.gen === 0 || (this.#gen === undefined && !isLater);
    return known && { ...known, line: known.line || line, gen: isUnknown ? gen : known.gen };
  }

  #withSurplus(place: Place): Place {
    return this.#surplus > 0 ? { ...place, frames: place.frames + this.#surplus } : place;
  }

  /**
   * Emits the gap in place of the records between two places, and the status after it.
   *
   * @param mayBeBefore - whether they may be before the place to begin
   */
  #lost(before: Place | undefined, place: Place, mayBeBefore: boolean): void {
    const { offset, at } = place;
    const to = at || this.#now();
    const { at: since = 0 } = before ?? {};
    if (mayBeBefore && this.#isBefore?.(offset - 1, to) === true) return;
    const damage = this.#damagedAt;
    if (damage !== undefined && this.#settings.onDamage === 'error') throw damageAt(damage);
    this.#isBefore = undefined;
    const missed = before && missedBetween(before, place);
    const gap = logGap(damage === undefined ? 'behind' : 'damaged', Math.min(since || to, to), to, missed);
    const events = snapshotAfterGap(this.#state, gap);
    // Who goes on before the gap receives the status again, and then the gap.
    for (const [n, event] of events.entries()) this.#add(event, n < events.indexOf(gap) ? before : this.#place);
  }

  line(lines: Lines, where: LineAt): void {
    const { offset: next } = this.#place as Place;
    const scanned = lines.scan();
    if (scanned === undefined) return this.#damagedLine(where);
    const { offset, at, event } = scanned;
    if (offset < next) return;
    const isSkipped = event === undefined && this.#isBefore?.(offset, at) === true;
    // Frames before the place to begin aren't parsed.
    const raw = this.#settings.isRaw === true && !isSkipped ? (lines.raw(scanned) as Recorded | undefined) : undefined;
    const record = isSkipped ? undefined : (event ?? raw ?? lines.frame(scanned));
    if (record === undefined && !isSkipped) this.#damagedLine(where);
    else this.#record(record, offset, at);
  }

  /** A line of a file: its offset is its number. */
  fileLine(line: string | undefined, where: LineAt): void {
    const place = this.#place as Place;
    const { offset } = place;
    const record = readRecord(line, offset);
    if (record !== undefined) return this.#record(record, offset, Math.max(stamped(record), place.at));
    this.#place = { ...place, offset: offset + 1 };
    if (isOther(line)) return;
    if (offset === 0) throw notALog(where.path);
    this.#damagedLine(where);
  }

  /** @param record - `undefined` for a frame before the place to begin */
  #record(record: Recorded | undefined, offset: number, at: number): void {
    const isBefore = this.#isBefore?.(offset, at) === true;
    if (this.#damagedAt !== undefined || offset > (this.#place as Place).offset) this.#damage(offset, at, isBefore);
    if (!isBefore) this.#begin();
    if (!isBefore && this.#isGone) this.#writerIsBack(record);
    const counted = record && this.#withoutSurplus(record);
    const before = this.#place as Place;
    const begun = before.gen === (this.#gen ?? before.gen) ? before : { ...before, gen: this.#gen as number };
    const place = (this.#place = afterRecord(begun, record ?? aFrame, at));
    if (record === undefined) {
      this.#state = afterFrame(this.#state, at);
      return;
    }
    this.#state =
      record.type === 'frame'
        ? afterFrame(this.#state, record.receivedAt, record)
        : afterEvent(this.#state, record, place.at);
    if (isBefore) return;
    const emitted = counted as Recorded & { position?: Place };
    // `Object.assign` takes 200 ns more.
    emitted.position = place;
    this.#out.push(emitted as LogRecord);
  }

  #withoutSurplus(record: Recorded): Recorded {
    const surplus = this.#surplus;
    if (surplus === 0 || record.type !== 'gap') return record;
    this.#surplus = 0;
    // From here on the place is that of the log again.
    const place = this.#place as Place;
    if (surplus > 0) this.#place = { ...place, frames: place.frames - surplus };
    const { missed = NaN, ...gap } = record;
    return missed >= surplus ? { ...gap, missed: missed - surplus } : gap;
  }

  /** The records before an offset can't be read: emits a gap, unless all of them are before the place to begin. */
  #damage(offset: number, at: number, isBefore: boolean): void {
    const place = this.#place as Place;
    const isWanted = this.#requested === undefined || offset > this.#requested.offset;
    const isEmitted = this.#isBefore === undefined || (!isBefore && isWanted);
    if (isEmitted) this.#begin();
    this.#damagedAt = undefined;
    this.#place = { ...place, offset, frames: NaN };
    if (isEmitted) this.#add(logGap('damaged', Math.min(place.at || at, at), at));
  }

  /** Adds an event that the log doesn't have. */
  #add(event: LifecycleEvent, position = this.#place): void {
    this.#out.push({ ...event, offset: undefined, position });
  }

  /** Adds the status of the feed after the last record. */
  #addStatus(): void {
    const { at = 0 } = this.#place ?? {};
    if (at === 0) return;
    const { from } = this.#settings;
    // Frames of the last ms before the time to begin aren't read.
    const since = typeof from === 'object' && 'time' in from ? Math.max(at, from.time) : at;
    for (const event of snapshotAt(this.#state, since)) this.#add(event);
  }

  /** The place to begin is reached: first the status of the feed there. */
  #begin(): void {
    if (this.#isBefore === undefined) return;
    this.#isBefore = undefined;
    this.#addStatus();
  }

  #damagedLine(where: LineAt): void {
    if (this.#settings.onDamage === 'error') throw damageAt(where);
    this.#damagedAt ??= where;
  }

  /** The last line of a segment has no end. It is damage if the next segment doesn't begin with its offset. */
  torn({ path, position }: LineAt): void {
    this.#damagedAt ??= { path, position };
  }

  /** Whether a writer says that there are records which this reader doesn't have. */
  isBehind(tip: WriterTip): boolean {
    const place = this.#place;
    if (place === undefined || (place.line || tip.line) !== tip.line) return false;
    const gen = this.#gen === undefined ? tip.gen : place.gen;
    return gen <= tip.gen && recordsAfter({ ...place, gen }, tip) > 0;
  }

  /** The log is shorter than what its writer has written. */
  cut({ gen, offset, at }: WriterTip, where: LineAt): true {
    const place = this.#place as Place;
    if (this.#settings.onDamage === 'error') throw damageAt(where);
    const to = Math.max(at, place.at);
    this.#damage(offset, to, this.#isBefore?.(offset - 1, to) === true);
    this.#place = { ...(this.#place as Place), gen };
    return true;
  }

  /** Adds what the end of the log tells: the place to begin, the time, or that the writer is gone. */
  atEnd(readTip: () => WriterTip | undefined): void {
    const { from, follow } = this.#settings;
    // A reader that follows adds the gap with the next record, whose offset says how many are gone.
    if (this.#damagedAt !== undefined && !follow) {
      const { offset, at, line } = (this.#place ??= startOf(''));
      // A file has counted its damaged lines already.
      this.#damage(line === '' ? offset : offset + 1, at || this.#now(), false);
    }
    if (this.#place === undefined) return;
    const { offset } = this.#place;
    if (this.#isBefore !== undefined && this.#requested !== undefined) {
      // With the id of its line, a power failure has removed only what this reader has received.
      const isUnknown = offset < this.#requested.offset && !this.#requested.line;
      const at = this.#place.at || this.#now();
      this.#begin();
      if (isUnknown) this.#add(logGap('behind', at, at));
    } else if (from === 'latest') this.#begin();
    if (follow && this.#isBefore === undefined) this.#tip(readTip(), this.#place);
  }

  #tip(tip: WriterTip | undefined, place: Place): void {
    // A tip that is ahead is about records that aren't read yet.
    if (tip?.line !== place.line || this.isBehind(tip)) return;
    const at = Math.max(tip.at, place.at);
    const hasGone = isGone(tip, this.#now());
    if (hasGone && !this.#isGone) {
      const failure = createFailure(logMeanings.writerGone, { stage: 'stream', endedAt: at });
      this.#add({ type: 'disconnected', at, failure });
    }
    // After a pause of the same writer nothing is missing. Another one says itself how it goes on.
    if (!hasGone && this.#isGone && tip.gen === place.gen && tip.began < place.offset) this.#writerIsBack();
    this.#isGone ||= hasGone;
    if (hasGone || at <= (this.#watermark ?? -Infinity)) return;
    this.#watermark = at;
    this.#out.push({ type: 'watermark', at });
  }

  /** @param record - the first one since then. It may itself tell how the feed goes on */
  #writerIsBack(record?: Recorded): void {
    this.#isGone = false;
    if (record === undefined || record.type === 'frame' || record.type === 'gap') this.#addStatus();
  }
}

export const damageAt = ({ path, position }: LineAt): LogError =>
  new LogError('log-corrupt', `The line at byte ${position} of ${path} is damaged.`, { path, lineAt: position });

export const notALog = (path: string): LogError =>
  new LogError(
    'log-corrupt',
    `The file ${path} isn't a log: its first line isn't one that \`rx-trade-feed listen --json\` or a recording contains.`,
    { path, lineAt: 0 },
  );

/** Returns how many frames a reader has that the log has lost since, and so counts in its gap. NaN: unknown. */
const surplusOf = (before: Place, { began, frames, holes }: Head): number => {
  const surplus = before.frames - frames;
  // Lines that are damaged by now count as well.
  if (before.offset <= began && !(surplus > 0)) return 0;
  return before.holes === holes ? surplus : NaN;
};
