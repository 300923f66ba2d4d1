import type { Because, LedgerEntry, LedgerStep, Outcome, OutcomeState } from './outcome.js';
import type { Side } from './side.js';
import { factsOf, previousOf, Slots, Trade, TradeList } from './trade.js';

export type SettlementLimits = Readonly<
  Record<'withinMs' | 'withinBlocks' | 'graceMs' | 'rememberMs' | 'maxTrades' | 'maxBytes', number>
>;

/**
 * What is known about each trade, as a fold over sights and steps in the order of their time. It reads no clock: so a
 * recording has the outcomes of the live streams.
 */
export class Settlement<V, K> {
  readonly #limits: SettlementLimits;
  readonly #feed: Side;
  readonly #ledger: Side;
  readonly #push: (outcome: Outcome<V, K>) => void;
  /** The trades that are not folded yet. They count, too. */
  readonly queued = new TradeList<V, K>();
  queuedEntries = 0;

  readonly #trades = new Map<K, Trade<V, K>>();
  readonly #slots = new Slots<V, K>();
  /** Each trade is in one list: it waits for the ledger, … */
  readonly #waiting = new TradeList<V, K>();
  /** … it waits for the feed, … */
  readonly #lone = new TradeList<V, K>();
  /** … it is decided, and its block can be taken back, … */
  readonly #shallow = new TradeList<V, K>();
  /** … or it is decided, and remembered for a while. */
  readonly #decided = new TradeList<V, K>();

  #bytes = 0;
  #blocks = 0;
  #depth = 0;
  /**
   * Times count from here, in epoch ms. V8 stores such small whole numbers in the trade, and a large one in an object of
   * its own.
   */
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
    return this.#waiting.size > 0 || this.queued.size > 0;
  }

  /** The time of the next decision. It is made when all values up to that time are folded. */
  get nextDue(): number {
    return this.#nextDue + this.origin;
  }

  /** The time of the next trade in the queue. */
  get nextSeenAt(): number {
    return (this.queued.first?.since ?? Infinity) + this.origin;
  }

  get #nextDue(): number {
    const waiting = this.#waiting.first;
    const lone = this.#lone.first;
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
    this.queued.add(trade);
    this.#bytes += bytes;
  }

  /** Moves the time, before what has that time is folded. */
  passTo(epochMs: number): void {
    const time = epochMs - (this.#origin ??= epochMs);
    if (time <= this.#now) return;
    this.#now = time;
    for (let trade = this.#decided.first; trade !== undefined; trade = this.#decided.first) {
      if (trade.since + this.#limits.rememberMs >= time) return;
      this.#forget(trade);
    }
  }

  decide(): void {
    const due = this.#nextDue;
    const lone = this.#lone.first;
    if (lone !== undefined && lone.since + this.#limits.graceMs === due) this.#miss(lone, due);
    else this.#expire(this.#waiting.first as Trade<V, K>, due);
  }

  /** Folds the first trade of the queue. */
  see(): void {
    const trade = this.queued.first as Trade<V, K>;
    this.queued.remove(trade);
    const known = this.#trades.get(trade.key);
    if (known === undefined) this.#begin(trade);
    else {
      const isFirst = known.seenAt === undefined;
      this.#bytes -= isFirst ? 0 : trade.bytes;
      if (isFirst) this.#show(known, trade);
      else if (known.list === this.#decided) this.#remember(known);
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
    this.#expireByBlocks(at);
    for (let trade = this.#shallow.first; trade !== undefined; trade = this.#shallow.first) {
      if (trade.block + this.#depth > this.#blocks) break;
      this.#remember(trade);
    }
  }

  /** Corrects what was decided before a hole of a side became known. */
  revise(side: Because['side']): void {
    const { graceMs, rememberMs } = this.#limits;
    const { origin } = this;
    for (const list of [this.#decided, this.#shallow])
      for (let trade = list.first; trade !== undefined; trade = trade.after) {
        const { state, waitedFrom, waitedUntil, confirmedAt = 0 } = trade;
        const isOpen = state === (side === 'ledger' ? 'expired' : 'unseen');
        const gap = !isOpen
          ? undefined
          : side === 'ledger'
            ? this.#ledger.newHoleIn(origin + waitedFrom, origin + waitedUntil)
            : this.#feed.newHoleIn(origin + confirmedAt - rememberMs, origin + confirmedAt + graceMs);
        if (gap !== undefined) this.#emit(trade, 'unknown', this.#now, { because: { side, why: 'gap', gap } });
      }
  }

  /**
   * Removes what exceeds the bounds: decided trades first, then those that the feed has not shown, then the others.
   * Returns whether only steps of the ledger are left to remove.
   */
  evict(): boolean {
    while (this.#isOverfull()) {
      const trade =
        this.#decided.first ?? this.#shallow.first ?? this.#lone.first ?? this.#waiting.first ?? this.queued.first;
      if (trade === undefined) return true;
      const at = this.#now === -Infinity ? trade.since : this.#now;
      if (trade.list === this.#lone) this.#emit(trade, 'unknown', at, { because: evicted('feed') });
      else if (trade.list === this.#waiting || trade.list === this.queued)
        this.#emit(trade, 'unknown', at, { because: evicted('ledger') });
      const { withinMs, rememberMs, graceMs } = this.#limits;
      const waitMs = trade.list === this.#waiting || trade.list === this.queued ? withinMs : graceMs;
      this.#lostUntil = Math.max(this.#lostUntil, trade.since + waitMs + rememberMs);
      this.#lostUntilBlock = this.#blocks + this.#depth;
      this.#forget(trade);
    }
    return false;
  }

  /** Nothing more can be decided. */
  end(): void {
    while (this.queued.first !== undefined) this.see();
    for (const side of ['ledger', 'feed'] as const) {
      const list = side === 'ledger' ? this.#waiting : this.#lone;
      for (let trade = list.first; trade !== undefined; trade = list.first) {
        this.#emit(trade, 'unknown', this.#now, { because: { side, why: 'end' } });
        this.#remember(trade);
      }
    }
  }

  #isOverfull(): boolean {
    const { maxTrades, maxBytes } = this.#limits;
    return this.#trades.size + this.queued.size + this.queuedEntries > maxTrades || this.#bytes > maxBytes;
  }

  #begin(trade: Trade<V, K>): void {
    trade.block = this.#blocks;
    this.#trades.set(trade.key, trade);
    this.#slots.add(trade);
    this.#wait(trade, trade.since);
  }

  /** The feed shows a trade that the ledger had before. */
  #show(known: Trade<V, K>, { value, bytes, since, slot }: Trade<V, K>): void {
    known.value = value;
    known.bytes = bytes;
    known.seenAt = since;
    if (known.slot === undefined) {
      known.slot = slot;
      this.#slots.add(known);
    }
    if (known.confirmedAt !== undefined) this.#settle(known);
    else if (known.doubt !== undefined && known.state === undefined) this.#emitDoubt(known, known.doubt, since);
    else if (known.state === 'reorged') {
      known.block = this.#blocks;
      this.#wait(known, since);
    }
  }

  /** A trade that the feed has shown waits for the ledger, unless the ledger has another one of its slot. */
  #wait(trade: Trade<V, K>, since: number): void {
    trade.since = since;
    const winner = this.#slots.rivalsOf(trade).find(({ confirmedAt }) => confirmedAt !== undefined);
    if (winner !== undefined) this.#replace(trade, winner);
    else this.#waiting.add(trade);
  }

  #confirm({ key, slot }: LedgerEntry<K>, at: number, isLate: boolean): void {
    let trade = this.#trades.get(key);
    if (trade?.confirmedAt !== undefined) return;
    if (trade === undefined) {
      trade = new Trade<V, K>(key, at);
      this.#trades.set(key, trade);
    }
    trade.confirmedAt = at;
    trade.isLate = isLate;
    trade.doubt = undefined;
    trade.block = this.#blocks;
    if (trade.slot === undefined && slot !== undefined) {
      trade.slot = slot;
      this.#slots.add(trade);
    }
    if (trade.seenAt !== undefined) return this.#settle(trade);
    trade.since = at;
    this.#lone.add(trade);
    this.#replaceRivals(trade);
  }

  /** A trade that was shown is confirmed. */
  #settle(trade: Trade<V, K>): void {
    const { confirmedAt, seenAt } = trade as { confirmedAt: number; seenAt: number };
    this.#emit(trade, 'confirmed', Math.max(confirmedAt, seenAt));
    this.#keep(trade);
    this.#replaceRivals(trade);
  }

  /** A trade is in another block now. */
  #move(trade: Trade<V, K>): void {
    for (const each of [trade, ...this.#slots.rivalsOf(trade)]) {
      if (each !== trade && each.state !== 'replaced') continue;
      each.block = this.#blocks;
      if (each.list !== this.#lone) this.#keep(each);
    }
  }

  #takeBack(trade: Trade<V, K>, at: number): void {
    for (const rival of this.#slots.rivalsOf(trade))
      if (rival.state === 'replaced') {
        this.#emit(rival, 'reorged', at);
        this.#waitAgain(rival, at);
      }
    if (trade.state === undefined) return this.#forget(trade);
    if (trade.state !== 'reorged') this.#emit(trade, 'reorged', at);
    trade.confirmedAt = undefined;
    if (trade.seenAt === undefined) this.#remember(trade);
    else this.#waitAgain(trade, at);
  }

  #waitAgain(trade: Trade<V, K>, since: number): void {
    trade.since = since;
    trade.block = this.#blocks;
    this.#waiting.add(trade);
  }

  #doubt(trade: Trade<V, K> | undefined, { gap }: LedgerStep<K>, at: number): void {
    if (trade?.confirmedAt === undefined || gap === undefined) return;
    for (const rival of this.#slots.rivalsOf(trade)) if (rival.state === 'replaced') this.#emitDoubt(rival, gap, at);
    trade.doubt = gap;
    if (trade.list !== this.#lone) this.#emitDoubt(trade, gap, at);
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

  #expireByBlocks(at: number): void {
    const { withinBlocks } = this.#limits;
    for (let trade = this.#waiting.first; trade !== undefined; trade = this.#waiting.first) {
      if (trade.block + withinBlocks > this.#blocks) return;
      this.#expire(trade, at);
    }
  }

  /** The feed has not shown a confirmed trade in time. */
  #miss(trade: Trade<V, K>, at: number): void {
    if (trade.doubt !== undefined) return this.#emitDoubt(trade, trade.doubt, at);
    this.#conclude(trade, 'unseen', at, this.#lacksFeed(trade));
    this.#keep(trade);
  }

  #lacksLedger(trade: Trade<V, K>): Because | undefined {
    const { waitedFrom, waitedUntil, seenAt = waitedFrom } = trade;
    const because =
      this.#ledger.lacks(this.origin + waitedFrom, this.origin + waitedUntil) ?? this.#lost('ledger', trade, seenAt);
    if (because !== undefined) return because;
    for (const { doubt, confirmedAt } of this.#slots.rivalsOf(trade))
      if (doubt !== undefined && confirmedAt === undefined) return { side: 'ledger', why: 'gap', gap: doubt };
    return undefined;
  }

  #lacksFeed(trade: Trade<V, K>): Because | undefined {
    const at = trade.confirmedAt as number;
    const { rememberMs, graceMs } = this.#limits;
    const epochMs = this.origin + at;
    return this.#feed.lacks(epochMs - rememberMs, epochMs + graceMs) ?? this.#lost('feed', trade, at);
  }

  #lost(side: Because['side'], { block }: Trade<V, K>, time: number): Because | undefined {
    return time <= this.#lostUntil || block < this.#lostUntilBlock ? evicted(side) : undefined;
  }

  /** Keeps a decided trade until its block is deep enough, and then for a while. */
  #keep(trade: Trade<V, K>): void {
    if (this.#depth === 0) return this.#remember(trade);
    trade.since = Math.max(this.#now, this.#lastAt);
    this.#shallow.add(trade);
  }

  #remember(trade: Trade<V, K>): void {
    trade.since = Math.max(this.#now, this.#lastAt);
    this.#decided.add(trade);
  }

  #forget(trade: Trade<V, K>): void {
    // A trade of the queue can have the key of another one.
    if (trade.list !== this.queued) this.#trades.delete(trade.key);
    trade.list?.remove(trade);
    this.#bytes -= trade.bytes;
    this.#slots.remove(trade);
  }

  #replaceRivals(winner: Trade<V, K>): void {
    for (const rival of this.#slots.rivalsOf(winner))
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
