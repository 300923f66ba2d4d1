import type { RelayedEvent } from '../protocol/event.js';
import { gapOf, presentBehindGap, presentSince } from './catch-up.js';
import { eventId, parseEventId } from './event-id.js';
import type { Position } from './event-log.js';
import type { RelayMessage } from './relay-message.js';
import type { RelayRun } from './relay-run.js';

/** How a client came: for the first time, back in time, or back too late for everything. */
export type Joined = 'new' | 'resumed' | 'behind';

/** One client: a place in the log, and what it has to be told next. */
export class RelayClient {
  readonly joined: Joined;
  readonly #run: RelayRun;
  readonly #now: () => number;
  readonly #onBehind: () => void;
  #position: Position;
  readonly #cameWith: string | undefined;
  #first: readonly RelayedEvent[] | undefined;
  #sent = 0;
  #missed = 0;
  #isBehind = false;

  constructor(run: RelayRun, lastEventId: string | undefined, now: () => number, onBehind: () => void) {
    this.#run = run;
    this.#now = now;
    this.#onBehind = onBehind;
    const { epoch, log } = run;
    const id = parseEventId(lastEventId);
    const known = id?.epoch === epoch ? log.positionAt(id.seq) : undefined;
    this.#position = known ?? log.newest;
    const { at, frames, present } = this.#position;
    if (id === undefined) {
      this.joined = 'new';
      this.#first = presentSince(present, now());
    } else if (known !== undefined) {
      this.joined = 'resumed';
      this.#first = presentSince(present, at);
    } else {
      this.joined = 'behind';
      this.#cameWith = lastEventId;
      const missed = id.epoch === epoch ? Math.max(0, frames - id.frames) : undefined;
      this.#missed = missed ?? 0;
      this.#first = presentBehindGap(present, { from: Math.min(id.at, now()), to: now(), frames: missed });
    }
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
    if (first !== undefined) {
      this.#first = undefined;
      const hello = this.#message(JSON.stringify({ at: this.#now() }), 'hello');
      // A connection that is lost right behind it must not hide the gap from the next one.
      yield this.#cameWith === undefined ? hello : { ...hello, id: this.#cameWith };
      if (first.length > 0) yield this.#told(first);
    }
    while (!isFull()) {
      const message = this.#next();
      if (message === undefined) return;
      yield message;
    }
  }

  /** Gives the message that only shows that the relay is there. */
  heartbeat(): RelayMessage {
    return this.#message('', 'heartbeat');
  }

  #next(): RelayMessage | undefined {
    const { log, end } = this.#run;
    if (this.#position.seq < log.oldest.seq) return this.#told(this.#skipTo(log.oldest));
    const batch = log.read(this.#position);
    if (batch !== undefined) {
      this.#sent += batch.end.frames - this.#position.frames;
      this.#position = batch.end;
      return this.#run.messageOf(batch);
    }
    this.#isBehind = false;
    return end && this.#message(end.data, end.type);
  }

  #skipTo(oldest: Position): readonly RelayedEvent[] {
    const { at: from, frames, present } = this.#position;
    const missed = { from, to: oldest.at, frames: oldest.frames - frames };
    this.#missed += missed.frames;
    this.#position = oldest;
    // Once until it has caught up: one that is slower than the feed for good would fill a log.
    if (!this.#isBehind) this.#onBehind();
    this.#isBehind = true;
    return present === oldest.present ? [gapOf(missed)] : presentBehindGap(oldest.present, missed);
  }

  #told(events: readonly RelayedEvent[]): RelayMessage {
    return this.#message(events.map((event) => JSON.stringify(event)).join('\n'));
  }

  #message(data: string, type?: string): RelayMessage {
    const id = eventId(this.#run.epoch, this.#position);
    return type === undefined ? { id, data } : { id, type, data };
  }
}
