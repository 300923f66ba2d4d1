import type { Subscription } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { Connection, Message } from './connection.js';
import type { ServiceSettings } from './service-options.js';

interface Waiting {
  readonly feed: Feed;
  readonly message: Message;
  readonly due: number;
}

/** How many bytes may wait for an account that isn't connected. Beyond that, new frames are lost. */
const maxBytes = 64 * 1024 * 1024;

/**
 * The delay of the Free plan for one account (contract, sections 1 and 8): holds its frames back, in order. What is
 * due while no connection of its feed is open is lost.
 */
export class DelayLine {
  readonly #settings: ServiceSettings;
  readonly #connection: () => Connection | undefined;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #timer: Subscription | undefined;

  /** @param connection - returns the account's live connection, if it has one */
  constructor(settings: ServiceSettings, connection: () => Connection | undefined) {
    this.#settings = settings;
    this.#connection = connection;
  }

  push(feed: Feed, message: Message): void {
    const { limits, scheduler } = this.#settings;
    const bytes = this.#bytes + message.data.length;
    if (bytes > maxBytes && this.#connection() === undefined) return;
    this.#bytes = bytes;
    this.#waiting.push({ feed, message, due: scheduler.now() + limits.freeDelayMs });
    this.#timer ??= this.#releaseAfter(limits.freeDelayMs);
  }

  /** Sends everything at once. */
  flush(): void {
    this.hold();
    this.#release(Infinity);
  }

  /** Keeps everything until {@link DelayLine.flush}. */
  hold(): void {
    this.#timer?.unsubscribe();
    this.#timer = undefined;
  }

  /** Drops everything. */
  clear(): void {
    this.hold();
    this.#waiting = [];
    this.#bytes = 0;
  }

  #releaseAfter(ms: number): Subscription {
    const { scheduler } = this.#settings;
    return scheduler.schedule(() => {
      this.#release(scheduler.now());
      // Writing may have ended the connection, and the clock with it.
      if (this.#timer === undefined) return;
      const [next] = this.#waiting;
      // Rounds up: timers drop fractions of a millisecond, and no message may be early. Writing may have taken longer.
      this.#timer = next && this.#releaseAfter(Math.max(0, Math.ceil(next.due - scheduler.now())));
    }, ms);
  }

  #release(now: number): void {
    const next = this.#waiting.findIndex(({ due }) => due > now);
    const due = this.#waiting.splice(0, next < 0 ? this.#waiting.length : next);
    for (const { feed, message } of due) {
      this.#bytes -= message.data.length;
      const connection = this.#connection();
      if (connection?.feed === feed) connection.send(message);
    }
  }
}
