import type { SchedulerLike } from 'rxjs';
import type { WaitingFrames } from '../../../src/testing/index.js';
import type { Chance } from '../../simulation/chance.js';

/** What a run varies: the service, its network, and what the client knows of it. */
export interface Case {
  readonly plan: 'free' | 'developer';
  /** What becomes of frames that wait for the delay when a connection closes. */
  readonly waiting: WaitingFrames;
  /** How many frames the service sees, on average. */
  readonly perSecond: number;
  /** How much longer than usual a message may take, in ms. */
  readonly jitterMs: number;
  /** How much longer the answer to a handshake may take, in ms. */
  readonly answerJitterMs: number;
  readonly deliveryDelayMs: 'auto' | number;
}

/** The delay of the Free plan (contract, section 8), in ms. */
const freeDelayMs = 500;
/** How long a message takes at least, in ms. */
export const latencyMs = 5;

/** A frame that the service saw. */
export interface Sent {
  readonly n: number;
  /** When a connection that was always open would have received it, at the earliest. */
  readonly expectedAt: number;
  /** For a lost one: the connection that it was lost on, or the last one before. */
  lostOn: Wire | undefined;
}

/** One direction of a connection: messages arrive in order, each after its delay. */
export class Wire {
  /** When the client learned that this connection had ended; the end of the one before if it never opened. */
  endedAt = -Infinity;
  readonly #scheduler: SchedulerLike;
  readonly #chance: Chance;
  readonly #jitterMs: number;
  #onWay: { readonly at: number; readonly arrive: () => void; readonly frame: Sent | undefined }[] = [];
  #last = 0;
  #isWaiting = false;

  constructor(scheduler: SchedulerLike, chance: Chance, jitterMs: number) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#jitterMs = jitterMs;
  }

  send(arrive: () => void, frame?: Sent, jitterMs = this.#jitterMs): void {
    const delayMs = latencyMs + Math.round(this.#chance.random() * jitterMs);
    this.#last = Math.max(this.#last, this.#scheduler.now() + delayMs);
    this.#onWay.push({ at: this.#last, arrive, frame });
    this.#wait();
  }

  /** Loses what is on its way, as a reset does. Returns the lost frames. */
  reset(): readonly Sent[] {
    const lost = this.#onWay.flatMap(({ frame }) => frame ?? []);
    this.#onWay = [];
    return lost;
  }

  #wait(): void {
    const [next] = this.#onWay;
    if (this.#isWaiting || next === undefined) return;
    this.#isWaiting = true;
    this.#scheduler.schedule(() => {
      this.#isWaiting = false;
      const now = this.#scheduler.now();
      while (this.#onWay[0] !== undefined && this.#onWay[0].at <= now) this.#onWay.shift()!.arrive();
      this.#wait();
    }, next.at - this.#scheduler.now());
  }
}

/** An open connection, at the service. */
export interface Live {
  readonly wire: Wire;
  readonly receive: (frame: Sent) => void;
}

/** The service with one account. It sees frames all the time. */
export class Service {
  readonly sent: Sent[] = [];
  readonly #scheduler: SchedulerLike;
  readonly #chance: Chance;
  readonly #case: Case;
  #live: Live | undefined;
  #lastWire: Wire | undefined;
  #waiting: { readonly frame: Sent; readonly due: number }[] = [];
  #timers = 0;
  /** When it sees the next frame. */
  nextAt = 0;
  /** Whether it sees no more frames. */
  isQuiet = false;

  constructor(scheduler: SchedulerLike, chance: Chance, of: Case) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#case = of;
    this.#seeNext();
  }

  open(live: Live): void {
    this.#live = live;
    live.wire.endedAt = this.#lastWire?.endedAt ?? -Infinity;
    this.#lastWire = live.wire;
    if (this.#case.waiting === 'send-on-reconnect') for (const { frame } of this.#waiting.splice(0)) this.#write(frame);
  }

  close(wire: Wire): void {
    if (this.#live?.wire !== wire) return;
    this.#live = undefined;
    if (this.#case.waiting === 'send-when-due') return;
    this.#timers += 1;
    if (this.#case.waiting === 'drop') for (const { frame } of this.#waiting.splice(0)) this.lose(frame);
  }

  lose(frame: Sent): void {
    frame.lostOn = this.#lastWire;
  }

  // In the middle of a ms, because connections open and close between two: so no frame of the ms of an `opened` is lost before it.
  #seeNext(): void {
    const now = this.#scheduler.now();
    const waitMs = Math.max(1, Math.round((1_000 / this.#case.perSecond) * this.#chance.between(0.2, 1.8)));
    this.nextAt = Math.floor(now) + waitMs + 0.5;
    this.#scheduler.schedule(() => {
      if (this.isQuiet) return;
      this.#see(this.#scheduler.now());
      this.#seeNext();
    }, this.nextAt - now);
  }

  #see(now: number): void {
    const delayMs = this.#case.plan === 'free' ? freeDelayMs : 0;
    const expectedAt = now + delayMs + latencyMs;
    const frame: Sent = { n: this.sent.length + 1, expectedAt, lostOn: undefined };
    this.sent.push(frame);
    if (this.#live === undefined && (delayMs === 0 || this.#case.waiting !== 'send-when-due')) return this.lose(frame);
    if (delayMs === 0) return this.#write(frame);
    this.#waiting.push({ frame, due: now + delayMs });
    if (this.#waiting.length === 1) this.#releaseAfter(delayMs);
  }

  #releaseAfter(ms: number): void {
    const timer = (this.#timers += 1);
    this.#scheduler.schedule(() => {
      if (timer !== this.#timers) return;
      const now = this.#scheduler.now();
      while (this.#waiting[0] !== undefined && this.#waiting[0].due <= now) this.#write(this.#waiting.shift()!.frame);
      if (this.#waiting[0] !== undefined) this.#releaseAfter(this.#waiting[0].due - now);
    }, ms);
  }

  #write(frame: Sent): void {
    if (this.#live === undefined) return this.lose(frame);
    const { wire, receive } = this.#live;
    wire.send(() => receive(frame), frame);
  }
}
