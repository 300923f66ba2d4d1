import { EMPTY, from, type Observable, tap } from 'rxjs';
import type { Watermark } from '../../protocol/event.js';
import type { Received } from '../../protocol/event-line.js';
import { nextSnapshot, openedIn, type Snapshot } from '../../protocol/snapshot.js';
import { relayError } from '../../protocol/failures/relay-error.js';
import type { ResumePoint } from '../resume-point.js';
import { takeBatch, type Taken, takeWelcome } from './place.js';
import type { FromLeader, Welcome } from './tab-message.js';

/** How a leader goes: its lock is free, or it was silent and is robbed of it. */
export type Loss = 'relay-lost' | 'relay-stalled';

/** What one subscription knows, whether its tab leads or follows. */
export class Tab {
  /** A word of its own, for the answer to `join`. */
  readonly name = crypto.randomUUID();
  readonly place: ResumePoint;
  /** The newest leader that this tab has received from. */
  term = 0;
  /** Whether the leader has answered: what comes after its answer is for this tab. */
  isWelcome = false;
  readonly #now: () => number;
  #present: Snapshot = [];
  #watermark: Watermark | undefined;
  #heardAt: number;
  #openSince = 0;
  #frames = 0;

  /** @param now - gives the time in epoch ms */
  constructor(place: ResumePoint, now: () => number) {
    this.place = place;
    this.#now = now;
    this.#heardAt = now();
  }

  /** Takes note of an event that this tab emits. */
  emitted(event: Received): void {
    // Neither says how the feed is: the error that follows `stopped` ends this subscription.
    if (event.type === 'stopped' || event.type === 'value') return;
    if (event.type === 'frame') this.#frames += 1;
    else if (event.type === 'watermark') this.#watermark = event;
    else if (event.type === 'opened') [this.#openSince, this.#frames] = [this.#now(), 0];
    this.#present = nextSnapshot(this.#present, event);
  }

  /** Takes a message of a leader; emits what this tab emits for it. One of an earlier leader has nothing for it. */
  receive(message: FromLeader): Observable<Received> {
    if (message.term < this.term) return EMPTY;
    this.term = message.term;
    this.#heardAt = this.#now();
    if (message.type === 'welcome' && message.tab === this.name && !this.isWelcome) {
      this.isWelcome = true;
      return this.#take(takeWelcome(this.place.lastEventId(), message, this.#now()), message.shiftMs);
    }
    if (message.type === 'batch' && this.isWelcome)
      return this.#take(takeBatch(this.place.lastEventId(), message), message.shiftMs);
    return EMPTY;
  }

  /** Begins a term as the leader. */
  lead(): void {
    this.term = Math.max(this.term + 1, Date.now());
  }

  /** Answers a tab that joins. */
  welcome(tab: string): Welcome {
    const { term, place } = this;
    const [present, watermark] = [this.#present, this.#watermark];
    return { type: 'welcome', term, tab, id: place.lastEventId(), shiftMs: place.shiftMs, present, watermark };
  }

  /** Gives the events for the loss of the leader, if the feed was open through it: those of a connection to the relay that ends. */
  interrupted(code: Loss): readonly Received[] {
    if (openedIn(this.#present) === undefined) return [];
    const at = this.#now();
    const endedAt = code === 'relay-stalled' ? this.#heardAt : at;
    const uptimeMs = Math.max(0, endedAt - this.#openSince);
    const failure = relayError({ code, uptimeMs, framesReceived: this.#frames, endedAt });
    return [
      { type: 'disconnected', at, failure },
      { type: 'reconnecting', at, delayMs: 0, attempt: 1, verdict: failure.verdict },
    ];
  }

  #take({ events, id = '' }: Taken, shiftMs: number): Observable<Received> {
    this.place.shiftMs = shiftMs;
    return from(events).pipe(tap({ complete: () => this.place.reached(id) }));
  }
}
