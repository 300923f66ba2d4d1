import { Observable, type SchedulerLike } from 'rxjs';
import { createLifecycle, type Lifecycle } from '../../../src/feed/lifecycle.js';
import type { FeedEvent } from '../../../src/protocol/event.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import type { Chance } from '../../simulation/chance.js';
import { type Case, latencyMs, type Sent, type Service, Wire } from './service.js';

/** What a cut is: a close frame after what was sent, a reset that loses it, or a close that stops the feed. */
type Cut = 'close' | 'reset' | 'stop';

/** The network and the clock of a run, and when its connections end. */
export interface Conditions {
  /** The exact time. */
  readonly scheduler: SchedulerLike;
  /** The clock of the client, in whole ms. */
  readonly clock: SchedulerLike;
  readonly service: Service;
  readonly network: Chance;
  readonly faults: Chance;
  readonly case: Case;
  /** Whether some cuts stop the feed. */
  readonly stops: boolean;
  /** Counts the cut of the next connection. Returns whether there is one. */
  readonly cuts: () => boolean;
}

/** The events of `tradeFeedEvents$` over a simulated network, with the lifecycle of the real feed. */
export const clientFeed$ = (conditions: Conditions): Observable<FeedEvent> =>
  new Observable((subscriber) => {
    const lifecycle = createLifecycle((event) => subscriber.next(event), { scheduler: conditions.clock });
    const client = new Client(conditions, lifecycle, {
      frame: (frame) => subscriber.next(frame),
      stopped: (failure) => subscriber.error(failure),
    });
    client.request();
    return () => {
      lifecycle.end();
      client.end();
    };
  });

interface Outputs {
  readonly frame: (frame: Frame) => void;
  readonly stopped: (failure: TradeFeedError) => void;
}

class Client {
  readonly #conditions: Conditions;
  readonly #lifecycle: Lifecycle;
  readonly #outputs: Outputs;
  #connection = 0;
  /** Identifies the attempt that a message belongs to. */
  #turn = 0;

  constructor(conditions: Conditions, lifecycle: Lifecycle, outputs: Outputs) {
    this.#conditions = conditions;
    this.#lifecycle = lifecycle;
    this.#outputs = outputs;
  }

  request(): void {
    const { faults } = this.#conditions;
    this.#lifecycle.emit({ type: 'ticket-requested', at: this.#now, feed: 'market' });
    const isRefused = faults.isTrue(0.1);
    this.#later(this.#trip() + this.#trip() + Math.round(faults.between(0, 20)), () => {
      if (isRefused) return this.#fail(createTradeFeedError({ stage: 'ticket', status: 503, endedAt: this.#now }));
      const expiresAt = new Date(this.#now + 60_000).toISOString();
      this.#lifecycle.emit({ type: 'ticket-issued', at: this.#now, feed: 'market', expiresAt });
      this.#later(this.#trip(), () => this.#accept());
    });
  }

  end(): void {
    this.#turn += 1;
  }

  /** The service gets the handshake: registers the connection, and answers. */
  #accept(): void {
    const { scheduler, network, service, case: of } = this.#conditions;
    const wire = new Wire(scheduler, network, of.jitterMs);
    const turn = this.#turn;
    const known = of.deliveryDelayMs !== 'auto' && of.deliveryDelayMs;
    let isOpen = false;
    let isFirst = true;
    const opened = (): void => {
      if (turn !== this.#turn) return;
      isOpen = true;
      this.#connection += 1;
      const complete = known === false ? {} : { completeFrom: this.#now + known };
      this.#lifecycle.emit({
        type: 'opened',
        at: this.#now,
        feed: 'market',
        connection: this.#connection,
        ...complete,
      });
    };
    const receive = (frame: Sent): void => {
      if (turn !== this.#turn) return;
      if (isFirst) this.#lifecycle.firstFrame(this.#now);
      isFirst = false;
      this.#outputs.frame(new Frame('market', Buffer.from(`${frame.n}`), false, this.#now, this.#connection));
    };
    wire.send(opened, undefined, Math.max(of.jitterMs, of.answerJitterMs));
    service.open({ wire, receive });
    if (this.#conditions.cuts()) this.#cutLater(wire, () => isOpen);
  }

  #cutLater(wire: Wire, isOpen: () => boolean): void {
    const { scheduler, service, faults, stops, case: of } = this.#conditions;
    // Where frames are rare, only a cut near one can lose it.
    const isNear = of.perSecond < 5 && faults.isTrue(0.7);
    const nearMs = service.nextAt - scheduler.now() + Math.round(faults.between(-1_200, 700));
    const longMs = faults.isTrue(0.3) ? 700 : Math.min(5_000, 60_000 / of.perSecond);
    const upMs = isNear ? Math.max(1, Math.round(nearMs)) : Math.round(faults.between(1, longMs));
    const cut: Cut = stops && faults.isTrue(0.2) ? 'stop' : faults.isTrue(0.5) ? 'close' : 'reset';
    const turn = this.#turn;
    const ended = (): void => {
      if (turn !== this.#turn) return;
      if (isOpen()) wire.endedAt = this.#now;
      this.#ended(cut, isOpen());
    };
    scheduler.schedule(() => {
      service.close(wire);
      if (cut !== 'reset') return wire.send(ended);
      for (const frame of wire.reset()) service.lose(frame);
      scheduler.schedule(ended, latencyMs);
    }, upMs);
  }

  #ended(cut: Cut, isOpen: boolean): void {
    if (!isOpen) return this.#fail(createTradeFeedError({ stage: 'handshake', status: 502, endedAt: this.#now }));
    const closeCode = cut === 'stop' ? 4001 : cut === 'close' ? 1001 : 1006;
    const failure = createTradeFeedError({ stage: 'stream', closeCode, endedAt: this.#now });
    if (cut !== 'stop') return this.#fail(failure);
    this.end();
    this.#lifecycle.stop(failure);
    this.#outputs.stopped(failure);
  }

  #fail(failure: TradeFeedError): void {
    const { faults } = this.#conditions;
    this.end();
    const delayMs = Math.round(faults.isTrue(0.5) ? faults.between(0, 50) : faults.between(50, 1_500));
    this.#lifecycle.emit({ type: 'disconnected', at: this.#now, failure });
    this.#lifecycle.emit({ type: 'reconnecting', at: this.#now, delayMs, attempt: 1, verdict: failure.verdict });
    this.#later(delayMs, () => this.request());
  }

  get #now(): number {
    return this.#conditions.clock.now();
  }

  /** How long a message takes. */
  #trip(): number {
    const { network, case: of } = this.#conditions;
    return latencyMs + Math.round(network.random() * of.jitterMs);
  }

  #later(ms: number, run: () => void): void {
    const turn = this.#turn;
    const now = this.#conditions.scheduler.now();
    this.#conditions.scheduler.schedule(
      () => {
        if (turn === this.#turn) run();
      },
      Math.ceil(now) - now + ms,
    );
  }
}
