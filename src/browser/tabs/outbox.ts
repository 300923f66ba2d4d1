import type { Received } from '../../protocol/event-line.js';
import type { ResumePoint } from '../resume-point.js';

/** Sends the events of one message of the relay, with the ids before and after it. Equal ids: the events are not from the relay. */
type Send = (from: string | undefined, to: string | undefined, events: readonly Received[]) => void;

/** Collects the events that a leader receives. The other tabs receive one message for each message of the relay. */
export class Outbox {
  readonly #point: ResumePoint;
  readonly #send: Send;
  #events: Received[] = [];

  constructor(point: ResumePoint, send: Send) {
    this.#point = point;
    this.#send = send;
  }

  /** Adds an event. An event that is not from the relay is sent at the end of the task. */
  add(event: Received): void {
    if (this.#events.length === 0) queueMicrotask(() => this.flush());
    this.#events.push(event);
  }

  /** Sends the events that are not from the relay. */
  flush(): void {
    const id = this.#point.lastEventId();
    if (this.#events.length > 0) this.#sendAll(id, id);
  }

  /** Removes the events that are not sent. */
  clear(): void {
    this.#events = [];
  }

  /** Returns the point of the leader. When it reaches the next id, the events of the message are sent. */
  point(): ResumePoint {
    const point = this.#point;
    return {
      get shiftMs() {
        return point.shiftMs;
      },
      set shiftMs(ms) {
        point.shiftMs = ms;
      },
      lastEventId: () => point.lastEventId(),
      reached: (id) => {
        const from = point.lastEventId();
        point.reached(id);
        this.#sendAll(from, point.lastEventId());
      },
    };
  }

  #sendAll(from: string | undefined, to: string | undefined): void {
    const events = this.#events;
    this.#events = [];
    if (events.length > 0 || from !== to) this.#send(from, to, events);
  }
}
