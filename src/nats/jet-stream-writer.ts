// The writer of a log on JetStream.
//
// In: frames and events of a feed. Out: messages. The server stores each directly after the last one, or refuses it.
// Never: a record twice, a frame that's neither stored nor counted in a gap, more than `maxWaitingBytes` in memory.
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { firstValueFrom, of } from 'rxjs';
import type { AppendOptions, AppendSettings, Fail } from '../log/append.js';
import { isStorable, logGap, recordLine, stamped, type Stored } from '../log/lines.js';
import { LogError, toLogError } from '../log/log-error.js';
import { onceClosed } from '../log/lock.js';
import { afterLoss, stateBefore } from '../log/recovery.js';
import { SizedQueue } from '../operators/bounded/ring.js';
import { EventTime, reachedAt } from '../operators/items/event-time.js';
import { unannouncedStop } from '../operators/items/follow-feed.js';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import { afterEvent, afterFrame, type FeedState, noFeed, snapshotAt } from '../protocol/feed-state.js';
import { type AnyFrame, withOwnPayload } from '../protocol/frame.js';
import { afterRecord, type Place } from '../protocol/place.js';
import { isAway, isConflict, type LogStream, type MessageHead, placeAfter } from './log-stream.js';

type WriterSettings = Pick<AppendSettings, 'maxBytes' | 'maxAgeMs' | 'maxWaitingBytes'> &
  Pick<AppendOptions, 'generation'>;

/** Frames that there was no room for. */
interface Lost {
  readonly type: 'lost';
  readonly from: number;
  to: number;
  missed: number;
}

type Waiting = AnyFrame | ClusterLifecycleEvent | Lost;

const batchMs = 16;
const batchBytes = 256 * 1024;
const tipMs = 250;
const againMs = 250;
/** How long a writer waits for a missing server before it ends. */
const lastMs = 5_000;

export class JetStreamWriter {
  readonly #stream: LogStream;
  readonly #settings: WriterSettings;
  readonly #fail: Fail;
  readonly #id = newId();
  readonly #time = new EventTime(Date.now);
  readonly #waiting = new SizedQueue<{ readonly event: Waiting; readonly bytes: number }>();
  #wake: (() => void) | undefined;
  /** There's no room for frames, or the server refuses messages. */
  #isFull = false;
  #isRefused = false;
  #endedAt: number | undefined;
  /** The newest message, stored or on its way. */
  #header!: MessageHead;
  #seq = 0;
  #isStoring = false;
  #state: FeedState = noFeed;
  /** The first offset of this writer. */
  #first = 0;
  #release: (() => void) | undefined;
  /** Resolves when everything is stored, or the writer has failed. */
  readonly ended: Promise<void>;

  constructor(stream: LogStream, settings: WriterSettings, fail: Fail) {
    this.#stream = stream;
    this.#settings = settings;
    this.#fail = fail;
    this.ended = this.#all();
  }

  /** Adds an event. Ignores values that aren't events of a feed. */
  add(value: unknown): void {
    if (this.#endedAt !== undefined || !isStorable(value)) return;
    const at = stamped(value);
    this.#time.receive(value, at);
    if (value.type !== 'frame') this.#push(value);
    else if (this.#hasRoom(value)) this.#push(withOwnPayload(value));
    else this.#lose(at);
  }

  /** Ends with the error of the source, which stops the feed, unless an event has said so already. */
  async stopped(thrown: unknown): Promise<void> {
    // Events that wait are not folded yet.
    let state = this.#state;
    for (let n = 0; n < this.#waiting.size; n += 1) state = folded(state, this.#waiting.at(n).event);
    const event = unannouncedStop(state, thrown);
    if (event !== undefined) this.add(event);
    await this.end();
  }

  async end(): Promise<void> {
    this.#endedAt ??= Date.now();
    this.#wake?.();
    await this.ended;
  }

  #push(event: Waiting): void {
    this.#waiting.push({ event, bytes: bytesOf(event) });
    this.#wake?.();
  }

  #hasRoom(frame: AnyFrame): boolean {
    const { maxWaitingBytes } = this.#settings;
    const bytes = this.#waiting.bytes + bytesOf(frame);
    const wasFull = this.#isFull;
    // Waits until half of it is free again, or gaps and frames would alternate.
    this.#isFull = this.#waiting.size > 0 && bytes > (wasFull ? maxWaitingBytes / 2 : maxWaitingBytes);
    if (this.#isFull && !wasFull) this.#failed(new Error(`more than ${maxWaitingBytes} bytes wait for NATS`), true);
    return !this.#isFull;
  }

  #lose(at: number): void {
    const last = this.#waiting.newest?.event;
    if (last?.type !== 'lost') this.#push({ type: 'lost', from: at, to: at, missed: 1 });
    else Object.assign(last, { to: Math.max(last.to, at), missed: last.missed + 1 });
  }

  /** Ends the writer, unless `onError` wants it to go on. */
  #failed(cause: unknown, canContinue: boolean): void {
    if (this.#endedAt === -Infinity || this.#fail(toLogError('write', this.#stream.path, cause), canContinue)) return;
    this.#endedAt = -Infinity;
    this.#waiting.clear();
    this.#wake?.();
  }

  async #all(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    try {
      // A writer of this process that has ended may still store its last records.
      await firstValueFrom(onceClosed(this.#stream.path, () => of(undefined)));
      await this.#open();
      timer = setInterval(() => this.#tell(false), tipMs);
      while (this.#waiting.size > 0 || this.#endedAt === undefined) {
        if (this.#waiting.size > 0) await this.#store(...this.#take());
        else await new Promise<void>((done) => (this.#wake = done));
        // Collects the frames of a few turns in one message.
        if (this.#endedAt === undefined) await setTimeout(batchMs);
      }
      this.#tell(true);
    } catch (error) {
      this.#failed(error, false);
    } finally {
      clearInterval(timer);
      this.#release?.();
    }
  }

  /** Claims the end of the log with a message that has no records: from then on older writers are fenced. */
  async #open(): Promise<void> {
    const { maxBytes, maxAgeMs, generation: requested } = this.#settings;
    const { path } = this.#stream;
    await this.#persist(() => this.#stream.create(maxBytes, maxAgeMs));
    for (let lastSeq: number | undefined; ;) {
      const last = await this.#persist(() => this.#stream.last());
      const { seq = 0, header, bytes } = last;
      if (bytes !== undefined && header === undefined)
        throw new LogError('log-corrupt', `The newest message of the stream ${path} is not one of a log.`, { path });
      this.#seq = seq;
      if (header?.run === this.#id) return;
      const { gen: newest = 0 } = header ?? {};
      if (requested !== undefined && requested < newest) throw this.#fenced();
      const generation = requested ?? newest;
      const isTooLate = lastSeq !== undefined && lastSeq !== seq && generation === newest;
      this.#release ??= await this.#stream.take('writer', generation);
      if (isTooLate || this.#release === undefined)
        throw new LogError('log-in-use', `The log ${path} has a writer already.`, { path });
      lastSeq = seq;
      this.#continue(header, generation);
      await this.#stream.append(this.#header, Buffer.alloc(0), seq).catch((error: unknown) => {
        if (!isAway(error) && !isConflict(error)) throw error;
      });
    }
  }

  #continue(last: MessageHead | undefined, generation: number): void {
    const boot = this.#stream.server ?? '';
    const end = { ...placeAfter(last), line: last?.line ?? newId(), gen: generation };
    const { place, after } =
      last === undefined || last.boot === boot ? { place: end, after: undefined } : afterLoss(end);
    this.#first = place.offset;
    this.#state = stateBefore(end);
    this.#header = { ...place, boot, state: [], after, run: this.#id, next: place, part: 0, parts: 1 };
  }

  /** Takes as many records as a message should have. */
  #take(): readonly [MessageHead, Buffer] {
    const { boot, run, next: before } = this.#header;
    const state = snapshotAt(this.#state, before.at);
    let [next, text]: [Place, string] = [before, ''];
    while (text.length < batchBytes) {
      const event = this.#waiting.shift()?.event;
      if (event === undefined) break;
      this.#state = folded(this.#state, event, next.at);
      for (const record of recordsOf(this.#state, event)) {
        const time = stamped(record);
        const at = Math.max(time, next.at);
        text += recordLine(next.offset, record, time, at);
        next = afterRecord(next, record, at);
      }
    }
    return [{ ...before, boot, run, state, next, part: 0, parts: 1 }, Buffer.from(text)];
  }

  async #store(header: MessageHead, body: Buffer): Promise<void> {
    const room = this.#stream.roomFor(header);
    const parts = Math.ceil(body.length / room);
    this.#isStoring = true;
    for (let part = 0; part < parts; part += 1)
      await this.#append({ ...header, part, parts }, body.subarray(part * room, (part + 1) * room));
    this.#isStoring = false;
    this.#header = header;
    this.#tell(false);
  }

  async #append(header: MessageHead, body: Buffer): Promise<void> {
    const after = this.#seq;
    for (;;) {
      try {
        this.#seq = await this.#stream.append(header, body, after);
        this.#isRefused = false;
        return;
      } catch (error) {
        const { seq = 0, header: newest } = await this.#persist(() => this.#stream.last());
        this.#seq = seq;
        // Only its confirmation was lost.
        if (newest?.run === this.#id && seq === after + 1) return;
        if (seq < after)
          throw new Error(`NATS has lost ${after - seq} messages that it had confirmed`, { cause: error });
        if (seq > after) throw this.#fenced();
        if (!isAway(error) && !this.#isRefused) {
          this.#isRefused = true;
          this.#failed(error, true);
        }
        if (this.#isOver()) throw error;
        await setTimeout(againMs);
      }
    }
  }

  #fenced(): LogError {
    const { path } = this.#stream;
    return new LogError('log-fenced', `Another writer continues the log ${path}.`, { path });
  }

  readonly #isOver = (): boolean => Date.now() - (this.#endedAt ?? Infinity) > lastMs;

  #persist<T>(request: () => Promise<T>): Promise<T> {
    return this.#stream.persist(request, this.#isOver);
  }

  #tell(closed: boolean): void {
    const { run: boot, next } = this.#header;
    const isIdle = this.#waiting.size === 0 && !this.#isStoring;
    const at = isIdle ? reachedAt(this.#time, next) : next.at;
    // A connection is complete after some time, also without a record.
    const { until = Infinity } = this.#state.settling ?? {};
    if (isIdle && !closed && at >= until) this.#push({ type: 'watermark', at });
    const { line, offset } = next;
    this.#stream.tell({ pid: process.pid, line, boot, run: this.#first, offset, at, writtenAt: 0, closed });
  }
}

const newId = (): string => randomBytes(6).toString('hex');

const bytesOf = (event: Waiting): number => (event.type === 'frame' ? event.byteLength : 0) + 256;

const folded = (state: FeedState, event: Waiting, newestAt?: number): FeedState => {
  if (event.type === 'lost') return afterFrame(state, event.to);
  return event.type === 'frame' ? afterFrame(state, event.receivedAt, event) : afterEvent(state, event, newestAt);
};

const recordsOf = ({ gaps }: FeedState, event: Waiting): readonly Stored[] => {
  if (event.type === 'lost') return [...gaps, logGap('writeFailed', event.from, event.to, event.missed)];
  // A gap of the source counts as well.
  return event.type === 'watermark' || event.type === 'gap' ? gaps : [...gaps, event];
};
