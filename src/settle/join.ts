import { Subject } from 'rxjs';
import { BatchCollector } from '../operators/items/collect.js';
import { isLifecycle, timeOf, withOwnBytes } from '../operators/items/item.js';
import type { Gap } from '../protocol/event.js';
import { isTime } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import type { LedgerStep } from './outcome.js';
import { Settlement, type SettlementLimits } from './settlement.js';
import { Side, withGaps } from './side.js';

/** A value of the ledger, in the stream of both sides. */
export class FromLedger {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

/** The last value of a side. */
export const over = Symbol('over');

export interface JoinOptions<V, K> extends SettlementLimits {
  readonly key: (item: unknown) => K | undefined;
  readonly slot?: (item: unknown) => unknown;
  readonly keep?: (item: unknown) => V;
  readonly allowedLatenessMs: number;
}

/** How often the output has a watermark, in ms of time. */
const markEveryMs = 250;

/** Merges both sides into one line of time: a value waits until the other side has passed its time. */
export class Join<V, K> extends BatchCollector<unknown> {
  /** Emits when the feed is over and no trade waits. */
  readonly isDecided$ = new Subject<void>();
  readonly #options: JoinOptions<V, K>;
  readonly #feed: Side;
  readonly #ledger: Side;
  readonly #settlement: Settlement<V, K>;
  /** The gaps of the ledger that wait for the feed to open. */
  #gaps: readonly Gap[] = [];
  #markedAt = -Infinity;
  #wakesAt = Infinity;

  constructor(options: JoinOptions<V, K>, clock: () => number) {
    super();
    this.#options = options;
    this.#feed = new Side('feed', options.allowedLatenessMs, clock);
    this.#ledger = new Side('ledger', options.allowedLatenessMs, clock);
    this.#settlement = new Settlement(options, this.#feed, this.#ledger, (outcome) => this.ready.push(outcome));
  }

  add(value: unknown): boolean {
    if (value instanceof FromLedger) this.#fromLedger(value.value);
    else this.#fromFeed(value);
    return this.#advance() || this.#nextWake() < this.#wakesAt;
  }

  /** Reads the clock. Returns whether there is something to emit. */
  tick(): boolean {
    this.#feed.now();
    return this.#advance();
  }

  override end(): void {
    for (const side of [this.#feed, this.#ledger]) if (!side.isOver) side.end();
    this.ready.push(...this.#gaps);
    this.#fold();
    this.#settlement.end();
  }

  /** Returns how long until the clock moves something, in ms. */
  waitMs(): number {
    const wakesAt = (this.#wakesAt = this.#nextWake());
    return wakesAt === Infinity ? Infinity : Math.max(this.#feed.waitMs(wakesAt), this.#ledger.waitMs(wakesAt));
  }

  #fromFeed(value: unknown): void {
    const feed = this.#feed;
    if (value === over) feed.end();
    else if (isLifecycle(value)) {
      if (feed.event(value)) this.#settlement.revise(feed);
      // Outcomes that the event has corrected come before it.
      if (value.type !== 'watermark') this.ready.push(value);
    } else {
      const { key: keyOf, slot, keep } = this.#options;
      const at = feed.item(value, timeOf(value));
      if (feed.gaps.length > 0) this.#settlement.revise(feed);
      const key = keyOf(value);
      if (key === undefined) return;
      const kept = withOwnBytes(keep === undefined ? (value as V) : keep(value));
      this.#settlement.queue(key, slot?.(value), kept, at);
    }
  }

  #fromLedger(value: unknown): void {
    const ledger = this.#ledger;
    if (value === over) return ledger.end();
    const hasHole = isLifecycle(value) ? ledger.event(value) : this.#step(value as LedgerStep<K> | null | undefined);
    if (!hasHole) return;
    this.#gaps = withGaps(this.#gaps, ledger.gaps);
    this.#settlement.revise(ledger);
  }

  /** Records a step. Returns whether it reveals a hole. */
  #step(step: LedgerStep<K> | null | undefined): boolean {
    if (step?.type !== 'ledger' || !isTime(step.at))
      throw invalidOption('ledger$', 'an Observable of ledger steps, each with a finite `at`');
    const { until } = this.#ledger;
    // What fills a hole counts before the decisions in that hole.
    this.#settlement.queueStep(step, step.late === true && until > -Infinity ? until : step.at);
    this.#ledger.item(step, step.at);
    return this.#ledger.gaps.length > 0;
  }

  /** Folds what both sides have passed. Returns whether there is something to emit. */
  #advance(): boolean {
    this.#fold();
    this.#settlement.evict();
    this.#mark();
    if (this.#feed.isOver && !this.#settlement.isWaiting) this.isDecided$.next();
    return this.ready.length > 0;
  }

  #fold(): void {
    const ledgerUntil = this.#ledger.now();
    // Most items wait for the next block.
    if (this.#settlement.nextAt > ledgerUntil) return;
    const until = Math.min(ledgerUntil, this.#feed.now());
    this.#settlement.foldTo(until, until === Infinity ? Math.max(this.#feed.endedAt, this.#ledger.endedAt) : until);
  }

  #mark(): void {
    if (this.#gaps.length > 0 && this.#feed.isOpen) {
      this.ready.push(...this.#gaps);
      this.#gaps = [];
    }
    const until = Math.min(this.#feed.until, this.#ledger.until);
    if (until < this.#nextMark || !Number.isFinite(until)) return;
    this.#markedAt = until;
    this.ready.push({ type: 'watermark', at: until });
    const { withinMs, graceMs, rememberMs } = this.#options;
    for (const side of [this.#feed, this.#ledger]) side.forget(until - withinMs - graceMs - rememberMs);
  }

  /** The time of the next watermark. None follows while the ledger is down, or its gaps wait. */
  get #nextMark(): number {
    return this.#ledger.isDown || this.#gaps.length > 0 ? Infinity : this.#markedAt + markEveryMs;
  }

  /** Returns the time at which the clock alone moves something; `Infinity` if it does not. */
  #nextWake(): number {
    const [feed, ledger] = [this.#feed, this.#ledger];
    const next = Math.min(this.#settlement.nextAt, this.#nextMark);
    return next > Math.min(feed.until, ledger.until) && feed.reaches(next) && ledger.reaches(next) ? next : Infinity;
  }
}
