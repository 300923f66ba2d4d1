import type { ClusterLifecycleEvent, Disconnected, Stopped } from '../../protocol/event.js';
import { type FeedState, isOfRelay } from '../../protocol/feed-state.js';
import { type Waiting, waitingFor, type WaitingFor, waitMs, waitsFor } from '../../protocol/event-record.js';
import { FeedFollower } from './follow-feed.js';

/** How often to check whether a frame has arrived, in ms. This way, frames don't have to read the clock. */
const tickMs = 500;

/** Measures how long a feed waits or is down. Its clock is monotonic, so setting the wall clock hides no outage. */
export class FeedWatch {
  readonly #report: (waiting: Waiting) => void;
  readonly #feed = new FeedFollower();
  #waitsFor: WaitingFor | undefined = 'source';
  #waiting: Waiting | undefined;
  #downSinceMs: number | undefined = performance.now();
  #liveSinceMs = 0;
  /** When the source last gave the time of its stream; `Infinity` if it never has. */
  #heardMs = Infinity;
  /** How long a connection may be silent before a report. Grows if the feed proves to be quiet. */
  #quietMs = waitMs;
  #waitedMs = 0;
  #hasItem = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param report - called once each time the feed has waited for 5 s */
  constructor(report: (waiting: Waiting) => void = () => undefined) {
    this.#report = report;
    this.#restart();
  }

  get feed(): Pick<FeedFollower, 'state' | 'snapshotAt' | 'joinedAt'> {
    return this.#feed;
  }

  get state(): FeedState {
    return this.#feed.state;
  }

  /** What the feed has waited for too long; `undefined` if nothing. */
  get waiting(): Waiting | undefined {
    return this.#waiting;
  }

  /** How long the feed has had no connection, in ms; `undefined` while one is open. */
  get downMs(): number | undefined {
    return this.#downSinceMs === undefined ? undefined : performance.now() - this.#downSinceMs;
  }

  /** How long the connection has been open, in ms; 0 if there is none. */
  get liveMs(): number {
    return this.#downSinceMs === undefined ? performance.now() - this.#liveSinceMs : 0;
  }

  event(event: ClusterLifecycleEvent): void {
    const before = this.#waitsFor;
    this.#waitsFor = waitsFor(this.#feed.next(event));
    if (event.type === 'watermark') this.#heardMs = performance.now();
    else if (event.type === 'opened') this.#open();
    else if (event.type === 'disconnected' || event.type === 'stopped') this.#downSinceMs ??= this.#endedMs(event);
    if (event.type === 'opened' || this.#waitsFor !== before) this.#restart();
  }

  /** Receives a frame, or a value created from frames. */
  item(item: unknown): void {
    this.#hasItem = true;
    this.#feed.next(item);
    if (this.#waitsFor === 'stream' && this.#waiting === undefined) return;
    // The feed continues after a silence, so it's just quiet: wait longer before the next report.
    if (this.#waitsFor === 'stream') this.#quietMs *= 2;
    this.#waitsFor = 'stream';
    if (this.#downSinceMs !== undefined) this.#open();
    this.#restart();
  }

  /** Stops the timer. Call it when the subscription ends. */
  end(): void {
    clearTimeout(this.#timer);
  }

  /** A stalled connection was down before anybody noticed. A page or a replica says it later, in its stream's time. */
  #endedMs({ at, failure }: Disconnected | Stopped): number {
    const endedMs = performance.now() - Math.max(0, at - failure.endedAt);
    return isOfRelay({ failure, hasStopped: false }) ? Math.min(endedMs, this.#heardMs) : endedMs;
  }

  #open(): void {
    this.#downSinceMs = undefined;
    this.#liveSinceMs = performance.now();
  }

  #restart(): void {
    this.#waiting = undefined;
    this.#waitedMs = 0;
    clearTimeout(this.#timer);
    if (this.#waitsFor !== undefined) this.#tick(this.#waitsFor);
  }

  #tick(what: WaitingFor): void {
    // eslint-disable-next-line no-restricted-globals -- a timer of RxJS would keep the process alive
    this.#timer = setTimeout(() => {
      this.#waitedMs = this.#hasItem ? 0 : this.#waitedMs + tickMs;
      this.#hasItem = false;
      if (this.#waitedMs < (what === 'stream' ? this.#quietMs : waitMs)) return this.#tick(what);
      this.#waiting = waitingFor(what, this.#waitedMs);
      this.#report(this.#waiting);
    }, tickMs);
    // In a browser, timers have no `unref`.
    (this.#timer as { readonly unref?: () => unknown }).unref?.();
  }
}
