import type { Because, LedgerEntry, LedgerStep, Outcome, OutcomeState, PreviousOutcome } from './outcome.js';
import type { Side } from './side.js';
import { Trade, TradeList } from './trade-list.js';

/** How long trades wait and are remembered, and how many. */
export interface SettlementLimits {
  readonly withinMs: number;
  readonly withinBlocks: number;
  readonly graceMs: number;
  readonly rememberMs: number;
  readonly maxTrades: number;
  readonly maxBytes: number;
}

/**
 * What is known about each trade, as a fold over sights and steps in the order of their time. It reads no clock: so a
 * recording has the outcomes of the live streams.
 */
export class Settlement<V, K> {
  readonly #limits: SettlementLimits;
  readonly #feed: Side;
  readonly #ledger: Side;
  /** The trades that are not folded yet. They count, too. */
  readonly queued = new TradeList<V, K>();
  queuedEntries = 0;

  readonly #trades = new Map<K, Trade<V, K>>();
  /** The first trade of each slot. */
  readonly #slots = new Map<unknown, Trade<V, K>>();
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
  #ready: Outcome<V, K>[] = [];

  constructor(limits: SettlementLimits, feed: Side, ledger: Side) {
    this.#limits = limits;
    this.#feed = feed;
    this.#ledger = ledger;
  }

  get origin(): number {
    return this.#origin ?? 0;
  }

  get hasOutcomes(): boolean {
    return this.#ready.length > 0;
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

  take(): readonly Outcome<V, K>[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
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
    for (let trade = this.#waiting.first; trade !== undefined; trade = this.#waiting.first)
      this.#close(trade, 'ledger');
    for (let trade = this.#lone.first; trade !== undefined; trade = this.#lone.first) this.#close(trade, 'feed');
  }

  #isOverfull(): boolean {
    const { maxTrades, maxBytes } = this.#limits;
    return this.#trades.size + this.queued.size + this.queuedEntries > maxTrades || this.#bytes > maxBytes;
  }

  #begin(trade: Trade<V, K>): void {
    trade.block = this.#blocks;
    this.#trades.set(trade.key, trade);
    this.#takePlace(trade);
    this.#wait(trade, trade.since);
  }

  /** The feed shows a trade that the ledger had before. */
  #show(known: Trade<V, K>, { value, bytes, since, slot }: Trade<V, K>): void {
    known.value = value;
    known.bytes = bytes;
    known.seenAt = since;
    if (known.slot === undefined) {
      known.slot = slot;
      this.#takePlace(known);
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
    const winner = this.#winnerOf(trade);
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
      this.#takePlace(trade);
    }
    if (trade.seenAt !== undefined) return this.#settle(trade);
    trade.since = at;
    this.#lone.add(trade);
    this.#replaceRivals(trade);
  }

  /** A trade that was shown is confirmed. */
  #settle(trade: Trade<V, K>): void {
    const { confirmedAt, seenAt } = trade as { confirmedAt: number; seenAt: number };
    this.#emit(trade, 'confirmed', Math.max(confirmedAt, seenAt), undefined);
    this.#keepShallow(trade);
    this.#replaceRivals(trade);
  }

  /** A trade is in another block now. */
  #move(trade: Trade<V, K>): void {
    for (const each of [trade, ...this.#rivalsOf(trade)]) {
      if (each !== trade && each.state !== 'replaced') continue;
      each.block = this.#blocks;
      if (each.list !== this.#lone) this.#keepShallow(each);
    }
  }

  #takeBack(trade: Trade<V, K>, at: number): void {
    for (const rival of this.#rivalsOf(trade))
      if (rival.state === 'replaced') {
        this.#emit(rival, 'reorged', at, undefined);
        rival.since = at;
        rival.block = this.#blocks;
        this.#waiting.add(rival);
      }
    if (trade.state === undefined) return this.#forget(trade);
    if (trade.state !== 'reorged') this.#emit(trade, 'reorged', at, undefined);
    trade.confirmedAt = undefined;
    trade.block = this.#blocks;
    if (trade.seenAt === undefined) return this.#remember(trade);
    trade.since = at;
    this.#waiting.add(trade);
  }

  #doubt(trade: Trade<V, K> | undefined, { gap }: LedgerStep<K>, at: number): void {
    if (trade?.confirmedAt === undefined || gap === undefined) return;
    for (const rival of this.#rivalsOf(trade)) if (rival.state === 'replaced') this.#emitDoubt(rival, gap, at);
    trade.doubt = gap;
    if (trade.list !== this.#lone) this.#emitDoubt(trade, gap, at);
    trade.confirmedAt = undefined;
  }

  #emitDoubt(trade: Trade<V, K>, gap: NonNullable<LedgerStep<K>['gap']>, at: number): void {
    this.#emit(trade, 'unknown', at, { because: { side: 'ledger', why: 'gap', gap } });
    trade.block = this.#blocks;
    this.#keepShallow(trade);
  }

  #expire(trade: Trade<V, K>, at: number): void {
    const { since, seenAt } = trade;
    // A trade that was taken back has waited from then on.
    trade.waitedFrom = since === seenAt ? seenAt - this.#limits.graceMs : since;
    trade.waitedUntil = at;
    const because = this.#lacksLedger(trade);
    if (because === undefined) this.#emit(trade, 'expired', at, undefined);
    else this.#emit(trade, 'unknown', at, { because });
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
    const because = this.#lacksFeed(trade);
    if (because === undefined) this.#emit(trade, 'unseen', at, undefined);
    else this.#emit(trade, 'unknown', at, { because });
    this.#keepShallow(trade);
  }

  #close(trade: Trade<V, K>, side: Because['side']): void {
    this.#emit(trade, 'unknown', this.#now, { because: { side, why: 'end' } });
    this.#remember(trade);
  }

  #lacksLedger(trade: Trade<V, K>): Because | undefined {
    const { waitedFrom, waitedUntil, seenAt = waitedFrom } = trade;
    const because =
      this.#ledger.lacks(this.origin + waitedFrom, this.origin + waitedUntil) ?? this.#lost('ledger', trade, seenAt);
    if (because !== undefined) return because;
    for (const { doubt, confirmedAt } of this.#rivalsOf(trade))
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

  #keepShallow(trade: Trade<V, K>): void {
    trade.since = Math.max(this.#now, this.#lastAt);
    if (this.#depth === 0) this.#decided.add(trade);
    else this.#shallow.add(trade);
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
    if (trade.slot !== undefined) this.#leavePlace(trade);
  }

  #takePlace(trade: Trade<V, K>): void {
    if (trade.slot === undefined) return;
    trade.rival = this.#slots.get(trade.slot);
    this.#slots.set(trade.slot, trade);
  }

  #leavePlace(trade: Trade<V, K>): void {
    let other = this.#slots.get(trade.slot);
    if (other === trade) {
      if (trade.rival === undefined) this.#slots.delete(trade.slot);
      else this.#slots.set(trade.slot, trade.rival);
      return;
    }
    while (other !== undefined && other.rival !== trade) other = other.rival;
    if (other !== undefined) other.rival = trade.rival;
  }

  *#rivalsOf(trade: Trade<V, K>): Generator<Trade<V, K>, void, undefined> {
    if (trade.slot === undefined) return;
    for (let other = this.#slots.get(trade.slot); other !== undefined; other = other.rival)
      if (other !== trade) yield other;
  }

  #winnerOf(trade: Trade<V, K>): Trade<V, K> | undefined {
    for (const rival of this.#rivalsOf(trade)) if (rival.confirmedAt !== undefined) return rival;
    return undefined;
  }

  #replaceRivals(winner: Trade<V, K>): void {
    if (winner.slot === undefined || (winner.rival === undefined && this.#slots.get(winner.slot) === winner)) return;
    for (const rival of this.#rivalsOf(winner))
      if (rival.confirmedAt === undefined && rival.seenAt !== undefined && rival.state !== 'replaced')
        this.#replace(rival, winner);
  }

  #replace(trade: Trade<V, K>, winner: Trade<V, K>): void {
    const at = Math.max(winner.confirmedAt as number, trade.seenAt as number);
    this.#emit(trade, 'replaced', at, { by: winner.key });
    trade.block = winner.block;
    this.#keepShallow(trade);
  }

  #emit(
    trade: Trade<V, K>,
    state: Outcome<V, K>['state'],
    at: number,
    more: { readonly because: Because } | { readonly by: K } | undefined,
  ): void {
    if (at > this.#lastAt) this.#lastAt = at;
    const facts = factsOf(trade, state, this.#lastAt, this.origin);
    if (more !== undefined) Object.assign(facts, more);
    if (trade.state !== undefined) Object.assign(facts, { previous: previousOf(trade, trade.state, this.origin) });
    trade.state = state;
    trade.decidedAt = this.#lastAt;
    this.#ready.push(facts as Outcome<V, K>);
  }
}

const evicted = (side: Because['side']): Because => ({ side, why: 'evicted' });

const factsOf = <V, K>(trade: Trade<V, K>, state: OutcomeState, time: number, origin: number): object => {
  const { key, value } = trade;
  const at = origin + time;
  const seenAt = trade.seenAt === undefined ? undefined : origin + trade.seenAt;
  const confirmedAt = trade.confirmedAt === undefined ? undefined : origin + trade.confirmedAt;
  if (seenAt === undefined)
    return { type: 'outcome', state, key, at, ...(state === 'unseen' && { confirmedAt: confirmedAt as number }) };
  if (state !== 'confirmed' || confirmedAt === undefined) return { type: 'outcome', state, key, at, value, seenAt };
  const leadMs = confirmedAt - seenAt;
  const facts = { type: 'outcome', state, key, at, value, seenAt, confirmedAt, leadMs };
  return trade.isLate ? { ...facts, late: true } : facts;
};

const previousOf = <V, K>(
  { decidedAt, confirmedAt, seenAt }: Trade<V, K>,
  state: OutcomeState,
  origin: number,
): PreviousOutcome =>
  state === 'confirmed' && confirmedAt !== undefined && seenAt !== undefined
    ? { state, at: origin + decidedAt, leadMs: confirmedAt - seenAt }
    : { state, at: origin + decidedAt };
