import { Observable, type Subscriber } from 'rxjs';
import { createLifecycle, type Lifecycle } from '../../src/feed/lifecycle.js';
import type { FeedEvent, LifecycleEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../src/protocol/frame.js';
import type { WaitingFrames } from '../../src/testing/index.js';
import type { Chance } from './chance.js';
import type { Time } from './world.js';

// The service of the contract, its network, and clients with the lifecycle of the real feed. Frames are sent in the middle of a ms, and
// connections open between two: so no frame of the ms of an `opened` is lost before it.

/** How long a message takes at least, in ms. */
const latencyMs = 5;
/** How long a connection is silent before the client calls it stalled, in ms. */
const idleTimeoutMs = 1_500;

/** A frame that the service has seen. */
export interface Sent {
  readonly n: number;
  /** When a connection that is always open receives it, at the earliest. */
  readonly at: number;
}

/** How a service treats its connections, and what its clients know of that. Times in ms. */
export interface ServiceOptions {
  /** How long it holds each frame back: 500 on the Free plan. */
  readonly delayMs: number;
  /** What becomes of frames that wait for the delay when a connection closes. */
  readonly waiting: WaitingFrames;
  /** The option of all clients. */
  readonly deliveryDelayMs: 'auto' | number;
  /** How much longer than usual a message may take, and the answer to a handshake. */
  readonly jitterMs: number;
  readonly answerJitterMs: number;
  /** The share of ticket requests that it refuses. */
  readonly refusals: number;
  /** Decides the time to the next frames, and how many there are. */
  readonly waitMs: () => number;
  readonly burst?: () => number;
}

/** The service. It sees frames all the time, and numbers them. */
export class Service {
  readonly sent: Sent[] = [];
  readonly time: Time;
  readonly chance: Chance;
  readonly options: ServiceOptions;
  readonly feeds: SimulatedFeed[] = [];
  /** When it sees the next frame. */
  nextAt = 0;
  /** Whether it sees no more frames. */
  isQuiet = false;

  constructor(time: Time, chance: Chance, options: ServiceOptions) {
    this.time = time;
    this.chance = chance;
    this.options = options;
    this.#seeNext();
  }

  #seeNext(): void {
    const { waitMs, burst = () => 1 } = this.options;
    this.nextAt = this.time.clock.now() + Math.max(1, Math.round(waitMs())) + 0.5;
    this.time.after(this.nextAt - this.time.now(), () => {
      if (this.isQuiet) return;
      for (let left = burst(); left > 0; left -= 1) this.#see();
      this.#seeNext();
    });
  }

  #see(): void {
    const frame = { n: this.sent.length + 1, at: this.time.now() + this.options.delayMs + latencyMs };
    this.sent.push(frame);
    for (const { account } of this.feeds) account.see(frame);
  }
}

/** One direction of a connection: messages arrive in order, each after its delay. */
class Wire {
  /** When the client learned that this connection had ended; the end of the one before if it never opened. */
  endedAt = -Infinity;
  readonly receive: (frame: Sent) => void;
  readonly #service: Service;
  #onWay: { readonly at: number; readonly arrive: () => void; readonly frame: Sent | undefined }[] = [];
  #last = 0;
  #isWaiting = false;

  constructor(service: Service, receive: (frame: Sent) => void) {
    this.#service = service;
    this.receive = receive;
  }

  send(arrive: () => void, frame?: Sent, jitterMs = this.#service.options.jitterMs): void {
    const { time, chance } = this.#service;
    this.#last = Math.max(this.#last, time.now() + latencyMs + Math.round(chance.random() * jitterMs));
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
    const { time } = this.#service;
    this.#isWaiting = true;
    time.after(next.at - time.now(), () => {
      this.#isWaiting = false;
      while (this.#onWay[0] !== undefined && this.#onWay[0].at <= time.now()) this.#onWay.shift()!.arrive();
      this.#wait();
    });
  }
}

/** An account of the service: its connection, and the frames that wait for it. */
class Account {
  readonly #service: Service;
  readonly #lostOn = new Map<Sent, Wire>();
  #live: Wire | undefined;
  #last: Wire | undefined;
  #waiting: { readonly frame: Sent; readonly due: number }[] = [];
  #timers = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  get lost(): number {
    return this.#lostOn.size;
  }

  /** When a frame that was lost is missing: a client reads a close some ms late, so not before the end of its connection. */
  missingAt(frame: Sent): number {
    return Math.max(frame.at, this.#lostOn.get(frame)?.endedAt ?? frame.at);
  }

  open(wire: Wire): void {
    wire.endedAt = this.#last?.endedAt ?? -Infinity;
    this.#live = this.#last = wire;
    if (this.#service.options.waiting === 'send-on-reconnect')
      this.#takeWaiting().forEach((frame) => this.#send(frame));
  }

  close(wire: Wire): void {
    if (this.#live !== wire) return;
    this.#live = undefined;
    const { waiting } = this.#service.options;
    if (waiting === 'send-when-due') return;
    this.#timers += 1;
    if (waiting === 'drop') this.#takeWaiting().forEach((frame) => this.lose(frame));
  }

  lose(frame: Sent): void {
    if (this.#last) this.#lostOn.set(frame, this.#last);
  }

  see(frame: Sent): void {
    const { delayMs, waiting } = this.#service.options;
    if (this.#live === undefined && (delayMs === 0 || waiting !== 'send-when-due')) return this.lose(frame);
    if (delayMs === 0) return this.#send(frame);
    this.#waiting.push({ frame, due: this.#service.time.now() + delayMs });
    if (this.#waiting.length === 1) this.#releaseAfter(delayMs);
  }

  #takeWaiting(): readonly Sent[] {
    return this.#waiting.splice(0).map(({ frame }) => frame);
  }

  #releaseAfter(ms: number): void {
    const timer = (this.#timers += 1);
    const { time } = this.#service;
    time.after(ms, () => {
      if (timer !== this.#timers) return;
      while (this.#waiting[0] !== undefined && this.#waiting[0].due <= time.now())
        this.#send(this.#waiting.shift()!.frame);
      if (this.#waiting[0] !== undefined) this.#releaseAfter(this.#waiting[0].due - time.now());
    });
  }

  #send(frame: Sent): void {
    const wire = this.#live;
    if (wire === undefined) return this.lose(frame);
    wire.send(() => wire.receive(frame), frame);
  }
}

/** A cut: a close frame after what was sent, a reset that loses it, or a close that stops the feed. */
export type Cut = 'close' | 'reset' | 'stop';

interface FeedOptions {
  readonly reconnectMs: () => number;
  /** The service has registered a connection, which `cut` ends. */
  readonly onAccepted?: (cut: (kind: Cut) => void) => void;
}

/** A client with an account of its own: the events of `tradeFeedEvents$` over a simulated network. */
export class SimulatedFeed {
  readonly account: Account;
  /** When stalled connections lost frames, until the client noticed. */
  readonly stalls: { readonly from: number; to: number }[] = [];
  /** Whether the service refuses all tickets. */
  isRefused = false;
  readonly #service: Service;
  readonly #options: FeedOptions;
  #subscriber: Subscriber<FeedEvent> | undefined;
  #lifecycle: Lifecycle | undefined;
  #wire: Wire | undefined;
  #cut: ((kind: Cut) => void) | undefined;
  #connection = 0;
  #isOpen = false;
  #hasFrames = false;
  #isStalled = false;
  #lastBytesAt = 0;
  /** Identifies the attempt that a message or a timer belongs to. */
  #turn = 0;

  readonly events$ = new Observable<FeedEvent>((subscriber) => {
    const lifecycle = createLifecycle((event) => subscriber.next(event), { scheduler: this.#service.time.clock });
    this.#subscriber = subscriber;
    this.#lifecycle = lifecycle;
    this.#connection = 0;
    this.#request();
    return () => {
      lifecycle.end();
      this.#end();
      this.#subscriber = undefined;
    };
  });

  constructor(service: Service, options: FeedOptions) {
    this.#service = service;
    this.#options = options;
    this.account = new Account(service);
    service.feeds.push(this);
  }

  /** Ends the newest connection. */
  cut(kind: Cut): void {
    this.#cut?.(kind);
  }

  /** Loses all bytes from now on. */
  stall(): void {
    if (!this.#isOpen || this.#isStalled) return;
    this.#isStalled = true;
    const stall = { from: this.#now, to: Infinity };
    this.stalls.push(stall);
    const endedAt = this.#lastBytesAt;
    this.#later(idleTimeoutMs, () => {
      stall.to = this.#now;
      this.#fail(createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt }));
    });
  }

  #request(): void {
    const { chance, options } = this.#service;
    this.#emit({ type: 'ticket-requested', at: this.#now, feed: 'market' });
    const isRefused = chance.isTrue(options.refusals);
    this.#later(this.#trip() + this.#trip() + chance.whole(0, 20), () => {
      if (isRefused || this.isRefused)
        return this.#fail(createTradeFeedError({ stage: 'ticket', status: 503, endedAt: this.#now }));
      const expiresAt = new Date(this.#now + 60_000).toISOString();
      this.#emit({ type: 'ticket-issued', at: this.#now, feed: 'market', expiresAt });
      this.#later(this.#trip(), () => this.#accept());
    });
  }

  /** The service gets the handshake: it registers the connection, and answers. */
  #accept(): void {
    const { account } = this;
    const { time, options } = this.#service;
    const turn = this.#turn;
    const wire = new Wire(this.#service, (frame) => {
      if (turn === this.#turn) this.#receive(frame);
    });
    this.#wire = wire;
    const ended = (kind: Cut) => () => {
      if (turn !== this.#turn || this.#isStalled) return;
      if (this.#isOpen) wire.endedAt = this.#now;
      this.#ended(kind);
    };
    this.#cut = (kind) => {
      account.close(wire);
      if (kind !== 'reset') return wire.send(ended(kind));
      for (const frame of wire.reset()) account.lose(frame);
      time.after(latencyMs, ended(kind));
    };
    const opened = (): void => {
      if (turn === this.#turn) this.#opened();
    };
    wire.send(opened, undefined, Math.max(options.jitterMs, options.answerJitterMs));
    account.open(wire);
    this.#options.onAccepted?.(this.#cut);
  }

  #opened(): void {
    const { deliveryDelayMs } = this.#service.options;
    const [at, connection] = [this.#now, (this.#connection += 1)];
    const complete = deliveryDelayMs !== 'auto' && { completeFrom: at + deliveryDelayMs };
    [this.#isOpen, this.#hasFrames, this.#lastBytesAt] = [true, false, at];
    this.#emit({ type: 'opened', at, feed: 'market', connection, ...complete });
  }

  #receive({ n }: Sent): void {
    if (this.#isStalled) return;
    const at = this.#now;
    this.#lastBytesAt = at;
    if (!this.#hasFrames) this.#lifecycle?.firstFrame(at);
    this.#hasFrames = true;
    this.#subscriber?.next(new Frame('market', Buffer.from(`${n}`), false, at, this.#connection));
  }

  #ended(kind: Cut): void {
    if (!this.#isOpen) return this.#fail(createTradeFeedError({ stage: 'handshake', status: 502, endedAt: this.#now }));
    const closeCode = { close: 1001, reset: 1006, stop: 4001 }[kind];
    const failure = createTradeFeedError({ stage: 'stream', closeCode, endedAt: this.#now });
    if (kind !== 'stop') return this.#fail(failure);
    this.#end();
    this.#lifecycle?.stop(failure);
    this.#subscriber?.error(failure);
  }

  #fail(failure: TradeFeedError): void {
    this.#end();
    const delayMs = this.#options.reconnectMs();
    this.#emit({ type: 'disconnected', at: this.#now, failure });
    this.#emit({ type: 'reconnecting', at: this.#now, delayMs, attempt: 1, verdict: failure.verdict });
    this.#later(delayMs, () => this.#request());
  }

  #end(): void {
    this.#turn += 1;
    const stall = this.stalls.at(-1);
    if (this.#isStalled && stall) stall.to = Math.min(stall.to, this.#now);
    [this.#isOpen, this.#isStalled] = [false, false];
    if (this.#wire) this.account.close(this.#wire);
  }

  #emit(event: LifecycleEvent): void {
    if (this.#subscriber) this.#lifecycle?.emit(event);
  }

  get #now(): number {
    return this.#service.time.clock.now();
  }

  /** How long a message takes. */
  #trip(): number {
    const { chance, options } = this.#service;
    return latencyMs + Math.round(chance.random() * options.jitterMs);
  }

  #later(ms: number, run: () => void): void {
    const turn = this.#turn;
    const now = this.#service.time.now();
    this.#service.time.after(Math.ceil(now) - now + ms, () => {
      if (turn === this.#turn) run();
    });
  }
}
