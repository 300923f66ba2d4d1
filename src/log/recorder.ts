// What of a feed a log records, and where.
//
// In: frames and events of a feed. Out: records with their places, and the status before each.
// Never: a frame that's neither recorded nor counted in a gap.
import { EventTime, reachedAt } from '../operators/items/event-time.js';
import { unannouncedStop } from '../operators/items/follow-feed.js';
import {
  afterEvent,
  afterFrame,
  afterTime,
  type FeedState,
  noFeed,
  snapshotAt,
  stoppedAt,
  withGapIn,
} from '../protocol/feed-state.js';
import { afterRecord, type Place } from '../protocol/place.js';
import { isStorable, logGap, stamped, type Stored } from './lines.js';

/** Takes a record. @param time - when it happened, in epoch ms @param at - the same, but never before another record */
type Write = (record: Stored, time: number, at: number, before: Place) => void;

export class Recorder {
  readonly #time: EventTime;
  readonly #write: Write;
  #state: FeedState;
  /** The state before the event that is being added, which the header of a message or of a segment has. */
  #before: FeedState = noFeed;
  #end: Place;
  /** The time of the first record. */
  #since = Infinity;
  /** The place after the last record before a loss: from there on, records are only counted. */
  #lostAfter: Place | undefined;

  /** @param end - the place after the last record of the log */
  constructor(end: Place, now: () => number, write: Write) {
    this.#end = end;
    this.#since = end.at || Infinity;
    this.#time = new EventTime(now);
    this.#write = write;
    this.#state = stateBefore(end);
  }

  /** The place after all records, without those that are only counted. */
  get end(): Place {
    return this.#lostAfter ?? this.#end;
  }

  get isLosing(): boolean {
    return this.#lostAfter !== undefined;
  }

  /** Up to when the log has the feed, in epoch ms. */
  reached(): number {
    return reachedAt(this.#time, this.#end);
  }

  /** The status of the feed before the record that is being written. */
  stateAt(at: number) {
    return snapshotAt(this.#before, at);
  }

  /**
   * Adds an event; a value that is no event of a feed is ignored.
   *
   * @param isLater - whether others of this turn came before: they are as late or later, so the clock isn't read again
   */
  add(value: unknown, isLater = false): void {
    if (!isStorable(value)) return;
    const time = stamped(value);
    if (isLater && value.type === 'frame') this.#time.pass(time);
    else this.#time.receive(value, time);
    const isItem = value.type === 'frame';
    this.#fold(isItem ? afterFrame(this.#state, time, value) : afterEvent(this.#state, value, this.#end.at));
    if (value.type !== 'watermark' && value.type !== 'gap') this.#record(value, time);
  }

  /** Ends with the error of the source: it stops the feed, if no event said so. */
  stopped(thrown: unknown): void {
    const event = unannouncedStop(this.#state, thrown);
    if (event !== undefined) this.add(event);
  }

  /** A connection is complete after some time, also without a record. */
  settle(): void {
    this.#fold(afterTime(this.#state, this.reached()));
  }

  /** From now on, records are only counted. */
  lose(): void {
    this.#lostAfter ??= this.#end;
  }

  /**
   * Records the gap for what was lost, and goes on.
   *
   * @param stored - the place after the last record that isn't lost
   * @param since - when the loss began, if nothing was stored before
   */
  goOn(stored = this.#lostAfter, since = Infinity): void {
    if (stored === undefined || !this.isLosing) return;
    const { frames, holes } = this.#end;
    const from = stored.at || Math.min(since, this.#since);
    const to = Math.max(this.reached(), from);
    const gaps = [logGap('writeFailed', from, to, frames - stored.frames)];
    // The feed itself had a gap meanwhile, with an unknown number of frames.
    if (holes > stored.holes) gaps.push(logGap('writeFailed', from, to));
    this.#lostAfter = undefined;
    // Only a log without a record has no time.
    this.#end = { ...stored, at: from };
    this.#before = noFeed;
    // As after every gap: `opened` comes first. Other events that were lost end with these.
    const status = snapshotAt(this.#state, stored.at);
    for (const event of withGapIn(status, ...gaps) as readonly Stored[]) this.#record(event, stamped(event));
  }

  #fold(state: FeedState): void {
    this.#before = this.#state;
    this.#state = state;
    // A gap that the source emits is one of these.
    for (const gap of state.gaps) this.#record(gap, stamped(gap));
  }

  #record(record: Stored, time: number): void {
    const before = this.#end;
    const at = Math.max(time, before.at);
    this.#since = Math.min(this.#since, at);
    const end = afterRecord(before, record, at);
    // The gap after a loss takes the offset.
    this.#end = this.isLosing ? { ...end, offset: before.offset } : end;
    if (!this.isLosing) this.#write(record, time, at, before);
  }
}

/** What a reader knows of the feed before the first event of a writer: another one, if any, has stopped. */
const stateBefore = ({ at }: Place): FeedState => (at === 0 ? noFeed : stoppedAt(at, logGap('paused', at, at).failure));
