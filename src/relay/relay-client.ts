import { timeOf } from '../operators/items/item.js';
import { writeEventLine } from '../protocol/event-line.js';
import type { Gap, LifecycleEvent } from '../protocol/event.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { relayReports } from '../protocol/failures/meanings.js';
import { afterTime, eventsNotBefore, relayGap } from '../protocol/feed-state.js';
import { Block, withWatermark } from './block.js';
import type { Checkpoint } from './chunk.js';
import { linesOf } from './event-log.js';
import type { Place, StoredRecords } from '../protocol/place.js';
import type { RelayHub } from './hub.js';
import type { PageOutput } from './page-output.js';
import { isMarkDue } from './pages.js';
import { publicEvent } from './public-json.js';
import { dataFields, type RelayMessage, withStream } from './relay-message.js';
import type { RelayReceiver } from './relay-options.js';
import { nothing, type RelayRun } from './relay-run.js';
import { advance, afterStored, idOf, isBehind, join, type JoinKind, lackedBy, type Progress, skip } from './resume.js';

/** Why the relay ends a stream while the feed goes on. */
export type EndReason = 'closing' | 'sessionEnded' | 'replaced';

/** Where the messages of a client go. */
type Output = Pick<PageOutput, 'isOver' | 'isFull' | 'send' | 'write'>;

/** Creates one client's messages, starting at its position in the log. */
export class RelayClient {
  readonly number: number;
  readonly since: number;
  readonly joined: JoinKind;
  readonly #run: RelayRun;
  readonly #isLate: boolean;
  readonly #report: RelayHub['report'];
  /** The `Last-Event-ID` of a resuming client, repeated by the messages before its first events. */
  readonly #requestId: string | undefined;
  readonly #stream: string | undefined;
  #settled: Progress;
  /** The last block that a live client has received, which isn't in the fields below yet. */
  #block: Block | undefined;
  /** Of the lines that were sent. */
  #bytes = 0;
  /** `undefined` once sent. */
  #firstEvents: readonly LifecycleEvent[] | undefined;
  /** Whether what the memory of the relay lacks may be in the store. */
  #isStored: boolean;
  /** The type of the last status from the store, until the client continues in the memory. */
  #stored: { readonly status: LifecycleEvent['type'] | undefined } | undefined;
  #isBehindReported = false;
  /** Whether a batch was sent since the last tick of the watermarks. */
  #hasSentBatch = false;
  /** The last watermark the client received, possibly from another relay. */
  #watermark: number;
  #reached: number;

  constructor(
    run: RelayRun,
    hub: RelayHub,
    { lastEventId, sinceMs }: Pick<RelayReceiver, 'lastEventId' | 'sinceMs'>,
    stream: string | undefined,
  ) {
    this.number = hub.joined += 1;
    this.since = hub.scheduler.now();
    this.#run = run;
    this.#isLate = run.ended !== undefined;
    this.#report = hub.report;
    this.#stream = stream;
    this.#isStored = run.store !== undefined;
    const { joined, reached, progress, events } = join(run, lastEventId, sinceMs);
    this.joined = joined;
    this.#requestId = joined === 'new' ? undefined : lastEventId;
    this.#watermark = this.#reached = reached;
    this.#settled = progress;
    this.#firstEvents = events;
  }

  get sent(): number {
    return this.#progress.sent;
  }

  get missed(): number {
    return this.#settled.missed;
  }

  get offset(): number {
    return this.#position.offset;
  }

  /** Whether the client has every event, and its next message is that of all live clients. */
  get isLive(): boolean {
    const { resume, pendingGapFrom } = this.#settled;
    return !this.isDue && resume.from === 'here' && pendingGapFrom === undefined;
  }

  /** The place after which the client continues in the store; `undefined` if the memory has what follows. */
  get storedAfter(): Place | undefined {
    const { resume } = this.#settled;
    return resume.from === 'store' ? resume.received : undefined;
  }

  /** Whether the client has received records of the store, and so the status. */
  get hasStored(): boolean {
    return this.#stored !== undefined;
  }

  /** Returns whether the client continues in the store. */
  #enterStore(): boolean {
    const progress = this.#progress;
    const received = lackedBy(progress, this.#run.log);
    if (received === undefined) return false;
    // A client that was live knows the status.
    if (progress.resume.from === 'here') this.#stored = { status: progress.position.state.events.at(-1)?.type };
    this.#progress = { ...progress, resume: { from: 'store', received } };
    return true;
  }

  /** Sends records of the store. Goes on in the memory once that has what follows. Returns the bytes of the records. */
  sendStored(records: StoredRecords, output: Output): number {
    const { end } = records;
    const { fields, bytes, status, cut } = storedPart(records, this.#reached);
    const progress = this.#progress;
    const missed = progress.missed + (cut?.missed ?? 0);
    this.#progress = {
      ...progress,
      sent: progress.sent + records.frames,
      missed,
      resume: { from: 'store', received: end },
    };
    this.#reached = Math.max(this.#reached, end.at);
    this.#stored = { status: status ?? this.#stored?.status };
    if (cut !== undefined) this.#reportBehind();
    if (bytes > 0)
      output.write(new Block({ ...nothing, from: -1, end: progress.position }, fields, this.#id, this.#run.log.memory));
    this.#continueAfter(end, true, output);
    return bytes;
  }

  /** Waits for the first events of the source, if the memory has none. They tell whether more is in the store. */
  waitForSource(): boolean {
    const { resume } = this.#progress;
    const isEmpty = this.#run.log.newest.offset === 0;
    if (isEmpty && resume.from === 'store')
      this.#progress = { ...this.#progress, resume: { ...resume, from: 'source' } };
    return isEmpty;
  }

  /** Continues in the memory: the store lacks what comes before, or can't be read. */
  leaveStore(output: Output): void {
    const after = this.storedAfter;
    this.#isStored = false;
    if (after !== undefined) this.#continueAfter(after, false, output);
  }

  #continueAfter(received: Place, isStored: boolean, output: Output): void {
    const { progress, events } = afterStored(this.#progress, this.#run.log, received, isStored);
    this.#progress = progress;
    const unknown = this.#unknown(events);
    if (unknown.some(({ type }) => type === 'gap')) this.#reportBehind();
    if (unknown.length > 0) output.send(this.#messageOf(unknown));
  }

  /** Leaves out the status that the client has from the store: twice, it would look like another connection. */
  #unknown(events: readonly LifecycleEvent[]): readonly LifecycleEvent[] {
    const isKnown = this.#stored?.status === 'opened' && events.some(({ type }) => type === 'opened');
    if (this.#progress.resume.from === 'here') this.#stored = undefined;
    return isKnown ? events.filter(({ type }) => type === 'gap') : events;
  }

  /** Records a block that follows the position of a live client. Returns whether the client may receive it. */
  receive(block: Block): boolean {
    // Another relay may have sent a later watermark.
    if (this.#block === undefined && (this.#watermark > block.watermark || this.#reached > block.reached)) return false;
    this.#block = block;
    return true;
  }

  /** Sends what's due, up to the message that exceeds `maxBytes`. Returns the bytes of the log it has sent. */
  send(output: Output, maxBytes = Infinity): number {
    const from = this.#bytes;
    this.#sendSome(output, () => output.isOver || output.isFull || this.#bytes - from >= maxBytes);
    return this.#bytes - from;
  }

  #sendSome(output: Output, isStopped: () => boolean): void {
    const events = this.#firstEvents;
    // The feed has stopped and the client has every event, so no stream starts: it gets a 503, and a load balancer can
    // try another replica.
    if (events !== undefined && this.#isComplete && this.#isLate && this.#run.ended?.failure !== undefined)
      return this.#sendLast(output);
    if (events !== undefined) {
      output.send(this.#message(JSON.stringify({ at: this.#run.log.clock() }), 'hello'));
      this.#firstEvents = undefined;
      if (events.length > 0) output.send(this.#messageOf(events));
    }
    while (!isStopped() && !this.#isInStore()) {
      const message = this.#nextMessage();
      if (this.#isInStore()) return;
      if (message === undefined) return this.#sendLast(output);
      if (message instanceof Block) output.write(message);
      else output.send(message);
      if (!this.isDue) return this.#sendLast(output);
    }
  }

  /** Returns the watermark at the client's position, unless events are due or the client already has it. */
  watermark(): RelayMessage | undefined {
    const watermark = this.#watermarkHere;
    const areEventsDue = this.#firstEvents !== undefined || !this.#isComplete;
    const isDue = !areEventsDue && isMarkDue(watermark, this.#watermark, this.#hasSentBatch);
    this.#hasSentBatch = false;
    if (!isDue) return undefined;
    const gap = this.#gapUntil(watermark).map(writeEventLine).join('\n');
    this.#sent(watermark);
    return this.#message(withWatermark(gap, watermark));
  }

  heartbeat(): RelayMessage {
    return this.#message('', 'heartbeat');
  }

  /** Returns the last message of a stream that the relay ends. The client resumes here on its next connection. */
  connectAgain(reason: EndReason): RelayMessage {
    const failure = createFailure(relayReports[reason], { stage: 'stream', endedAt: this.#run.log.clock() });
    return this.#message(JSON.stringify(failure), 'connect-again');
  }

  #nextMessage(): RelayMessage | Block | undefined {
    const { log } = this.#run;
    if (this.#isStored && this.#enterStore()) return undefined;
    const wasBehind = isBehind(this.#progress, log);
    const { progress, events: all } = skip(this.#progress, log);
    this.#progress = progress;
    const events = this.#unknown(all);
    if (wasBehind) this.#reportBehind();
    if (events.length > 0) return this.#messageOf(events);
    if (progress.pendingGapFrom !== undefined) return this.#nextBeforeGap(progress.pendingGapFrom);
    const block = this.#run.blockAfter(progress.position);
    if (block === undefined) return undefined;
    this.#hasSentBatch = true;
    const isShared = block.watermark >= this.#watermark && block.reached >= this.#reached;
    const lines = isShared ? '' : linesOf(log.read(progress.position));
    this.#advance(block.end);
    this.#sent(Math.max(block.watermark, this.#watermark));
    return isShared ? block : this.#message(withWatermark(lines, this.#watermark));
  }

  #advance(end: Checkpoint): void {
    this.#bytes += end.written - this.#position.written;
    this.#progress = advance(this.#progress, end);
  }

  #sendLast(output: Output): void {
    const end = this.#run.lastMessage(this.#isLate);
    this.#isBehindReported = false;
    if (end !== undefined) output.send(this.#message(end.data, end.type));
  }

  /** Whether the client may have to receive more than it has. */
  get isDue(): boolean {
    if (this.#firstEvents !== undefined) return true;
    return !this.#isInStore() && (!this.#isAtNewest || this.#run.ended !== undefined);
  }

  get dueBytes(): number {
    return this.#run.log.newest.written - this.#position.written;
  }

  #isInStore(): boolean {
    return this.storedAfter !== undefined;
  }

  /** Whether the client has every event. */
  get #isComplete(): boolean {
    return this.#isAtNewest && !this.#isInStore();
  }

  get #isAtNewest(): boolean {
    return this.#position.offset === this.#run.log.newest.offset;
  }

  /** Its place in the log. */
  get #position(): Checkpoint {
    return this.#block?.end ?? this.#settled.position;
  }

  get #progress(): Progress {
    const block = this.#block;
    if (block !== undefined) {
      this.#block = undefined;
      this.#settled = advance(this.#settled, block.end);
      this.#watermark = block.watermark;
      this.#reached = block.reached;
    }
    return this.#settled;
  }

  set #progress(progress: Progress) {
    this.#settled = progress;
  }

  // Reports once until the client has caught up. Otherwise a client that's always too slow would flood the app's log.
  #reportBehind(): void {
    if (!this.#isBehindReported) this.#report({ type: 'client-behind', client: this.number, missed: this.missed });
    this.#isBehindReported = true;
  }

  /**
   * Sends events one by one, and the gap as soon as the connection is complete: before its first frame, or once its time
   * is over. With a fixed `deliveryDelayMs`, another gap precedes the first frame.
   */
  #nextBeforeGap(from: number): RelayMessage | undefined {
    const { log } = this.#run;
    const { position } = this.#progress;
    const one = log.read(position, 0);
    if (one === undefined) return undefined;
    this.#advance(one.end);
    const lines = linesOf(one);
    const { open, completeFrom, settling } = one.end.state;
    const isFrame = one.end.frames > position.frames;
    const isFirst = isFrame && settling?.isFixed === true && from <= settling.openedAt;
    const to = completeFrom ?? (isFirst ? one.end.at : undefined);
    if (open === undefined || to === undefined) return this.#message(lines);
    this.#progress = { ...this.#progress, pendingGapFrom: completeFrom === undefined ? to : undefined };
    const gap = writeEventLine(relayGap({ from, to, frames: undefined }));
    return this.#message(isFrame ? `${gap}\n${lines}` : `${lines}\n${gap}`);
  }

  /** Returns the gap that's pending, if the connection is complete by now although nothing has arrived. */
  #gapUntil(watermark: number): readonly LifecycleEvent[] {
    const { pendingGapFrom: from, position } = this.#progress;
    const { open, completeFrom } = afterTime(position.state, watermark);
    if (from === undefined || open === undefined || completeFrom === undefined) return [];
    this.#progress = { ...this.#progress, pendingGapFrom: undefined };
    return [relayGap({ from, to: completeFrom, frames: undefined })];
  }

  #messageOf(events: readonly LifecycleEvent[]): RelayMessage {
    const lines = events.map(writeEventLine).join('\n');
    this.#sent(this.#watermarkHere, ...events.map((event) => timeOf(event) as number));
    return this.#message(withWatermark(lines, this.#watermark));
  }

  // A client of a relay whose clock was ahead may have a later watermark, and must not receive events from before it.
  get #watermarkHere(): number {
    return Math.max(this.#run.log.watermarkAt(this.#progress.position), this.#watermark);
  }

  #sent(watermark: number, ...times: readonly number[]): void {
    this.#watermark = watermark;
    this.#reached = Math.max(this.#reached, this.#progress.position.at, watermark, ...times);
  }

  #message(data: string, type?: string): RelayMessage {
    const id = withStream(this.#id, this.#stream);
    return type === undefined ? { id, data } : { id, type, data };
  }

  get #id(): string {
    // If the connection drops before the first events are sent, the next one must send them.
    if (this.#firstEvents !== undefined && this.#requestId !== undefined) return this.#requestId;
    return idOf(this.#progress, this.#reached);
  }
}

/**
 * Returns the fields of a message with records of a store, the type of the last event that says whether the feed is
 * open, and the gap in place of what exceeds `maxReplayBytes`.
 *
 * @param reached - the time that the client has reached: it receives no earlier event
 */
const storedPart = ({ parts }: StoredRecords, reached: number) => {
  const isEvent = (part: Uint8Array | LifecycleEvent): part is LifecycleEvent => !(part instanceof Uint8Array);
  const events = parts.filter(isEvent);
  const fields = parts.map((part) => (isEvent(part) ? eventFields(part, reached) : viewOf(part)));
  return {
    fields,
    bytes: fields.reduce((sum, { length }) => sum + length, 0),
    status: events.findLast(({ type }) => type !== 'gap')?.type,
    cut: events.find((event): event is Gap => event.type === 'gap' && event.failure.code === 'relay-behind'),
  };
};

const eventFields = (event: LifecycleEvent, reached: number): Buffer =>
  Buffer.from(
    eventsNotBefore([event], reached)
      .map((each) => dataFields(writeEventLine(publicEvent(each))))
      .join(''),
  );

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength);
