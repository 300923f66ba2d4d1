import { Observable, type SchedulerLike, type Subscriber } from 'rxjs';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import { createLifecycle, type Lifecycle } from '../../../src/feed/lifecycle.js';
import type { Chance } from '../../simulation/chance.js';
import type { Sent } from '../../simulation/feed.js';

/** The delay of each frame on the plans Developer and Free, in ms. */
const planDelaysMs = [0, 500];

/** How long a connection is silent before the client calls it stalled, in ms. */
const idleTimeoutMs = 1_500;
const reconnectMs = 300;
const stepMs = 10;

/**
 * The service: numbers its frames, and sends each to all open connections in the same ms. On the Free plan it holds
 * each back for 500 ms, drops what waits when a connection closes, and begins each connection with nothing.
 */
export class Service {
  readonly sent: Sent[] = [];
  readonly feeds: DirectFeed[] = [];
  readonly plan: { readonly delayMs: number; readonly deliveryDelayMs: 'auto' | number };
  readonly #connections = new Set<DirectFeed>();
  readonly #scheduler: SchedulerLike;

  constructor(scheduler: SchedulerLike, chance: Chance) {
    this.#scheduler = scheduler;
    const delayMs = chance.oneOf(planDelaysMs);
    const others = delayMs === 0 ? [0, 500, 2_000] : [500, 2_000];
    this.plan = { delayMs, deliveryDelayMs: chance.isTrue(0.7) ? 'auto' : chance.oneOf(others) };
    // Quiet feeds settle by time, busy ones by their first frame.
    const mostMs = chance.oneOf([30, 60, 60, 400]);
    const next = () => {
      for (let left = chance.isTrue(0.2) ? 3 : 1; left > 0; left -= 1) this.#send();
      scheduler.schedule(next, 2 * Math.ceil(chance.between(0.1, chance.isTrue(0.02) ? 750 : mostMs)));
    };
    scheduler.schedule(next);
  }

  open(feed: DirectFeed): void {
    this.#connections.add(feed);
  }

  close(feed: DirectFeed): void {
    this.#connections.delete(feed);
  }

  #send(): void {
    const { delayMs } = this.plan;
    const n = this.sent.length + 1;
    this.sent.push({ n, at: this.#scheduler.now() + delayMs });
    for (const feed of [...this.#connections]) feed.seen(n, delayMs);
  }
}

/** A feed over a direct connection: the events of `tradeFeedEvents$`, with faults caused by the test. */
export class DirectFeed {
  /** When stalled connections lost frames, until the client noticed. */
  readonly stalls: { readonly from: number; to: number }[] = [];
  isRefused = false;
  readonly #service: Service;
  readonly #scheduler: SchedulerLike;
  readonly #chance: Chance;
  #subscriber: Subscriber<RelayedEvent> | undefined;
  #lifecycle: Lifecycle | undefined;
  #connection = 0;
  #hasFrames = false;
  #isOpen = false;
  #isStalled = false;
  #lastBytesAt = 0;
  /** Identifies the subscription and the connection that a timer belongs to. */
  #turn = 0;

  readonly events$ = new Observable<RelayedEvent>((subscriber) => {
    this.#subscriber = subscriber;
    this.#connection = 0;
    const lifecycle = createLifecycle((event) => subscriber.next(event), { scheduler: this.#scheduler });
    this.#lifecycle = lifecycle;
    this.#request();
    return () => {
      lifecycle.end();
      this.#end();
      this.#subscriber = undefined;
    };
  });

  constructor(service: Service, scheduler: SchedulerLike, chance: Chance) {
    this.#service = service;
    this.#scheduler = scheduler;
    this.#chance = chance;
    service.feeds.push(this);
  }

  /** The service saw a frame while this connection was open. */
  seen(n: number, delayMs: number): void {
    if (delayMs === 0) this.#receive(n);
    else this.#later(delayMs, () => this.#receive(n));
  }

  #receive(n: number): void {
    if (this.#isStalled) return;
    this.#lastBytesAt = this.#scheduler.now();
    if (!this.#hasFrames) this.#lifecycle?.firstFrame(this.#lastBytesAt);
    this.#hasFrames = true;
    this.#subscriber?.next(new Frame('market', Buffer.from(String(n)), false, this.#lastBytesAt, this.#connection));
  }

  /** Ends the connection. The service refuses new ones while `isRefused`. */
  drop(): void {
    if (this.#isOpen && !this.#isStalled)
      this.#fail(createTradeFeedError({ stage: 'stream', closeCode: 1001, endedAt: this.#now }));
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

  /** Stops the feed, as another client of the account does. */
  stop(): void {
    if (!this.#isOpen || this.#isStalled) return;
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, endedAt: this.#now });
    this.#end();
    this.#emit({ type: 'stopped', at: this.#now, failure });
    this.#subscriber?.error(failure);
  }

  get #now(): number {
    return this.#scheduler.now();
  }

  #request(): void {
    this.#emit({ type: 'ticket-requested', at: this.#now, feed: 'market' });
    this.#later(stepMs, () => {
      if (this.isRefused) return this.#fail(createTradeFeedError({ stage: 'ticket', status: 503, endedAt: this.#now }));
      this.#emit({
        type: 'ticket-issued',
        at: this.#now,
        feed: 'market',
        expiresAt: new Date(this.#now).toISOString(),
      });
      // Frames are sent in even ms, and connections open in odd ones. So no frame of the ms of an `opened` is lost before it.
      this.#later(stepMs + ((this.#now + 1) % 2), () => {
        this.#service.open(this);
        // The answer to the handshake may be late, so that frames that are delayed come soon after it.
        const lateMs = this.#chance.isTrue(0.3) ? 240 : 5;
        if (this.#service.plan.delayMs === 0) this.#open();
        else this.#later(2 * Math.ceil(this.#chance.between(0, lateMs)), () => this.#open());
      });
    });
  }

  #open(): void {
    const { deliveryDelayMs } = this.#service.plan;
    const completeFrom = deliveryDelayMs !== 'auto' && { completeFrom: this.#now + deliveryDelayMs };
    this.#connection += 1;
    [this.#isOpen, this.#hasFrames, this.#lastBytesAt] = [true, false, this.#now];
    this.#emit({ type: 'opened', at: this.#now, feed: 'market', connection: this.#connection, ...completeFrom });
  }

  #fail(failure: TradeFeedError): void {
    this.#end();
    this.#emit({ type: 'disconnected', at: this.#now, failure });
    this.#emit({ type: 'reconnecting', at: this.#now, delayMs: reconnectMs, attempt: 1, verdict: failure.verdict });
    this.#later(reconnectMs, () => this.#request());
  }

  #end(): void {
    this.#turn += 1;
    if (this.#isStalled) for (const stall of this.stalls) stall.to = Math.min(stall.to, this.#now);
    [this.#isOpen, this.#isStalled] = [false, false];
    this.#service.close(this);
  }

  #emit(event: Exclude<RelayedEvent, { readonly type: 'frame' }>): void {
    if (this.#subscriber) this.#lifecycle?.emit(event);
  }

  #later(ms: number, run: () => void): void {
    const turn = this.#turn;
    this.#scheduler.schedule(() => {
      if (turn === this.#turn) run();
    }, ms);
  }
}
