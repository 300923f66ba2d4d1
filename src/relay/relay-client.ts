import {
  concat,
  defer,
  EMPTY,
  expand,
  filter,
  ignoreElements,
  merge,
  Observable,
  of,
  ReplaySubject,
  type SchedulerLike,
  type Subscriber,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { timeOf } from '../operators/items/item.js';
import { writeEventLine } from '../protocol/event-line.js';
import type { LifecycleEvent } from '../protocol/event.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { relayReports } from '../protocol/failures/meanings.js';
import { afterTime, relayGap } from '../protocol/feed-state.js';
import type { Checkpoint } from './entries.js';
import { linesOf } from './event-log.js';
import { messageOfStream, type RelayMessage, withStream } from './relay-message.js';
import type { RelayReceiver } from './relay-options.js';
import type { Report } from './relay-reports.js';
import type { LiveRun } from './feeds.js';
import { reachedWith, type RelayRun, withWatermark } from './relay-run.js';
import { advance, idWithoutPosition, isBehind, join, type JoinKind, type Progress, skip } from './resume.js';
import { inTurn, laneFor, type Turns } from './turns.js';

/** What the clients of a relay share. */
export interface ClientHub {
  readonly scheduler: SchedulerLike;
  readonly heartbeats$: Observable<unknown>;
  readonly watermarks$: Observable<unknown>;
  /** Emits per subscriber once its stream has reached `maxAgeMs`. */
  readonly tooOld$: Observable<unknown>;
  readonly report: (event: Report) => void;
  readonly turns: Turns;
  /** Counts the clients that have joined. */
  joined: number;
}

/** Why the relay ends a stream while the feed goes on. */
export type EndReason = 'closing' | 'sessionEnded' | 'replaced';

/** Holds a client's place from its request until its stream has ended. */
export class Slot {
  /**
   * Set once authorized. `stream` names its stream, if `maxClientsPerUser` applies: the client's next one replaces it.
   */
  admitted: { readonly user: string | undefined; readonly stream: string | undefined } | undefined;
  client: RelayClient | undefined;
  readonly ended$ = new ReplaySubject<void>(1);
  endReason: EndReason | undefined;
  /** Users disconnected while this client was being authorized. */
  readonly disconnected = new Set<string>();

  /** Ends the stream. A client still reading the end of a run learns that the relay closes, or what replaced it. */
  end(reason: EndReason): void {
    const isFinal = this.endReason === 'closing' || (this.endReason === 'replaced' && reason === 'sessionEnded');
    if (!isFinal) this.endReason = reason;
    this.ended$.next();
  }
}

/** A client that hasn't read for this many heartbeats is stuck. */
const maxSilentBeats = 4;

/** A watermark that's older by less than this needs no update while events arrive, in ms. */
const freshMs = 125;

/** Time a client gets to read the remaining events of an ending stream, in ms: between reads, and in total. */
const lastRead = { maxPauseMs: 500, maxMs: 5_000 };

/**
 * Sends one client its messages: after new events, when its response has drained, and at each watermark and heartbeat.
 * They bypass the operators that time them and go straight to `subscriber`: that's most of what a page costs.
 *
 * Completes the subscriber after the last message of the run. Completes when the client is stuck, or when the relay
 * ends the stream: the client then first receives the events that are due, if it still reads, and `connect-again`.
 */
export const sendTo = (
  subscriber: Subscriber<RelayMessage>,
  { run, batches$ }: LiveRun,
  hub: ClientHub,
  slot: Slot,
  { lastEventId, response, sinceMs }: Pick<RelayReceiver, 'lastEventId' | 'response' | 'sinceMs'>,
): Observable<unknown> => {
  const client = (slot.client = new RelayClient(run, hub, { lastEventId, sinceMs }, slot.admitted?.stream));
  hub.report({ type: 'client-joined', client: client.number, joined: client.joined });
  const emit = (message: RelayMessage | undefined): void => {
    if (message === undefined) return;
    subscriber.next(message);
    if (message.type === 'connect-again' || message.type === 'complete') subscriber.complete();
  };
  const { turns } = hub;
  const isFull = () => response?.writableNeedDrain === true;
  const hasMore = () => !subscriber.closed && client.isDue;
  const send = () => turns.wrote(client.send(emit, () => subscriber.closed || isFull(), turns.clientBytes));
  let unreadBeats = 0;
  const drained$ = new Observable<void>((drains) => {
    // A slow client's response may be full at each heartbeat and still drain in between.
    const listener = (): void => {
      unreadBeats = 0;
      drains.next();
    };
    response?.on('drain', listener);
    return () => response?.off('drain', listener);
  });
  const sends$ = new Observable<never>((sends) => {
    const sendInTurn = (): void => {
      send();
      if (hasMore() && !isFull()) turns.later(sendInTurn, laneFor(client.dueBytes));
    };
    sends.add(() => turns.drop(sendInTurn));
    sendInTurn();
    // A client that already has the last message must not subscribe to the source.
    if (subscriber.closed) return;
    sends.add(batches$.subscribe(() => isFull() || turns.run(sendInTurn, laneFor(client.dueBytes))));
    // While there are many clients, every response drains after every message. In a replay it drains at once, for as
    // long as the kernel takes it.
    sends.add(drained$.subscribe(() => client.isDue && turns.later(sendInTurn, laneFor(client.dueBytes))));
  });
  const whileRead$ = (source: Observable<unknown>, act: () => void): Observable<never> =>
    source.pipe(
      inTurn(turns, 'live'),
      filter(() => !isFull()),
      tap(act),
      ignoreElements(),
    );
  const live$ = merge(
    sends$,
    whileRead$(hub.heartbeats$, () => emit(client.heartbeat())),
    whileRead$(hub.watermarks$, () => emit(client.watermark())),
  );
  const stuck$ = hub.heartbeats$.pipe(
    filter(() => (unreadBeats = isFull() ? unreadBeats + 1 : 0) === maxSilentBeats),
    tap(() => {
      hub.report({ type: 'client-stuck', client: client.number });
      response?.destroy();
    }),
  );
  return concat(
    live$.pipe(takeUntil(merge(slot.ended$, hub.tooOld$).pipe(inTurn(turns, 'live')))),
    lastSends$({ drained$, send, isFull, hasMore }, hub),
    defer(() => of(client.connectAgain(slot.endReason ?? 'sessionEnded')).pipe(tap(emit))),
  ).pipe(takeUntil(stuck$));
};

/** What the end of a stream needs of its client. */
interface Sender {
  readonly drained$: Observable<void>;
  readonly send: () => void;
  readonly isFull: () => boolean;
  readonly hasMore: () => boolean;
}

/** Sends the rest in turns, for as long as the client reads. */
const lastSends$ = (
  { drained$, send, isFull, hasMore }: Sender,
  { turns, scheduler }: Pick<ClientHub, 'turns' | 'scheduler'>,
): Observable<unknown> => {
  const next$ = (): Observable<unknown> => {
    const read$ = drained$.pipe(takeUntil(timer(lastRead.maxPauseMs, scheduler)));
    if (isFull()) return read$.pipe(take(1), inTurn(turns, 'replay'));
    return hasMore() ? of(undefined).pipe(inTurn(turns, 'replay')) : EMPTY;
  };
  return of(undefined).pipe(
    tap(send),
    expand(() => next$().pipe(tap(send))),
    takeUntil(timer(lastRead.maxMs, scheduler)),
  );
};

/** Creates one client's messages, starting at its position in the log. */
export class RelayClient {
  readonly number: number;
  readonly since: number;
  readonly joined: JoinKind;
  readonly #run: RelayRun;
  readonly #isLate: boolean;
  readonly #report: ClientHub['report'];
  /** The `Last-Event-ID` of a resuming client, repeated by the messages before its first events. */
  readonly #requestId: string | undefined;
  readonly #stream: string | undefined;
  #progress: Progress;
  /** Of the lines that were sent. */
  #bytes = 0;
  /** `undefined` once sent. */
  #firstEvents: readonly LifecycleEvent[] | undefined;
  #isBehindReported = false;
  /** Whether a batch was sent since the last tick of the watermarks. */
  #hasSentBatch = false;
  /** The last watermark the client received, possibly from another relay. */
  #watermark: number;
  #reached: number;

  constructor(
    run: RelayRun,
    hub: ClientHub,
    { lastEventId, sinceMs }: Pick<RelayReceiver, 'lastEventId' | 'sinceMs'>,
    stream: string | undefined,
  ) {
    this.number = hub.joined += 1;
    this.since = hub.scheduler.now();
    this.#run = run;
    this.#isLate = run.ended !== undefined;
    this.#report = hub.report;
    this.#stream = stream;
    const { joined, reached, progress, events } = join(run, lastEventId, sinceMs);
    this.joined = joined;
    this.#requestId = joined === 'new' ? undefined : lastEventId;
    this.#watermark = this.#reached = reached;
    this.#progress = progress;
    this.#firstEvents = events;
  }

  get sent(): number {
    return this.#progress.sent;
  }

  get missed(): number {
    return this.#progress.missed;
  }

  /** Sends what's due, up to the message that exceeds `maxBytes`. Returns the bytes of the log it has sent. */
  send(emit: (message: RelayMessage) => void, isStopped: () => boolean, maxBytes = Infinity): number {
    const from = this.#bytes;
    this.#sendSome(emit, () => isStopped() || this.#bytes - from >= maxBytes);
    return this.#bytes - from;
  }

  #sendSome(emit: (message: RelayMessage) => void, isStopped: () => boolean): void {
    const events = this.#firstEvents;
    // The feed has stopped and the client has every event, so no stream starts: it gets a 503, and a load balancer can
    // try another replica.
    if (events !== undefined && this.#isAtNewest && this.#isLate && this.#run.ended?.failure !== undefined)
      return this.#sendLast(emit);
    if (events !== undefined) {
      emit(this.#message(JSON.stringify({ at: this.#run.log.clock() }), 'hello'));
      this.#firstEvents = undefined;
      if (events.length > 0) emit(this.#messageOf(events));
    }
    while (!isStopped()) {
      const message = this.#nextMessage();
      if (message === undefined) return this.#sendLast(emit);
      emit(message);
      if (!this.isDue) return this.#sendLast(emit);
    }
  }

  /** Returns the watermark at the client's position, unless events are due or the client already has it. */
  watermark(): RelayMessage | undefined {
    const watermark = this.#watermarkHere;
    const areEventsDue = this.#firstEvents !== undefined || !this.#isAtNewest;
    // While events arrive, each batch has a watermark, and a page doesn't need another one.
    const isFresh = this.#hasSentBatch && watermark < this.#watermark + freshMs;
    this.#hasSentBatch = false;
    if (areEventsDue || isFresh || watermark <= this.#watermark) return undefined;
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

  #nextMessage(): RelayMessage | undefined {
    const { log } = this.#run;
    const wasBehind = isBehind(this.#progress, log);
    const { progress, events } = skip(this.#progress, log);
    this.#progress = progress;
    if (wasBehind) this.#reportBehind();
    if (events.length > 0) return this.#messageOf(events);
    if (progress.pendingGapFrom !== undefined) return this.#nextBeforeGap(progress.pendingGapFrom);
    const batch = log.read(progress.position);
    if (batch === undefined) return undefined;
    this.#advance(batch.end);
    this.#hasSentBatch = true;
    const isShared = batch.watermark >= this.#watermark && reachedWith(batch) >= this.#reached;
    this.#sent(Math.max(batch.watermark, this.#watermark));
    return isShared
      ? messageOfStream(this.#run.messageOf(batch), this.#stream)
      : this.#message(withWatermark(linesOf(batch), this.#watermark));
  }

  #advance(end: Checkpoint): void {
    this.#bytes += end.written - this.#progress.position.written;
    this.#progress = advance(this.#progress, end);
  }

  #sendLast(emit: (message: RelayMessage) => void): void {
    const end = this.#run.lastMessage(this.#isLate);
    this.#isBehindReported = false;
    if (end !== undefined) emit(this.#message(end.data, end.type));
  }

  /** Whether the client may have to receive more than it has. */
  get isDue(): boolean {
    return this.#firstEvents !== undefined || !this.#isAtNewest || this.#run.ended !== undefined;
  }

  get dueBytes(): number {
    return this.#run.log.newest.written - this.#progress.position.written;
  }

  get #isAtNewest(): boolean {
    return this.#progress.position.offset === this.#run.log.newest.offset;
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
    const one = log.readOne(position);
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
    const { position } = this.#progress;
    // If the connection drops before the first events are sent, the next one must send them.
    if (this.#firstEvents !== undefined && this.#requestId !== undefined) return this.#requestId;
    const at = Math.max(this.#reached, position.at);
    return idWithoutPosition(this.#progress, at) ?? this.#run.idAt(position, at);
  }
}
