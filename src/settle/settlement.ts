import { bytesOf } from '../operators/items/item.js';
import type { Gap } from '../protocol/event.js';
import type { Because, LedgerEntry, LedgerStep, Outcome, OutcomeState } from './outcome.js';
import type { Side } from './side.js';
import { Slots, Trade, TradeList } from './trade.js';

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
  readonly #byKey = new Map<K, Trade<V, K>>();
  readonly #slots = new Slots<V, K>();
  // A trade is in one of these lists.
  readonly #queued = new TradeList<V, K>(0, 'ledger');
  readonly #waiting: TradeList<V, K>;
  /** Only the ledger has it: it waits for the feed. */
  readonly #lone: TradeList<V, K>;
  /** Decided, and remembered for a while, and until its block can't be taken back. */
  readonly #decided: TradeList<V, K>;
  /** The steps that are not folded yet, by time. */
  readonly #steps: { readonly at: number; readonly step: LedgerStep<K> }[] = [];
  /** Trades, and the entries of steps. */
  #count = 0;
  #bytes = 0;
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
    this.#waiting = new TradeList(limits.withinMs, 'ledger');
    this.#lone = new TradeList(limits.graceMs, 'feed');
    this.#decided = new TradeList(limits.rememberMs);
  }

  /** Whether a trade of the feed waits. */
  get isWaiting(): boolean {
    return (this.#waiting.first ?? this.#queued.first) !== undefined;
  }

  /** Up to when both sides must be complete before something is folded, in epoch ms. */
  get nextAt(): number {
    const decidedAt = Math.min(this.#waiting.due, this.#lone.due) + 1;
    return this.#epoch(Math.min(this.#queued.due, this.#steps[0]?.at ?? Infinity, decidedAt));
  }

  queue(key: K, slot: unknown, value: V, seenAt: number): void {
    const trade = new Trade<V, K>(key, this.#sinceOrigin(seenAt));
    trade.slot = slot;
    trade.value = value;
    trade.seenAt = trade.since;
    trade.bytes = bytesOf(value);
    this.#bytes += trade.bytes;
    this.#count += 1;
    this.#queued.add(trade);
  }

  queueStep(step: LedgerStep<K>, placeAt: number): void {
    const steps = this.#steps;
    const [stepAt, earliest] = [this.#sinceOrigin(step.at), this.#sinceOrigin(placeAt)];
    // It may not overtake the steps before it.
    const at = Math.min(stepAt, Math.max(earliest, steps.at(-1)?.at ?? earliest));
    let place = steps.length;
    while (at < (steps[place - 1]?.at ?? -Infinity)) place -= 1;
    steps.splice(place, 0, { at, step });
    this.#count += entriesOf(step);
  }

  /** Folds everything up to `untilMs`, and decides whatever was due before `decideUntilMs`. In epoch ms. */
  foldTo(untilMs: number, decideUntilMs: number): void {
    const [until, decideUntil] = [untilMs - this.#epoch(0), decideUntilMs - this.#epoch(0)];
    for (;;) {
      const seenAt = this.#queued.due;
      const at = Math.min(seenAt, this.#steps[0]?.at ?? Infinity);
      const due = Math.min(this.#waiting.due, this.#lone.due);
      if (due < at && due < decideUntil) {
        this.#passTo(due);
        if (this.#lone.due === due) this.#miss(this.#lone.first as Trade<V, K>, due);
        else this.#expire(this.#waiting.first as Trade<V, K>, due);
      } else if (at > until || at === Infinity) return;
      else {
        this.#passTo(at);
        if (seenAt === at) this.#see(this.#queued.first as Trade<V, K>);
        else this.#foldStep();
      }
    }
  }

  /** Corrects what was decided before a hole of a side became known. */
  revise(side: Side): void {
    const state = side === this.#ledger ? 'expired' : 'unseen';
    for (let trade = this.#decided.first; trade !== undefined; trade = trade.after) {
      const because = trade.state === state ? this.#lacks(side, trade) : undefined;
      if (because?.why === 'gap') this.#emit(trade, 'unknown', this.#now, { because });
    }
  }

  /** Removes what exceeds the bounds: decided trades first, then those that the feed has not shown, then the others. */
  evict(): void {
    const { maxTrades, maxBytes, rememberMs, graceMs } = this.#limits;
    while (this.#count > maxTrades || this.#bytes > maxBytes) {
      const lists = [this.#decided, this.#lone, this.#waiting, this.#queued];
      const { first, side } = lists.find((list) => list.first !== undefined) ?? {};
      if (first === undefined) this.#foldStep();
      else {
        const at = this.#now === -Infinity ? first.since : this.#now;
        if (side !== undefined) this.#emit(first, 'unknown', at, { because: { side, why: 'evicted' } });
        const waitMs = side === 'ledger' ? this.#limits.withinMs : graceMs;
        this.#lostUntil = Math.max(this.#lostUntil, first.since + waitMs + rememberMs);
        this.#lostUntilBlock = this.#blocks + this.#depth;
        this.#forget(first);
      }
    }
  }

  /** Nothing more can be decided. */
  end(): void {
    for (const { first, side } of [this.#waiting, this.#lone])
      for (let trade = first; trade !== undefined; trade = trade.after)
        this.#emit(trade, 'unknown', this.#now, { because: { side: side as Because['side'], why: 'end' } });
  }

  #sinceOrigin(epochMs: number): number {
    return epochMs - (this.#origin ??= epochMs);
  }

  #epoch(time: number): number {
    return time + (this.#origin ?? 0);
  }

  /** Moves the time, before what has that time is folded. */
  #passTo(time: number): void {
    if (time <= this.#now) return;
    this.#now = time;
    const deep = this.#blocks - this.#depth;
    while (this.#decided.due < time && this.#decided.lowest <= deep) this.#forget(this.#decided.first as Trade<V, K>);
  }

  #forget(trade: Trade<V, K>): void {
    // A trade of the queue can have the key of another one.
    if (trade.list !== this.#queued) {
      this.#byKey.delete(trade.key);
      this.#slots.remove(trade);
    }
    trade.list?.remove(trade);
    this.#bytes -= trade.bytes;
    this.#count -= 1;
  }

  /** Folds the first trade of the queue. */
  #see(trade: Trade<V, K>): void {
    const { key, slot, since } = trade;
    const known = this.#byKey.get(key);
    if (known === undefined) {
      this.#byKey.set(key, trade);
      this.#slots.add(trade);
      return this.#review(trade, since);
    }
    this.#queued.remove(trade);
    this.#count -= 1;
    if (known.seenAt === undefined) {
      known.value = trade.value;
      known.bytes = trade.bytes;
      known.seenAt = since;
      this.#setSlot(known, slot);
      this.#review(known, since);
    } else {
      this.#bytes -= trade.bytes;
      if (known.list === this.#decided) this.#keep(known);
    }
  }

  /** Folds the first step of the queue. */
  #foldStep(): void {
    const { step } = this.#steps.shift() as { readonly step: LedgerStep<K> };
    const { confirmed, reverted = [], doubted = [], blocks = 1, depth = 0, gap } = step;
    const at = this.#sinceOrigin(step.at);
    this.#count -= entriesOf(step);
    this.#depth = depth;
    this.#blocks += blocks;
    const kept = new Set(reverted.length > 0 ? confirmed.map(({ key }) => key) : []);
    for (const { key } of reverted)
      if (kept.has(key)) this.#moveUp(this.#byKey.get(key));
      else this.#withdraw(this.#byKey.get(key), at, undefined);
    if (gap !== undefined) for (const { key } of doubted) this.#withdraw(this.#byKey.get(key), at, gap);
    for (const entry of confirmed) this.#confirm(entry, at, step.late === true);
    const lowest = this.#blocks - this.#limits.withinBlocks;
    while (this.#waiting.lowest <= lowest) this.#expire(this.#waiting.first as Trade<V, K>, at);
  }

  #confirm({ key, slot }: LedgerEntry<K>, at: number, isLate: boolean): void {
    let trade = this.#byKey.get(key);
    if (trade === undefined) {
      trade = new Trade<V, K>(key, at);
      this.#byKey.set(key, trade);
      this.#count += 1;
    } else if (trade.isConfirmed) return;
    trade.isConfirmed = true;
    trade.confirmedAt = at;
    trade.isLate = isLate;
    trade.doubt = undefined;
    if (this.#limits.slot !== undefined) this.#setSlot(trade, slot);
    this.#review(trade, at);
  }

  /** The ledger takes a trade back, or may have done so in a hole. Also counts for those that it replaced. */
  #withdraw(trade: Trade<V, K> | undefined, at: number, doubt: Gap | undefined): void {
    if (!trade?.isConfirmed) return;
    trade.isConfirmed = false;
    for (const each of [trade, ...this.#losersTo(trade)]) {
      each.doubt = doubt;
      this.#review(each, at);
    }
  }

  /** The block of a trade was taken back, and another one has it. */
  #moveUp(trade: Trade<V, K> | undefined): void {
    if (!trade?.isConfirmed) return;
    for (const each of [trade, ...this.#losersTo(trade)]) {
      each.block = this.#blocks;
      if (each.list !== this.#lone) this.#keep(each);
    }
  }

  #losersTo(winner: Trade<V, K>): readonly Trade<V, K>[] {
    return this.#slots.rivalsOf(winner).filter(({ state }) => state === 'replaced');
  }

  /** Draws the conclusion of what has changed about a trade. */
  #review(trade: Trade<V, K>, at: number): void {
    const { seenAt, state, isConfirmed, confirmedAt, doubt } = trade;
    const rivals = this.#slots.rivalsOf(trade);
    trade.block = this.#blocks;
    if (isConfirmed) {
      if (seenAt === undefined) this.#move(trade, this.#lone, at);
      else {
        this.#emit(trade, 'confirmed', Math.max(confirmedAt, seenAt));
        this.#keep(trade);
      }
      for (const each of rivals)
        if (!each.isConfirmed && each.seenAt !== undefined && each.state !== 'replaced') this.#review(each, at);
      return;
    }
    const winner = seenAt === undefined ? undefined : rivals.find((each) => each.isConfirmed);
    if (winner !== undefined) {
      trade.doubt = undefined;
      this.#emit(trade, 'replaced', Math.max(winner.confirmedAt, seenAt as number), { by: winner.key });
      this.#keep(trade);
    } else if (doubt !== undefined) {
      // If the feed has not shown it, it is unknown when it would be unseen.
      if (state !== 'unknown' && (trade.list !== this.#lone || seenAt !== undefined)) this.#emitDoubt(trade, doubt, at);
    } else if (state === undefined && seenAt === undefined) this.#forget(trade);
    else {
      if (state !== undefined && state !== 'reorged') this.#emit(trade, 'reorged', at);
      if (seenAt === undefined) this.#keep(trade);
      else this.#move(trade, this.#waiting, at);
    }
  }

  #move(trade: Trade<V, K>, list: TradeList<V, K>, since: number): void {
    trade.since = since;
    list.add(trade);
  }

  #emitDoubt(trade: Trade<V, K>, gap: Gap, at: number): void {
    this.#emit(trade, 'unknown', at, { because: { side: 'ledger', why: 'gap', gap } });
    this.#keep(trade);
  }

  #expire(trade: Trade<V, K>, at: number): void {
    const { since, seenAt } = trade;
    // A trade that was taken back has waited from then on.
    trade.proof = [since === seenAt ? since - this.#limits.graceMs : since, at];
    const gap = this.#slots.rivalsOf(trade).find((rival) => !rival.isConfirmed && rival.doubt !== undefined)?.doubt;
    const because = this.#lacks(this.#ledger, trade) ?? (gap && { side: 'ledger', why: 'gap', gap });
    this.#conclude(trade, 'expired', at, because);
    this.#keep(trade);
  }

  /** The feed has not shown a confirmed trade in time. */
  #miss(trade: Trade<V, K>, at: number): void {
    if (trade.doubt !== undefined) return this.#emitDoubt(trade, trade.doubt, at);
    trade.proof = [trade.since - this.#limits.rememberMs, at];
    this.#conclude(trade, 'unseen', at, this.#lacks(this.#feed, trade));
    this.#keep(trade);
  }

  /** Emits a state that only a time without holes proves. */
  #conclude(trade: Trade<V, K>, state: 'expired' | 'unseen', at: number, because: Because | undefined): void {
    if (because === undefined) this.#emit(trade, state, at);
    else this.#emit(trade, 'unknown', at, { because });
  }

  /** Returns why a side does not prove the state of a trade; `undefined` if it does. */
  #lacks(side: Side, { proof: [from, to] = [0, 0], block, seenAt, confirmedAt }: Trade<V, K>): Because | undefined {
    const isLost = (seenAt ?? confirmedAt) <= this.#lostUntil || block < this.#lostUntilBlock;
    const because = side.lacks(this.#epoch(from), this.#epoch(to));
    return because ?? (isLost ? { side: side.name, why: 'evicted' } : undefined);
  }

  #keep(trade: Trade<V, K>): void {
    this.#move(trade, this.#decided, Math.max(this.#now, this.#lastAt));
  }

  #setSlot(trade: Trade<V, K>, slot: unknown): void {
    if (trade.slot !== undefined || slot === undefined) return;
    trade.slot = slot;
    this.#slots.add(trade);
  }

  #emit(trade: Trade<V, K>, state: OutcomeState, at: number, reason?: Reason<K>): void {
    if (at > this.#lastAt) this.#lastAt = at;
    this.#push(outcomeOf(trade, state, this.#lastAt, this.#epoch(0), reason));
    trade.state = state;
    trade.decidedAt = this.#lastAt;
  }
}

type Reason<K> = { readonly because: Because } | { readonly by: K };

/** How many trades a step that waits counts as. */
const entriesOf = ({ confirmed, reverted = [], doubted = [] }: LedgerStep<unknown>): number =>
  Math.max(1, confirmed.length + reverted.length + doubted.length);

/** Creates the next outcome of a trade, whose times count from `origin`. Most outcomes are one literal: it's faster. */
const outcomeOf = <V, K>(
  trade: Trade<V, K>,
  state: OutcomeState,
  time: number,
  origin: number,
  reason: Reason<K> | undefined,
): Outcome<V, K> => {
  const facts = factsOf(trade, state, origin + time, origin);
  if (reason === undefined && trade.state === undefined && !trade.isLate) return facts as Outcome<V, K>;
  const late = state === 'confirmed' && trade.isLate && { late: true };
  const { state: before, decidedAt, confirmedAt, seenAt } = trade;
  if (before === undefined) return { ...facts, ...late, ...reason } as Outcome<V, K>;
  const lead = before === 'confirmed' && { leadMs: confirmedAt - (seenAt as number) };
  return { ...facts, ...late, ...reason, previous: { state: before, at: origin + decidedAt, ...lead } } as never;
};

const factsOf = <V, K>(trade: Trade<V, K>, state: OutcomeState, at: number, origin: number): object => {
  const type = 'outcome';
  const { key, value } = trade;
  const confirmedAt = origin + trade.confirmedAt;
  if (trade.seenAt === undefined)
    return state === 'unseen' ? { type, state, key, at, confirmedAt } : { type, state, key, at };
  const seenAt = origin + trade.seenAt;
  return state === 'confirmed'
    ? { type, state, key, at, value, seenAt, confirmedAt, leadMs: confirmedAt - seenAt }
    : { type, state, key, at, value, seenAt };
};
