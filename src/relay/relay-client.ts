import { relayGap, openedIn } from '../protocol/snapshot.js';
import type { LifecycleEvent } from '../protocol/event.js';
import { writeEventLine } from '../protocol/event-line.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { relayReports } from '../protocol/failures/relay-meanings.js';
import { advance, type ClientProgress, firstStep, isBehind, skip } from './client-progress.js';
import { formatEventId } from '../protocol/event-id.js';
import type { RelayMessage } from './relay-message.js';
import { type RelayRun, withWatermark } from './relay-run.js';
import { type JoinKind, startPosition } from './start-position.js';

/** Why the relay ends a stream that could continue. */
export type EndReason = 'closing' | 'sessionEnded';

/** Creates the messages of one client, from its position in the log on. */
export class RelayClient {
  readonly joined: JoinKind;
  readonly #run: RelayRun;
  /** Whether the source had ended when the client joined. */
  readonly #isLate: boolean;
  readonly #now: () => number;
  readonly #onBehind: () => void;
  /** The `Last-Event-ID` of a client that needs a gap. Messages before the gap repeat this id. */
  readonly #requestId: string | undefined;
  #progress: ClientProgress;
  /** The events of the first message; `undefined` once it is sent. */
  #firstEvents: readonly LifecycleEvent[] | undefined;
  #isBehindReported = false;
  /** The last watermark that was sent, in epoch ms. */
  #watermark = -Infinity;

  constructor(run: RelayRun, lastEventId: string | undefined, now: () => number, onBehind: () => void) {
    this.#run = run;
    this.#isLate = run.end !== undefined;
    this.#now = now;
    this.#onBehind = onBehind;
    const start = startPosition(run.log, run, lastEventId, now());
    const { progress, events } = firstStep(run.log, start, now());
    this.joined = start.joined;
    this.#requestId = start.missed && lastEventId;
    this.#progress = progress;
    this.#firstEvents = events;
  }

  /** The number of frames that were sent. */
  get sent(): number {
    return this.#progress.sent;
  }

  /** The number of frames that were not sent, and that a gap has reported. */
  get missed(): number {
    return this.#progress.missed;
  }

  /** Yields the messages that are due, until `isFull` returns `true`. */
  *messages(isFull: () => boolean): Iterable<RelayMessage> {
    const events = this.#firstEvents;
    if (this.#isRefused()) {
      const refusal = this.#lastMessage();
      if (refusal !== undefined) yield refusal;
      return;
    }
    if (events !== undefined) {
      this.#firstEvents = undefined;
      const hello = this.#message(JSON.stringify({ at: this.#now() }), 'hello');
      yield this.#requestId === undefined ? hello : { ...hello, id: this.#requestId };
      if (events.length > 0) yield this.#messageOf(events);
    }
    while (!isFull()) {
      const message = this.#nextMessage();
      if (message === undefined) return;
      yield message;
    }
  }

  /** Yields the watermark at the position of this client, unless events are due or the client has this watermark. */
  *watermark(): Iterable<RelayMessage> {
    const { log } = this.#run;
    const watermark = this.#watermarkHere();
    const areEventsDue = this.#firstEvents !== undefined || this.#progress.position.seq !== log.newest.seq;
    if (areEventsDue || watermark <= this.#watermark) return;
    this.#watermark = watermark;
    yield this.#message(withWatermark('', watermark));
  }

  /** Returns a message without events, which shows that the relay is alive. */
  heartbeat(): RelayMessage {
    return this.#message('', 'heartbeat');
  }

  /** Returns the last message of a stream that the relay ends: the client resumes here on another connection. */
  connectAgain(reason: EndReason): RelayMessage {
    const failure = createFailure(relayReports[reason], { stage: 'stream', endedAt: this.#now() });
    return this.#message(JSON.stringify(failure), 'connect-again');
  }

  #nextMessage(): RelayMessage | undefined {
    const { log } = this.#run;
    const wasBehind = isBehind(this.#progress, log);
    const { progress, events } = skip(this.#progress, log, this.#now());
    this.#progress = progress;
    if (wasBehind) this.#reportBehind();
    if (events.length > 0) return this.#messageOf(events);
    if (progress.missingSince !== undefined) return this.#nextBeforeGap(progress.missingSince) ?? this.#lastMessage();
    const batch = log.read(progress.position);
    if (batch === undefined) return this.#lastMessage();
    this.#progress = advance(progress, batch.end);
    this.#watermark = batch.watermark;
    return this.#run.messageOf(batch);
  }

  // The feed has stopped, and the client has every event. The relay starts no stream: over HTTP the client receives a 503, so a load balancer
  // can try another replica.
  #isRefused(): boolean {
    const { end, log } = this.#run;
    const hasEveryEvent = this.#firstEvents !== undefined && this.#progress.position.seq === log.newest.seq;
    return this.#isLate && end?.type === 'connect-again' && hasEveryEvent;
  }

  #lastMessage(): RelayMessage | undefined {
    const end = this.#isLate ? this.#run.lateEnd : this.#run.end;
    this.#isBehindReported = false;
    return end && this.#message(end.data, end.type);
  }

  // One report until the client has caught up. Otherwise a client that is always too slow would fill the app's log.
  #reportBehind(): void {
    if (!this.#isBehindReported) this.#onBehind();
    this.#isBehindReported = true;
  }

  // Sends single events, because the gap must follow `opened` directly.
  #nextBeforeGap(from: number): RelayMessage | undefined {
    const { position } = this.#progress;
    const one = this.#run.log.readOne(position);
    if (one === undefined) return undefined;
    this.#progress = advance(this.#progress, one.end);
    const opened = openedIn(one.end.snapshot);
    if (opened === undefined) return this.#message(one.lines);
    this.#progress = { ...this.#progress, missingSince: undefined };
    const gap = writeEventLine(relayGap({ from, to: opened.at, frames: undefined }));
    const isFrame = one.end.frames > position.frames;
    return this.#message(isFrame ? `${gap}\n${one.lines}` : `${one.lines}\n${gap}`);
  }

  #messageOf(events: readonly LifecycleEvent[]): RelayMessage {
    const lines = events.map(writeEventLine).join('\n');
    this.#watermark = this.#watermarkHere();
    return this.#message(withWatermark(lines, this.#watermark));
  }

  // Events up to `seenUntil` are skipped, so none of them follows.
  #watermarkHere(): number {
    const { position, seenUntil } = this.#progress;
    const watermark = this.#run.log.watermarkAt(position);
    return watermark === -Infinity ? watermark : Math.max(watermark, seenUntil ?? -Infinity);
  }

  #message(data: string, type?: string): RelayMessage {
    const { position, seenUntil, seen, missingSince } = this.#progress;
    // If the connection is lost before the gap is sent, the next connection must send it. So the client keeps the id of its request.
    const requestId = missingSince === undefined ? undefined : this.#requestId;
    // If `at` is later than the position, the client has events of another relay up to `at`. `startPosition` reads it.
    const at = seenUntil === undefined ? position.at : Math.max(position.at, seenUntil + 1);
    const seenId = seen && formatEventId(seen.run, { seq: seen.sequence, frames: seen.frames, at: seen.at });
    const id = requestId ?? seenId ?? this.#run.idAt({ ...position, at });
    return type === undefined ? { id, data } : { id, type, data };
  }
}
