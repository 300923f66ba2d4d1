import { Subject } from 'rxjs';
import { BatchCollector } from '../operators/items/collect.js';
import { bytesOf, isLifecycle, timeOf, withOwnBytes } from '../operators/items/item.js';
import type { ClusterLifecycleEvent, Gap } from '../protocol/event.js';
import { isTime } from '../protocol/type-guards.js';
import { invalidOption } from '../protocol/validate.js';
import type { LedgerStep } from './outcome.js';
import { Settlement, type SettlementLimits } from './settlement.js';
import { Side } from './side.js';

/** A value of the ledger, in the stream of both sides. */
export class FromLedger {
  readonly value: unknown;

  constructor(value: unknown) {
    this.value = value;
  }
}

export const feedOver = Symbol('the feed is over');
export const ledgerOver = Symbol('the ledger is over');

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
  /** The steps that wait, by time. */
  readonly #steps: { readonly at: number; readonly step: LedgerStep<K> }[] = [];
  /** The gaps of the ledger that wait for the feed to open. */
  #gaps: Gap[] = [];
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
    else if (value === feedOver) this.#feed.end();
    else if (value === ledgerOver) this.#ledger.end();
    else if (isLifecycle(value)) this.#feedEvent(value);
    else this.#item(value);
    return this.#advance() || this.#canWakeSooner();
  }

  /** Reads the clock. Returns whether there is something to emit. */
  tick(): boolean {
    this.#feed.now();
    return this.#advance();
  }

  /** Folds what both sides have passed. Returns whether there is something to emit. */
  #advance(): boolean {
    const settlement = this.#settlement;
    this.#fold();
    while (settlement.evict() && this.#steps.length > 0) settlement.step(this.#shiftStep());
    this.#mark();
    if (this.#feed.isOver && !settlement.isWaiting) this.isDecided$.next();
    return this.ready.length > 0;
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

  #item(item: unknown): void {
    const { key: keyOf, slot, keep } = this.#options;
    const at = this.#feed.item(item, timeOf(item));
    if (this.#feed.gaps.length > 0) this.#settlement.revise('feed');
    const key = keyOf(item);
    if (key === undefined) return;
    const kept = withOwnBytes(keep === undefined ? (item as V) : keep(item));
    this.#settlement.queue(key, slot?.(item), kept, bytesOf(kept), at);
  }

  #feedEvent(event: ClusterLifecycleEvent): void {
    if (this.#feed.event(event)) this.#settlement.revise('feed');
    // Outcomes that the event has corrected come before it.
    if (event.type !== 'watermark') this.ready.push(event);
  }

  #fromLedger(value: unknown): void {
    if (isLifecycle(value)) {
      this.#learn(this.#ledger.event(value));
      return;
    }
    const step = value as LedgerStep<K> | null | undefined;
    if (step?.type !== 'ledger' || !isTime(step.at))
      throw invalidOption('ledger$', 'an Observable of ledger steps, each with a finite `at`');
    // What fills a hole counts before the decisions in that hole.
    const before = step.late === true && this.#ledger.until > -Infinity ? this.#ledger.until : step.at;
    // It may not overtake the steps before it.
    const at = Math.min(step.at, Math.max(before, this.#steps.at(-1)?.at ?? before));
    this.#ledger.item(step, step.at);
    this.#learn(this.#ledger.gaps.length > 0);
    let place = this.#steps.length;
    while (at < (this.#steps[place - 1]?.at ?? -Infinity)) place -= 1;
    this.#steps.splice(place, 0, { at, step });
    this.#settlement.queuedEntries += step.confirmed.length;
  }

  #learn(hasHole: boolean): void {
    if (!hasHole) return;
    this.#gaps.push(...this.#ledger.gaps);
    this.#settlement.revise('ledger');
  }

  #shiftStep(): LedgerStep<K> {
    const { step } = this.#steps.shift() as { readonly step: LedgerStep<K> };
    this.#settlement.queuedEntries -= step.confirmed.length;
    return step;
  }

  #fold(): void {
    const settlement = this.#settlement;
    const ledgerUntil = this.#ledger.now();
    // Most items wait for the next block.
    if (this.#nextAt() > ledgerUntil) return;
    const until = Math.min(ledgerUntil, this.#feed.now());
    const decidableUntil = until === Infinity ? this.#endedAt() : until;
    for (;;) {
      const stepAt = this.#steps[0]?.at ?? Infinity;
      const tradeAt = settlement.nextSeenAt;
      const due = settlement.nextDue;
      const at = Math.min(stepAt, tradeAt);
      if (due < at && due < decidableUntil) {
        settlement.passTo(due);
        settlement.decide();
      } else if (at <= until && at < Infinity) {
        settlement.passTo(at);
        if (tradeAt <= stepAt) settlement.see();
        else settlement.step(this.#shiftStep());
      } else return;
    }
  }

  /** The time of the next value or decision. */
  #nextAt(): number {
    const { nextSeenAt, nextDue } = this.#settlement;
    return Math.min(this.#steps[0]?.at ?? Infinity, nextSeenAt, nextDue);
  }

  #endedAt(): number {
    return Math.max(this.#feed.endedAt, this.#ledger.endedAt);
  }

  #mark(): void {
    if (this.#gaps.length > 0 && this.#feed.isOpen) {
      this.ready.push(...this.#gaps);
      this.#gaps = [];
    }
    const until = Math.min(this.#feed.until, this.#ledger.until);
    if (until < this.#markedAt + markEveryMs || !Number.isFinite(until)) return;
    if (this.#ledger.isDown || this.#gaps.length > 0) return;
    this.#markedAt = until;
    this.ready.push({ type: 'watermark', at: until });
    const { withinMs, graceMs, rememberMs } = this.#options;
    for (const side of [this.#feed, this.#ledger]) side.forget(until - withinMs - graceMs - rememberMs);
  }

  #canWakeSooner(): boolean {
    // Most items wait for a ledger whose time is that of its last block.
    if (!this.#ledger.isClocked && this.#feed.until >= this.#ledger.until) return false;
    return this.#nextWake() < this.#wakesAt;
  }

  /** Returns the time at which the clock alone moves something. */
  #nextWake(): number {
    const { nextSeenAt, nextDue } = this.#settlement;
    return Math.min(
      this.#wakeAt(this.#steps[0]?.at),
      this.#wakeAt(nextSeenAt),
      this.#wakeAt(nextDue + 1),
      this.#wakeAt(this.#markedAt + markEveryMs),
    );
  }

  /** Returns the time if only the clock is missing for both sides to reach it, `Infinity` if not. */
  #wakeAt(time: number | undefined): number {
    const [feed, ledger] = [this.#feed, this.#ledger];
    if (time === undefined || time <= Math.min(feed.until, ledger.until)) return Infinity;
    const canReach = (feed.isClocked || feed.until >= time) && (ledger.isClocked || ledger.until >= time);
    return canReach ? time : Infinity;
  }
}
