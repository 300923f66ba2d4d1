import { EMPTY, from, type Observable, tap } from 'rxjs';
import type { Watermark } from '../../protocol/event.js';
import type { Received } from '../../protocol/event-line.js';
import { nextSnapshot, openedIn, type Snapshot } from '../../protocol/snapshot.js';
import { relayError } from '../../protocol/failures/relay-error.js';
import type { ResumePoint } from '../resume-point.js';
import { type Applied, applyBatch, applyWelcome } from './apply-message.js';
import type { FromLeader, Welcome } from './tab-message.js';

/** How a leader was lost: it has released the lock, or it was silent and its lock was stolen. */
export type LeaderLoss = 'relay-lost' | 'relay-stalled';

/** The state of one subscription, as a leader or as a follower. */
export class TabState {
  /** Identifies this tab in the answer to `join`. */
  readonly name = crypto.randomUUID();
  readonly point: ResumePoint;
  /** The term of the newest leader that this tab has received from. */
  term = 0;
  /** Whether the leader has answered `join`: batches after its answer are for this tab. */
  isWelcome = false;
  readonly #now: () => number;
  #snapshot: Snapshot = [];
  #watermark: Watermark | undefined;
  #lastMessageAt: number;
  #openSince = 0;
  #frames = 0;

  /** @param now - returns the time in epoch ms */
  constructor(point: ResumePoint, now: () => number) {
    this.point = point;
    this.#now = now;
    this.#lastMessageAt = now();
  }

  /** Records an event that this tab emits. */
  emitted(event: Received): void {
    // Neither is part of the state: the error after `stopped` ends this subscription.
    if (event.type === 'stopped' || event.type === 'value') return;
    if (event.type === 'frame') this.#frames += 1;
    else if (event.type === 'watermark') this.#watermark = event;
    else if (event.type === 'opened') [this.#openSince, this.#frames] = [this.#now(), 0];
    this.#snapshot = nextSnapshot(this.#snapshot, event);
  }

  /** Processes a message of a leader, and emits the events of this tab for it. Ignores an earlier leader. */
  receive(message: FromLeader): Observable<Received> {
    if (message.term < this.term) return EMPTY;
    this.term = message.term;
    this.#lastMessageAt = this.#now();
    if (message.type === 'welcome' && message.tab === this.name && !this.isWelcome) {
      this.isWelcome = true;
      return this.#apply(applyWelcome(this.point.lastEventId(), message, this.#now()), message.shiftMs);
    }
    if (message.type === 'batch' && this.isWelcome)
      return this.#apply(applyBatch(this.point.lastEventId(), message), message.shiftMs);
    return EMPTY;
  }

  /** Begins a term as the leader. */
  lead(): void {
    this.term = Math.max(this.term + 1, Date.now());
  }

  /** Creates the answer for a tab that joins. */
  welcome(tab: string): Welcome {
    const { term, point } = this;
    const [snapshot, watermark] = [this.#snapshot, this.#watermark];
    return { type: 'welcome', term, tab, id: point.lastEventId(), shiftMs: point.shiftMs, snapshot, watermark };
  }

  /** Returns the events for the loss of the leader, if the feed was open: the same as after the end of a connection to the relay. */
  interrupted(code: LeaderLoss): readonly Received[] {
    if (openedIn(this.#snapshot) === undefined) return [];
    const at = this.#now();
    const endedAt = code === 'relay-stalled' ? this.#lastMessageAt : at;
    const uptimeMs = Math.max(0, endedAt - this.#openSince);
    const failure = relayError({ code, uptimeMs, framesReceived: this.#frames, endedAt });
    return [
      { type: 'disconnected', at, failure },
      { type: 'reconnecting', at, delayMs: 0, attempt: 1, verdict: failure.verdict },
    ];
  }

  #apply({ events, id = '' }: Applied, shiftMs: number): Observable<Received> {
    this.point.shiftMs = shiftMs;
    return from(events).pipe(tap({ complete: () => this.point.reached(id) }));
  }
}
