import type { Received } from '../../protocol/event-line.js';
import type { ResumePoint } from '../resume-point.js';

/** Sends events that came together, and the ids before and after them: equal when no message of the relay brought the events. */
type Send = (from: string | undefined, to: string | undefined, events: readonly Received[]) => void;

/** Gathers the events of each message that a leader receives: the other tabs get one message for it as well. */
export class Outbox {
  readonly #place: ResumePoint;
  readonly #send: Send;
  #events: Received[] = [];

  constructor(place: ResumePoint, send: Send) {
    this.#place = place;
    this.#send = send;
  }

  /** Takes an event in. One that no message of the relay brought is sent at the end of the task. */
  add(event: Received): void {
    if (this.#events.length === 0) queueMicrotask(() => this.flush());
    this.#events.push(event);
  }

  /** Sends the events that came outside of a message of the relay. */
  flush(): void {
    const id = this.#place.lastEventId();
    if (this.#events.length > 0) this.#sendAll(id, id);
  }

  /** Forgets the events that were not sent. */
  clear(): void {
    this.#events = [];
  }

  /** The place of the leader: when it reaches the next one, the events of the message are sent. */
  place(): ResumePoint {
    const place = this.#place;
    return {
      get shiftMs() {
        return place.shiftMs;
      },
      set shiftMs(ms) {
        place.shiftMs = ms;
      },
      lastEventId: () => place.lastEventId(),
      reached: (id) => {
        const from = place.lastEventId();
        place.reached(id);
        this.#sendAll(from, place.lastEventId());
      },
    };
  }

  #sendAll(from: string | undefined, to: string | undefined): void {
    const events = this.#events;
    this.#events = [];
    if (events.length > 0 || from !== to) this.#send(from, to, events);
  }
}
