import type { Because, LedgerEntry, LedgerStep, Outcome, OutcomeState } from './outcome.js';
import type { Side } from './side.js';
import { factsOf, previousOf, Trade, Trades } from './trade.js';

type Limit = 'withinMs' | 'withinBlocks' | 'graceMs' | 'rememberMs' | 'maxTrades' | 'maxBytes';

export type SettlementLimits = Readonly<Record<Limit, number>> & { readonly slot?: unknown };

/**
 * The state of each trade, as a fold over sights and steps in the order of their time. It reads no clock: so a
 * recording has the outcomes of the live streams.
 */
export class Settlement<V, K> {
  readonly #limits: SettlementLimits;
  readonly #feed: Side;
  readonly #ledger: Side;
  readonly #push: (outcome: Outcome<V, K>) => void;
  /** How many entries wait in the steps of the ledger. They count, too. */
  queuedEntries = 0;
  readonly #trades = new Trades<V, K>();
  #blocks = 0;
  #depth = 0;
  /** Times count from here, in epoch ms: V8 stores small whole numbers in the trade, and large ones outside. */
  #origin: number | undefined;
  /** The time up to which everything is folded. */
  #now = -Infinity;
  #lastAt = -Infinity;
  /** Until when a trade would have been remembered that was evicted. */
  #lostUntil = -Infinity;
  #lostUntilBlock = -Infinity;

  constructor(limits: SettlementLimits, feed: Side, ledger: Side, push: (outcome: Outcome<V, K>) => void) {
    this.#limits = limits;
    this.#feed = feed;
    this.#ledger = ledger;
    this.#push = push;
  }

  get origin(): number {
    return this.#origin ?? 0;
  }

  get isWaiting(): boolean {
    return this.#trades.waiting.size > 0 || this.#trades.queued.size > 0;
  }

  /** The time of the next decision. It is made when all values up to that time are folded. */
  get nextDue(): number {
    return this.#nextDue + this.origin;
  }

  get nextSeenAt(): number {
    return (this.#trades.queued.first?.since ?? Infinity) + this.origin;
  }

  get #nextDue(): number {
    const waiting = this.#trades.waiting.first;
    const lone = this.#trades.lone.first;
    return Math.min(
      waiting === undefined ? Infinity : waiting.since + this.#limits.withinMs,
      lone === undefined ? Infinity : lone.since + this.#limits.graceMs,
    );
  }

  queue(key: K, slot: unknown, value: V, bytes: number, seenAt: number): void {
    const at = seenAt - (this.#origin ??= seenAt);
    const trade = new Trade<V, K>(key, at);
    trade.slot = slot;
    trade.value = value;
    trade.bytes = bytes;
    trade.seenAt = at;
    this.#trades.queued.add(trade);
    this.#trades.bytes += bytes;
  }

  /** Moves the time, before what has that time is folded. */
  passTo(epochMs: number): void {
    const time = epochMs - (this.#origin ??= epochMs);
    if (time <= this.#now) return;
    this.#now = time;
    const { decided } = this.#trades;
    const before = time - this.#limits.rememberMs;
    for (let trade = decided.first; trade !== undefined && trade.since < before; trade = decided.first)
      this.#trades.forget(trade);
  }

  decide(): void {
    const due = this.#nextDue;
    const lone = this.#trades.lone.first;
    if (lone !== undefined && lone.since + this.#limits.graceMs === due) this.#miss(lone, due);
    else this.#expire(this.#trades.waiting.first as Trade<V, K>, due);
  }

  /** Folds the first trade of the queue. */
  see(): void {
    const trade = this.#trades.queued.first as Trade<V, K>;
    this.#trades.queued.remove(trade);
    const known = this.#trades.get(trade.key);
    if (known === undefined) {
      this.#trades.add(trade);
      this.#wait(trade, trade.since);
    } else if (known.seenAt === undefined) this.#show(known, trade);
    else {
      this.#trades.bytes -= trade.bytes;
      if (known.list === this.#trades.decided) this.#remember(known);
    }
  }

  step(step: LedgerStep<K>): void {
    const at = step.at - (this.#origin ??= step.at);
    const { confirmed, reverted = [], doubted = [], blocks = 1, depth = 0 } = step;
    this.#depth = depth;
    this.#blocks += blocks;
    if (reverted.length > 0) {
      const moved = new Set(confirmed.map(({ key }) => key));
      for (const { key } of reverted) {
        const trade = this.#trades.get(key);
        if (trade?.confirmedAt === undefined) continue;
        if (moved.has(key)) this.#move(trade);
        else this.#takeBack(trade, at);
      }
    }
    for (const { key } of doubted) this.#doubt(this.#trades.get(key), step, at);
    for (const entry of confirmed) this.#confirm(entry, at, step.late === true);
    const { waiting, shallow } = this.#trades;
    const lowest = this.#blocks - this.#limits.withinBlocks;
    for (let trade = waiting.first; trade !== undefined && trade.block <= lowest; trade = waiting.first)
      this.#expire(trade, at);
    const deep = this.#blocks - depth;
    for (let trade = shallow.first; trade !== undefined && trade.block <= deep; trade = shallow.first)
      this.#remember(trade);
  }

  /** Corrects what was decided before a hole of a side became known. */
  revise(side: Because['side']): void {
    const [state, of] = side === 'ledger' ? (['expired', this.#ledger] as const) : (['unseen', this.#feed] as const);
    for (const list of [this.#trades.decided, this.#trades.shallow])
      for (let trade = list.first; trade !== undefined; trade = trade.after) {
        const gap = trade.state === state ? of.newHoleIn(...this.#neededOf(trade)) : undefined;
        if (gap !== undefined) this.#emit(trade, 'unknown', this.#now, { because: { side, why: 'gap', gap } });
      }
  }

  /**
   * Removes what exceeds the bounds: decided trades first, then those that the feed has not shown, then the others.
   * Returns whether only steps of the ledger are left to remove.
   */
  evict(): boolean {
    const trades = this.#trades;
    const { maxTrades, maxBytes, withinMs, rememberMs, graceMs } = this.#limits;
    while (trades.size + this.queuedEntries > maxTrades || trades.bytes > maxBytes) {
      const trade = trades.leastNeeded;
      if (trade === undefined) return true;
      const at = this.#now === -Infinity ? trade.since : this.#now;
      const isOpen = trade.list === trades.waiting || trade.list === trades.queued;
      if (isOpen) this.#emit(trade, 'unknown', at, { because: evicted('ledger') });
      else if (trade.list === trades.lone) this.#emit(trade, 'unknown', at, { because: evicted('feed') });
      const waitMs = isOpen ? withinMs : graceMs;
      this.#lostUntil = Math.max(this.#lostUntil, trade.since + waitMs + rememberMs);
      this.#lostUntilBlock = this.#blocks + this.#depth;
      this.#trades.forget(trade);
    }
    return false;
  }

  /** Nothing more can be decided. */
  end(): void {
    while (this.#trades.queued.first !== undefined) this.see();
    for (const side of ['ledger', 'feed'] as const) {
      const list = side === 'ledger' ? this.#trades.waiting : this.#trades.lone;
      for (let trade = list.first; trade !== undefined; trade = list.first) {
        this.#emit(trade, 'unknown', this.#now, { because: { side, why: 'end' } });
        this.#remember(trade);
      }
    }
  }

  /** The feed shows a trade that the ledger had before. */
  #show(known: Trade<V, K>, { value, bytes, since, slot }: Trade<V, K>): void {
    known.value = value;
    known.bytes = bytes;
    known.seenAt = since;
    this.#trades.setSlot(known, slot);
    if (known.confirmedAt !== undefined) this.#settle(known);
    else if (known.doubt !== undefined && known.state === undefined) this.#emitDoubt(known, known.doubt, since);
    else if (known.state === 'reorged') this.#wait(known, since);
  }

  /** A trade that the feed has shown waits for the ledger, unless the ledger has another one of its slot. */
  #wait(trade: Trade<V, K>, since: number): void {
    const winner = this.#trades.rivalsOf(trade).find(({ confirmedAt }) => confirmedAt !== undefined);
    if (winner !== undefined) this.#replace(trade, winner);
    else this.#waitFrom(trade, since);
  }

  #confirm({ key, slot }: LedgerEntry<K>, at: number, isLate: boolean): void {
    let trade = this.#trades.get(key);
    if (trade?.confirmedAt !== undefined) return;
    if (trade === undefined) {
      trade = new Trade<V, K>(key, at);
      this.#trades.add(trade);
    }
    trade.confirmedAt = at;
    trade.isLate = isLate;
    trade.doubt = undefined;
    trade.block = this.#blocks;
    if (this.#limits.slot !== undefined) this.#trades.setSlot(trade, slot);
    if (trade.seenAt !== undefined) return this.#settle(trade);
    trade.since = at;
    this.#trades.lone.add(trade);
    this.#replaceRivals(trade);
  }

  #settle(trade: Trade<V, K>): void {
    const { confirmedAt, seenAt } = trade as { confirmedAt: number; seenAt: number };
    this.#emit(trade, 'confirmed', Math.max(confirmedAt, seenAt));
    this.#keep(trade);
    this.#replaceRivals(trade);
  }

  #move(trade: Trade<V, K>): void {
    for (const each of [trade, ...this.#trades.rivalsOf(trade)]) {
      if (each !== trade && each.state !== 'replaced') continue;
      each.block = this.#blocks;
      if (each.list !== this.#trades.lone) this.#keep(each);
    }
  }

  #takeBack(trade: Trade<V, K>, at: number): void {
    for (const rival of this.#trades.rivalsOf(trade))
      if (rival.state === 'replaced') {
        this.#emit(rival, 'reorged', at);
        this.#waitFrom(rival, at);
      }
    if (trade.state === undefined) return this.#trades.forget(trade);
    if (trade.state !== 'reorged') this.#emit(trade, 'reorged', at);
    trade.confirmedAt = undefined;
    if (trade.seenAt === undefined) this.#remember(trade);
    else this.#waitFrom(trade, at);
  }

  #waitFrom(trade: Trade<V, K>, since: number): void {
    trade.since = since;
    trade.block = this.#blocks;
    this.#trades.waiting.add(trade);
  }

  #doubt(trade: Trade<V, K> | undefined, { gap }: LedgerStep<K>, at: number): void {
    if (trade?.confirmedAt === undefined || gap === undefined) return;
    for (const rival of this.#trades.rivalsOf(trade)) if (rival.state === 'replaced') this.#emitDoubt(rival, gap, at);
    trade.doubt = gap;
    if (trade.list !== this.#trades.lone) this.#emitDoubt(trade, gap, at);
    trade.confirmedAt = undefined;
  }

  #emitDoubt(trade: Trade<V, K>, gap: NonNullable<LedgerStep<K>['gap']>, at: number): void {
    this.#emit(trade, 'unknown', at, { because: { side: 'ledger', why: 'gap', gap } });
    trade.block = this.#blocks;
    this.#keep(trade);
  }

  #expire(trade: Trade<V, K>, at: number): void {
    const { since, seenAt } = trade;
    // A trade that was taken back has waited from then on.
    trade.waitedFrom = since === seenAt ? seenAt - this.#limits.graceMs : since;
    trade.waitedUntil = at;
    this.#conclude(trade, 'expired', at, this.#lacksLedger(trade));
    this.#remember(trade);
  }

  /** The feed has not shown a confirmed trade in time. */
  #miss(trade: Trade<V, K>, at: number): void {
    if (trade.doubt !== undefined) return this.#emitDoubt(trade, trade.doubt, at);
    this.#conclude(trade, 'unseen', at, this.#lacksFeed(trade));
    this.#keep(trade);
  }

  /** Returns the time, in epoch ms, that must be without holes for `expired`, or without a sight for `unseen`. */
  #neededOf({ seenAt, waitedFrom, waitedUntil, confirmedAt = 0 }: Trade<V, K>): [from: number, until: number] {
    const { origin } = this;
    if (seenAt !== undefined) return [origin + waitedFrom, origin + waitedUntil];
    return [origin + confirmedAt - this.#limits.rememberMs, origin + confirmedAt + this.#limits.graceMs];
  }

  #lacksLedger(trade: Trade<V, K>): Because | undefined {
    const because = this.#ledger.lacks(...this.#neededOf(trade)) ?? this.#lost('ledger', trade, trade.seenAt as number);
    if (because !== undefined) return because;
    const gap = this.#trades
      .rivalsOf(trade)
      .find(({ confirmedAt, doubt }) => confirmedAt === undefined && doubt !== undefined)?.doubt;
    return gap && { side: 'ledger', why: 'gap', gap };
  }

  #lacksFeed(trade: Trade<V, K>): Because | undefined {
    return this.#feed.lacks(...this.#neededOf(trade)) ?? this.#lost('feed', trade, trade.confirmedAt as number);
  }

  #lost(side: Because['side'], { block }: Trade<V, K>, time: number): Because | undefined {
    return time <= this.#lostUntil || block < this.#lostUntilBlock ? evicted(side) : undefined;
  }

  /** Keeps a decided trade until its block is deep enough, and then for a while. */
  #keep(trade: Trade<V, K>): void {
    if (this.#depth === 0) return this.#remember(trade);
    trade.since = Math.max(this.#now, this.#lastAt);
    this.#trades.shallow.add(trade);
  }

  #remember(trade: Trade<V, K>): void {
    trade.since = Math.max(this.#now, this.#lastAt);
    this.#trades.decided.add(trade);
  }

  #replaceRivals(winner: Trade<V, K>): void {
    for (const rival of this.#trades.rivalsOf(winner))
      if (rival.confirmedAt === undefined && rival.seenAt !== undefined && rival.state !== 'replaced')
        this.#replace(rival, winner);
  }

  #replace(trade: Trade<V, K>, winner: Trade<V, K>): void {
    const at = Math.max(winner.confirmedAt as number, trade.seenAt as number);
    this.#emit(trade, 'replaced', at, { by: winner.key });
    trade.block = winner.block;
    this.#keep(trade);
  }

  #emit(
    trade: Trade<V, K>,
    state: OutcomeState,
    at: number,
    more?: { readonly because: Because } | { readonly by: K },
  ): void {
    if (at > this.#lastAt) this.#lastAt = at;
    const facts = factsOf(trade, state, this.#lastAt, this.origin);
    if (more !== undefined) Object.assign(facts, more);
    if (trade.state !== undefined) Object.assign(facts, { previous: previousOf(trade, trade.state, this.origin) });
    trade.state = state;
    trade.decidedAt = this.#lastAt;
    this.#push(facts as Outcome<V, K>);
  }

  /** Emits a state that only a time without holes proves. */
  #conclude(trade: Trade<V, K>, state: 'expired' | 'unseen', at: number, because: Because | undefined): void {
    if (because === undefined) this.#emit(trade, state, at);
    else this.#emit(trade, 'unknown', at, { because });
  }
}

const evicted = (side: Because['side']): Because => ({ side, why: 'evicted' });
