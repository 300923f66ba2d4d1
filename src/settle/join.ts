import { Subject } from 'rxjs';
import type { Collector } from '../operators/items/collect.js';
import { isLifecycle, timeOf, withOwnBytes } from '../operators/items/item.js';
import type { Gap } from '../protocol/event.js';
import { isTime } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import type { Settings } from './settle-options.js';
import type { LedgerStep } from './outcome.js';
import { Settlement } from './settlement.js';
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

/** How often the output has a watermark, in ms of time. */
const markEveryMs = 250;

/** Merges both sides into one line of time: a value waits until the other side has passed its time. */
export class Join implements Collector<readonly unknown[]> {
  /** Emits when the feed is over and no trade waits. */
  readonly isDecided$ = new Subject<void>();
  private ready: unknown[] = [];
  private readonly settings: Settings;
  private readonly feed: Side;
  private readonly ledger: Side;
  private readonly settlement: Settlement<unknown, unknown>;
  /** The gaps of the ledger that wait for the feed to open. */
  private gaps: readonly Gap[] = [];
  /** Up to when both sides were complete when it looked last. */
  private passed = -Infinity;
  private markedAt = -Infinity;
  private wakesAt = Infinity;

  constructor(settings: Settings) {
    this.settings = settings;
    this.feed = new Side('feed', settings);
    this.ledger = new Side('ledger', settings);
    this.settlement = new Settlement(settings, this.feed, this.ledger, (outcome) => this.ready.push(outcome));
  }

  add(value: unknown): boolean {
    if (value instanceof FromLedger) this.fromLedger(value.value);
    else if (value === over) this.feed.end();
    else if (isLifecycle(value)) {
      if (this.feed.event(value)) this.settlement.revise(this.feed);
      // Outcomes that the event has corrected come before it.
      if (value.type !== 'watermark') this.ready.push(value);
    } else if (this.item(value)) return false;
    return this.advance() || this.nextWake() < this.wakesAt;
  }

  /** Reads the clock. Returns whether there is something to emit. */
  tick(): boolean {
    this.feed.now();
    return this.advance();
  }

  /** Returns one list: RxJS emits a list faster than the values of an iterator. */
  drain(): readonly (readonly unknown[])[] {
    const batch = this.ready;
    this.ready = [];
    return [batch];
  }

  end(): void {
    for (const side of [this.feed, this.ledger]) if (!side.isOver) side.end();
    this.ready.push(...this.gaps);
    this.fold();
    this.settlement.end();
  }

  /** Returns how long until the clock moves something, in ms. */
  waitMs(): number {
    this.wakesAt = this.nextWake();
    return Math.max(this.feed.waitMs(this.wakesAt), this.ledger.waitMs(this.wakesAt));
  }

  /** Returns whether it only waits for the ledger, as most items do: then nothing else has changed. */
  private item(value: unknown): boolean {
    const { feed, ledger, settlement } = this;
    const { key: keyOf, slot, keep } = this.settings;
    const at = feed.item(value, timeOf(value));
    const isNews = feed.gaps.length > 0;
    if (isNews) settlement.revise(feed);
    const key = keyOf(value);
    if (key !== undefined) {
      const kept = withOwnBytes(keep === undefined ? value : keep(value));
      settlement.queue(key, slot?.(value), kept, at);
    }
    const { until } = ledger;
    const isBehind = this.passed >= until && this.gaps.length === 0 && !ledger.isClocked;
    return isBehind && at > until && !isNews && !settlement.isFull;
  }

  private fromLedger(value: unknown): void {
    const { ledger } = this;
    if (value === over) return ledger.end();
    if (!(isLifecycle(value) ? ledger.event(value) : this.step(value as LedgerStep<unknown> | undefined))) return;
    this.gaps = withGaps(this.gaps, ledger.gaps);
    this.settlement.revise(ledger);
  }

  /** Records a step. Returns whether it reveals a hole. */
  private step(step: LedgerStep<unknown> | null | undefined): boolean {
    if (step?.type !== 'ledger' || !isTime(step.at))
      throw invalidOption('ledger$', 'an Observable of ledger steps, each with a finite `at`');
    const { until } = this.ledger;
    // A late step fills a hole of the ledger. It counts from where the hole begins, so it's folded before the trades
    // that are due in the hole are decided.
    this.settlement.queueStep(step, step.late === true && until > -Infinity ? until : step.at);
    this.ledger.item(step, step.at);
    return this.ledger.gaps.length > 0;
  }

  /** Folds what both sides have passed. Returns whether there is something to emit. */
  private advance(): boolean {
    this.fold();
    this.settlement.evict();
    this.mark();
    if (this.feed.isOver && !this.settlement.isWaiting) this.isDecided$.next();
    return this.ready.length > 0;
  }

  private fold(): void {
    const ledgerUntil = this.ledger.now();
    // Most items wait for the next block.
    if (this.settlement.nextAt > ledgerUntil) return;
    const until = Math.min(ledgerUntil, this.feed.now());
    this.settlement.foldTo(until, until === Infinity ? Math.max(this.feed.endedAt, this.ledger.endedAt) : until);
  }

  private mark(): void {
    if (this.gaps.length > 0 && this.feed.isOpen) {
      this.ready.push(...this.gaps);
      this.gaps = [];
    }
    this.passed = Math.min(this.feed.until, this.ledger.until);
    if (this.passed < this.nextMark || !Number.isFinite(this.passed)) return;
    this.markedAt = this.passed;
    this.ready.push({ type: 'watermark', at: this.passed });
    const { withinMs, graceMs, rememberMs } = this.settings;
    for (const side of [this.feed, this.ledger]) side.forget(this.passed - withinMs - graceMs - rememberMs);
  }

  /** The time of the next watermark. None follows while the ledger is down, or its gaps wait. */
  private get nextMark(): number {
    return this.ledger.isDown || this.gaps.length > 0 ? Infinity : this.markedAt + markEveryMs;
  }

  /** Returns the time at which the clock alone moves something; `Infinity` if it does not. */
  private nextWake(): number {
    const next = Math.min(this.settlement.nextAt, this.nextMark);
    const sides = [this.feed, this.ledger];
    if (!sides.every((side) => side.isClocked || side.until >= next)) return Infinity;
    return sides.some(({ until }) => until < next) ? next : Infinity;
  }
}
