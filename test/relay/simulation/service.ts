import { Observable, type SchedulerLike, type Subscriber } from 'rxjs';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import { createLifecycle, type Lifecycle } from '../../../src/feed/lifecycle.js';
import type { Chance } from '../../cluster/simulation/chance.js';

/** A frame that the service has sent to every open connection. */
export interface SentFrame {
  readonly n: number;
  readonly at: number;
}

/** How long a connection is silent before the client calls it stalled, in ms. */
const idleTimeoutMs = 1_500;
const reconnectMs = 300;
const stepMs = 10;

/** The service: numbers its frames, and sends each to all open connections in the same ms. */
export class Service {
  readonly sent: SentFrame[] = [];
  readonly #connections = new Set<DirectFeed>();

  constructor(scheduler: SchedulerLike, chance: Chance) {
    const next = () => {
      for (let left = chance.isTrue(0.2) ? 3 : 1; left > 0; left -= 1) this.#send(scheduler.now());
      scheduler.schedule(next, 2 * Math.ceil(chance.between(0.1, chance.isTrue(0.02) ? 750 : 60)));
    };
    scheduler.schedule(next);
  }

  open(feed: DirectFeed): void {
    this.#connections.add(feed);
  }

  close(feed: DirectFeed): void {
    this.#connections.delete(feed);
  }

  #send(at: number): void {
    this.sent.push({ n: this.sent.length + 1, at });
    for (const feed of [...this.#connections]) feed.receive(this.sent.length);
  }
}

/** A feed over a direct connection: the events of `tradeFeedEvents$`, with faults caused by the test. */
export class DirectFeed {
  /** When stalled connections lost frames, until the client noticed. */
  readonly stalls: { readonly from: number; to: number }[] = [];
  isRefused = false;
  readonly #service: Service;
  readonly #scheduler: SchedulerLike;
  #subscriber: Subscriber<RelayedEvent> | undefined;
  #lifecycle: Lifecycle | undefined;
  #connection = 0;
  #isOpen = false;
  #isStalled = false;
  #lastBytesAt = 0;
  /** Identifies the subscription and the connection that a timer belongs to. */
  #turn = 0;

  readonly events$ = new Observable<RelayedEvent>((subscriber) => {
    this.#subscriber = subscriber;
    this.#connection = 0;
    this.#lifecycle = createLifecycle((event) => subscriber.next(event));
    this.#request();
    return () => {
      this.#end();
      this.#subscriber = undefined;
    };
  });

  constructor(service: Service, scheduler: SchedulerLike) {
    this.#service = service;
    this.#scheduler = scheduler;
  }

  receive(n: number): void {
    if (this.#isStalled) return;
    this.#lastBytesAt = this.#scheduler.now();
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
      // Frames are sent in even ms, and connections open in odd ones. So no frame of the ms of an `opened` is lost before it.
      this.#later(stepMs + ((this.#now + 1) % 2), () => {
        this.#connection += 1;
        [this.#isOpen, this.#isStalled, this.#lastBytesAt] = [true, false, this.#now];
        this.#service.open(this);
        this.#emit({ type: 'opened', at: this.#now, feed: 'market', connection: this.#connection });
      });
    });
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
