import type { LifecycleEvent } from '../protocol/event.js';
import { writeEventLine } from '../protocol/event-line.js';
import { hasBeenOpen, openedIn, relayGap, type Snapshot, snapshotAfterGap, snapshotNotBefore, snapshotSince } from '../protocol/snapshot.js';
import { createFailure } from '../protocol/failures/meaning.js';
import { relayReports } from '../protocol/failures/relay-meanings.js';
import type { Missed } from '../protocol/gap.js';
import { eventId } from './event-id.js';
import type { Position } from './event-log.js';
import { isNear, type Joined, joining } from './joining.js';
import type { RelayMessage } from './relay-message.js';
import { type RelayRun, withWatermark } from './relay-run.js';

/** Why the relay ends a stream that could go on. */
export type SentAway = 'closing' | 'sessionEnded';

/** One client: a place in the log, and what it has to be told next. */
export class RelayClient {
  readonly joined: Joined;
  readonly #run: RelayRun;
  /** Whether the source had ended when it came. */
  readonly #isLate: boolean;
  readonly #now: () => number;
  readonly #onBehind: () => void;
  #position: Position;
  readonly #cameWith: string | undefined;
  #first: readonly LifecycleEvent[] | undefined;
  #sent = 0;
  #missed = 0;
  #isBehind = false;
  /** The last watermark that it was sent, in epoch ms. */
  #watermark = -Infinity;
  /** Since when frames may be missing that nobody has told of, in epoch ms: the gap follows with the next opening. */
  #missingSince: number | undefined;
  /** Events up to this time, in epoch ms, are not sent: another relay has sent later ones. */
  #seenUntil: number | undefined;
  /** Whether a gap covers events that are not sent for that reason. */
  #isSkipTold = false;

  constructor(run: RelayRun, lastEventId: string | undefined, now: () => number, onBehind: () => void) {
    this.#run = run;
    this.#isLate = run.end !== undefined;
    this.#now = now;
    this.#onBehind = onBehind;
    const { joined, place, missed, seenUntil } = joining(run.log, run.epoch, lastEventId, now());
    this.joined = joined;
    this.#position = place;
    this.#seenUntil = seenUntil;
    if (missed !== undefined) {
      this.#cameWith = lastEventId;
      this.#missed = missed.frames ?? 0;
      this.#first = this.#behind(place.present, missed);
    } else if (joined === 'new') this.#first = snapshotSince(place.present, run.log.joinedAt(now()));
    else this.#first = snapshotNotBefore(place.present, Math.max(place.at, seenUntil ?? -Infinity));
  }

  /** How many frames it was sent. */
  get sent(): number {
    return this.#sent;
  }

  /** How many frames it was not sent, and told of. */
  get missed(): number {
    return this.#missed;
  }

  /** Gives what is to be sent, message by message, for as long as `isFull` does not say otherwise. */
  *messages(isFull: () => boolean): Iterable<RelayMessage> {
    const first = this.#first;
    if (this.#isRefused()) {
      const refusal = this.#last();
      if (refusal !== undefined) yield refusal;
      return;
    }
    if (first !== undefined) {
      this.#first = undefined;
      const hello = this.#message(JSON.stringify({ at: this.#now() }), 'hello');
      yield this.#cameWith === undefined ? hello : { ...hello, id: this.#cameWith };
      if (first.length > 0) yield this.#told(first);
    }
    while (!isFull()) {
      const message = this.#next();
      if (message === undefined) return;
      yield message;
    }
  }

  /** Gives the watermark of the place of this client, unless events are waiting, or it has got this one. */
  *watermark(): Iterable<RelayMessage> {
    const { log } = this.#run;
    const watermark = this.#watermarkHere();
    if (this.#first !== undefined || this.#position.seq !== log.newest.seq || watermark <= this.#watermark) return;
    this.#watermark = watermark;
    yield this.#message(withWatermark('', watermark));
  }

  /** Gives the message that only shows that the relay is there. */
  heartbeat(): RelayMessage {
    return this.#message('', 'heartbeat');
  }

  /** Gives the last message of a stream that the relay ends: the client goes on from here, on another connection. */
  connectAgain(why: SentAway): RelayMessage {
    const failure = createFailure(relayReports[why], { stage: 'stream', endedAt: this.#now() });
    return this.#message(JSON.stringify(failure), 'connect-again');
  }

  #next(): RelayMessage | undefined {
    const { log } = this.#run;
    if (this.#position.seq < log.oldest.seq) return this.#told(this.#skipTo(log.oldest));
    const skipped = this.#skipSeen();
    if (skipped.length > 0) return this.#told(skipped);
    if (this.#missingSince !== undefined) return this.#nextUntilOpen(this.#missingSince) ?? this.#last();
    const batch = log.read(this.#position);
    if (batch === undefined) return this.#last();
    this.#goTo(batch.end);
    this.#watermark = batch.watermark;
    return this.#run.messageOf(batch);
  }

  // The feed has stopped and there is nothing to send, so the stream does not begin: over HTTP that is a 503, and a load balancer can ask
  // another replica.
  #isRefused(): boolean {
    const { end, log } = this.#run;
    const hasNothing = this.#first !== undefined && this.#position.seq === log.newest.seq;
    return this.#isLate && end?.type === 'connect-again' && hasNothing;
  }

  #last(): RelayMessage | undefined {
    const end = this.#isLate ? this.#run.lateEnd : this.#run.end;
    this.#isBehind = false;
    return end && this.#message(end.data, end.type);
  }

  // Event by event: the gap goes behind the opening, and nowhere else.
  #nextUntilOpen(from: number): RelayMessage | undefined {
    const one = this.#run.log.readOne(this.#position);
    if (one === undefined) return undefined;
    const isFrame = one.end.frames > this.#position.frames;
    this.#goTo(one.end);
    const opened = openedIn(one.end.present);
    if (opened === undefined) return this.#message(one.lines);
    this.#missingSince = undefined;
    const gap = writeEventLine(relayGap({ from, to: opened.at, frames: undefined }));
    return this.#message(isFrame ? `${gap}\n${one.lines}` : `${one.lines}\n${gap}`);
  }

  // What comes from a source that is later than the one of the relay before, or has another clock.
  #skipSeen(): readonly LifecycleEvent[] {
    const { log } = this.#run;
    const until = this.#seenUntil;
    if (until === undefined) return [];
    if (this.#position.at > until || !isNear(log, until, this.#now())) {
      this.#seenUntil = undefined;
      return [];
    }
    const before = this.#position;
    const place = log.placeAfter(until);
    if (place.seq <= before.seq) return [];
    this.#position = place;
    if (this.#missingSince !== undefined)
      return this.#behind(place.present, { from: this.#missingSince, to: until, frames: undefined });
    const present = place.present === before.present ? [] : snapshotNotBefore(place.present, until);
    if (this.#isSkipTold || place.frames === before.frames) return present;
    this.#isSkipTold = true;
    const missed = { from: log.earliestAfter(before.seq), to: until, frames: undefined };
    return present.length === 0 ? [relayGap(missed)] : snapshotAfterGap(place.present, missed);
  }

  #goTo(end: Position): void {
    this.#sent += end.frames - this.#position.frames;
    this.#position = end;
  }

  #skipTo(oldest: Position): readonly LifecycleEvent[] {
    const { at: from, frames, present } = this.#position;
    const to = Math.max(this.#run.log.timeAt(oldest), this.#seenUntil ?? -Infinity);
    const missed = { from, to, frames: oldest.frames - frames };
    this.#missed += missed.frames;
    // It reaches up to what another relay has sent.
    this.#isSkipTold = true;
    this.#position = oldest;
    // Once until it has caught up: one that is slower than the feed for good would fill a log.
    if (!this.#isBehind) this.#onBehind();
    this.#isBehind = true;
    return present === oldest.present ? [relayGap(missed)] : this.#behind(oldest.present, missed);
  }

  // While the feed has not been open yet, nobody knows where the gap ends.
  #behind(present: Snapshot, missed: Missed): readonly LifecycleEvent[] {
    const from = this.#missingSince ?? missed.from;
    this.#missingSince = hasBeenOpen(present) ? undefined : from;
    return this.#missingSince === undefined ? snapshotAfterGap(present, { ...missed, from }) : present;
  }

  #told(events: readonly LifecycleEvent[]): RelayMessage {
    const lines = events.map(writeEventLine).join('\n');
    this.#watermark = this.#watermarkHere();
    return this.#message(withWatermark(lines, this.#watermark));
  }

  // Nothing up to the time that the client has seen follows.
  #watermarkHere(): number {
    const watermark = this.#run.log.watermarkAt(this.#position);
    return watermark === -Infinity ? watermark : Math.max(watermark, this.#seenUntil ?? -Infinity);
  }

  #message(data: string, type?: string): RelayMessage {
    // A connection that is lost before the gap is told must not hide it from the next one.
    const came = this.#missingSince === undefined ? undefined : this.#cameWith;
    const { seq, frames, at } = this.#position;
    // A time after that of the place says that this client has seen more than this log: `joining` reads it.
    const seenAt = this.#seenUntil === undefined ? at : Math.max(at, this.#seenUntil + 1);
    const id = came ?? eventId(this.#run.epoch, { seq, frames, at: seenAt });
    return type === undefined ? { id, data } : { id, type, data };
  }
}
