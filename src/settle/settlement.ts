import { bytesOf } from '../operators/items/item.js';
import type { Gap } from '../protocol/event.js';
import type { Settings } from './settle-options.js';
import type { Because, LedgerEntry, LedgerStep, Outcome, OutcomeState } from './outcome.js';
import type { Side } from './side.js';
import { outcomeOf, type Reason, Slots, Trade, TradeList } from './trade.js';

/**
 * The state of each trade, as a fold over sights and steps in the order of their time. It reads no clock: so a
 * recording has the outcomes of the live streams. Its fields are `private`, because `#` is slower on Node 20.
 */
export class Settlement<V, K> {
  private readonly settings: Settings;
  private readonly feed: Side;
  private readonly ledger: Side;
  private readonly push: (outcome: Outcome<V, K>) => void;
  private readonly byKey = new Map<K, Trade<V, K>>();
  private readonly slots = new Slots<V, K>();
  // A trade is in one of these lists.
  private readonly queued = new TradeList<V, K>(0, 'ledger');
  private readonly waiting: TradeList<V, K>;
  /** Only the ledger has it: it waits for the feed. */
  private readonly lone: TradeList<V, K>;
  /** Decided, and remembered for a while, and until its block can't be taken back. */
  private readonly decided: TradeList<V, K>;
  /** The steps that aren't folded yet, by time. */
  private readonly steps: { readonly at: number; readonly step: LedgerStep<K> }[] = [];
  /** Trades, and the entries of steps. */
  private count = 0;
  private bytes = 0;
  private blocks = 0;
  private depth = 0;
  /** Times count from here, in epoch ms: V8 stores small whole numbers in the trade, and large ones outside. */
  private origin: number | undefined;
  /** The time up to which everything is folded. */
  private now = -Infinity;
  private lastAt = -Infinity;
  /**
   * Up to this time and this block, evicted trades would still be remembered. So whether an older trade was seen before
   * is unknown.
   */
  private lostUntil = -Infinity;
  private lostUntilBlock = -Infinity;

  constructor(settings: Settings, feed: Side, ledger: Side, push: (outcome: Outcome<V, K>) => void) {
    this.settings = settings;
    this.feed = feed;
    this.ledger = ledger;
    this.push = push;
    this.waiting = new TradeList(settings.withinMs, 'ledger');
    this.lone = new TradeList(settings.graceMs, 'feed');
    this.decided = new TradeList(settings.rememberMs);
  }

  /** Whether a trade of the feed waits. */
  get isWaiting(): boolean {
    return (this.waiting.first ?? this.queued.first) !== undefined;
  }

  get isFull(): boolean {
    return this.count > this.settings.maxTrades || this.bytes > this.settings.maxBytes;
  }

  /** Up to when both sides must be complete before something is folded, in epoch ms. */
  get nextAt(): number {
    const decidedAt = Math.min(this.waiting.due, this.lone.due) + 1;
    return this.epoch(Math.min(this.queued.due, this.steps[0]?.at ?? Infinity, decidedAt));
  }

  queue(key: K, slot: unknown, value: V, seenAt: number): void {
    const trade = new Trade<V, K>(key, this.sinceOrigin(seenAt));
    trade.slot = slot;
    trade.value = value;
    trade.seenAt = trade.since;
    trade.bytes = bytesOf(value);
    this.bytes += trade.bytes;
    this.count += 1;
    this.queued.add(trade);
  }

  /** @param placeAt - when it counts, unless a step before it counts later */
  queueStep(step: LedgerStep<K>, placeAt: number): void {
    const { steps } = this;
    const [stepAt, earliest] = [this.sinceOrigin(step.at), this.sinceOrigin(placeAt)];
    const at = Math.min(stepAt, Math.max(earliest, steps.at(-1)?.at ?? earliest));
    let place = steps.length;
    while (at < (steps[place - 1]?.at ?? -Infinity)) place -= 1;
    steps.splice(place, 0, { at, step });
    this.count += entriesOf(step);
  }

  /** Folds everything up to `untilMs`, and decides whatever was due before `decideUntilMs`. In epoch ms. */
  foldTo(untilMs: number, decideUntilMs: number): void {
    const until = untilMs - this.epoch(0);
    const decideUntil = decideUntilMs - this.epoch(0);
    for (;;) {
      const seenAt = this.queued.due;
      const at = Math.min(seenAt, this.steps[0]?.at ?? Infinity);
      const due = Math.min(this.waiting.due, this.lone.due);
      const isDue = due < at && due < decideUntil;
      if (!isDue && (at > until || at === Infinity)) return;
      this.passTo(isDue ? due : at);
      if (isDue) this.decide((this.lone.due === due ? this.lone : this.waiting).first as Trade<V, K>, due);
      else if (seenAt === at) this.see(this.queued.first as Trade<V, K>);
      else this.foldStep();
    }
  }

  /** Corrects what was decided before a hole of a side became known. */
  revise(side: Side): void {
    const state = side === this.ledger ? 'expired' : 'unseen';
    for (let trade = this.decided.first; trade !== undefined; trade = trade.after) {
      const because = trade.state === state ? this.lacks(side, trade) : undefined;
      if (because?.why === 'gap') this.emit(trade, 'unknown', this.now, { because });
    }
  }

  /** Removes what exceeds the bounds: decided trades first, then those that the feed hasn't shown, then the others. */
  evict(): void {
    const { decided, lone, waiting, queued } = this;
    const { withinMs, graceMs, rememberMs } = this.settings;
    while (this.isFull) {
      const trade = decided.first ?? lone.first ?? waiting.first ?? queued.first;
      if (trade === undefined) this.foldStep();
      else {
        const side = trade.list?.side;
        const at = this.now === -Infinity ? trade.since : this.now;
        if (side !== undefined) this.emit(trade, 'unknown', at, { because: { side, why: 'evicted' } });
        const waitMs = side === 'ledger' ? withinMs : graceMs;
        this.lostUntil = Math.max(this.lostUntil, trade.since + waitMs + rememberMs);
        this.lostUntilBlock = this.blocks + this.depth;
        this.forget(trade);
      }
    }
  }

  /** Nothing more can be decided. */
  end(): void {
    for (const { first, side } of [this.waiting, this.lone])
      for (let trade = first; trade !== undefined; trade = trade.after)
        this.emit(trade, 'unknown', this.now, { because: { side: side as Because['side'], why: 'end' } });
  }

  private sinceOrigin(epochMs: number): number {
    return epochMs - (this.origin ??= epochMs);
  }

  private epoch(time: number): number {
    return time + (this.origin ?? 0);
  }

  /** Moves the time, before what has that time is folded. */
  private passTo(time: number): void {
    if (time <= this.now) return;
    this.now = time;
    const { decided } = this;
    const deep = this.blocks - this.depth;
    while (decided.due < time && decided.lowest <= deep) this.forget(decided.first as Trade<V, K>);
  }

  private forget(trade: Trade<V, K>): void {
    // A trade of the queue can have the key of another one.
    if (trade.list !== this.queued) {
      this.byKey.delete(trade.key);
      this.slots.remove(trade);
    }
    trade.list?.remove(trade);
    this.bytes -= trade.bytes;
    this.count -= 1;
  }

  /** Folds the first trade of the queue. */
  private see(trade: Trade<V, K>): void {
    const { key, value, slot, bytes, since } = trade;
    const known = this.byKey.get(key);
    if (known === undefined) {
      this.byKey.set(key, trade);
      this.slots.add(trade);
      return this.review(trade, since);
    }
    this.queued.remove(trade);
    this.count -= 1;
    if (known.seenAt === undefined) {
      known.value = value;
      known.bytes = bytes;
      known.seenAt = since;
      this.setSlot(known, slot);
      this.review(known, since);
    } else {
      this.bytes -= bytes;
      if (known.list === this.decided) this.keep(known);
    }
  }

  /** Folds the first step of the queue. */
  private foldStep(): void {
    const { step } = this.steps.shift() as { readonly step: LedgerStep<K> };
    const { confirmed, removed = [], doubted = [], blocks = 1, depth = 0, gap, late } = step;
    const at = this.sinceOrigin(step.at);
    this.count -= entriesOf(step);
    this.depth = depth;
    this.blocks += blocks;
    const kept = new Set(removed.length > 0 ? confirmed.map(({ key }) => key) : []);
    for (const { key } of removed)
      if (kept.has(key)) this.moveUp(key);
      else this.withdraw(key, at, false);
    if (gap !== undefined) for (const { key } of doubted) this.withdraw(key, at, gap);
    for (const entry of confirmed) this.confirm(entry, at, late ? 'late' : true);
    // A step that fills a hole comes before the ledger knows whether there is another one.
    const lowest = late ? -Infinity : this.blocks - this.settings.withinBlocks;
    while (this.waiting.lowest <= lowest) this.decide(this.waiting.first as Trade<V, K>, at);
  }

  /** The ledger has a trade, or says anew whether it failed. If it has a lead, that stays. */
  private confirm({ key, slot, failed }: LedgerEntry<K>, at: number, onLedger: true | 'late'): void {
    const hasFailed = failed === true;
    let trade = this.byKey.get(key);
    if (trade === undefined) {
      trade = new Trade<V, K>(key, at);
      this.byKey.set(key, trade);
      this.count += 1;
    } else if (trade.isOnLedger && trade.hasFailed === hasFailed) return;
    if (!trade.isOnLedger || trade.seenAt === undefined) {
      trade.onLedger = onLedger;
      trade.confirmedAt = at;
    }
    trade.hasFailed = hasFailed;
    if (this.settings.slot !== undefined) this.setSlot(trade, slot);
    this.review(trade, at);
  }

  /** The ledger takes a trade back, or may have done so in a hole. Also counts for those that it replaced. */
  private withdraw(key: K, at: number, onLedger: false | Gap): void {
    for (const each of this.withLosers(key)) {
      each.onLedger = onLedger;
      if (each.key === key && onLedger === false) each.removedAt = at;
      this.review(each, at);
    }
  }

  /** The block of a trade was taken back, and another one has it. */
  private moveUp(key: K): void {
    for (const each of this.withLosers(key)) {
      each.block = this.blocks;
      if (each.list !== this.lone) this.keep(each);
    }
  }

  /** Returns the trade of a key, if the ledger has it, and those that it replaced. */
  private withLosers(key: K): readonly Trade<V, K>[] {
    const trade = this.byKey.get(key);
    if (!trade?.isOnLedger) return [];
    return [trade, ...this.slots.rivalsOf(trade).filter(({ state }) => state === 'replaced')];
  }

  /** Draws the conclusion of what has changed about a trade. */
  private review(trade: Trade<V, K>, at: number): void {
    const { seenAt, state, doubt } = trade;
    const rivals = this.slots.rivalsOf(trade);
    trade.block = this.blocks;
    if (trade.isOnLedger) {
      if (seenAt !== undefined)
        this.conclude(trade, trade.hasFailed ? 'failed' : 'confirmed', Math.max(trade.confirmedAt, at));
      else {
        if (trade.hasFailed) this.takeBack(trade, at);
        this.move(trade, this.lone, at);
      }
      for (const each of rivals)
        if (!each.isOnLedger && each.seenAt !== undefined && each.state !== 'replaced') this.review(each, at);
      return;
    }
    const winner = seenAt === undefined ? undefined : rivals.find((each) => each.isOnLedger);
    if (winner !== undefined) {
      trade.onLedger = false;
      this.conclude(trade, 'replaced', Math.max(winner.confirmedAt, at), { by: winner.key });
    } else if (doubt !== undefined) {
      // If the feed hasn't shown it, it is unknown when it would be unseen.
      if (state !== 'unknown' && (trade.list !== this.lone || seenAt !== undefined))
        this.conclude(trade, 'unknown', at, inHole(doubt));
    } else if (state === undefined && seenAt === undefined) this.keep(trade);
    else {
      // A step that fills a hole comes before the trades in that hole, and may take back what had replaced one.
      const former =
        state === undefined ? rivals.find((each) => each.confirmedAt <= at && at < each.removedAt) : undefined;
      if (former !== undefined) {
        this.conclude(trade, 'replaced', at, { by: former.key });
        at = former.removedAt;
      }
      this.takeBack(trade, at);
      if (seenAt === undefined) this.keep(trade);
      else this.move(trade, this.waiting, at);
    }
  }

  /** The ledger doesn't have any more what the last outcome says. */
  private takeBack(trade: Trade<V, K>, at: number): void {
    if (trade.state !== undefined && trade.state !== 'reorged') this.emit(trade, 'reorged', at);
  }

  /** The other side hasn't shown a trade in time. */
  private decide(trade: Trade<V, K>, at: number): void {
    const { since, seenAt, doubt } = trade;
    if (doubt !== undefined) return this.conclude(trade, 'unknown', at, inHole(doubt));
    const { graceMs, rememberMs } = this.settings;
    const isShown = seenAt !== undefined;
    // A trade that was taken back has waited from then on.
    trade.proof = [since - (!isShown ? rememberMs : since === seenAt ? graceMs : 0), at];
    const because = this.lacks(isShown ? this.ledger : this.feed, trade);
    const reason = because === undefined ? isShown && this.doubtOfRivals(trade) : { because };
    if (reason) this.conclude(trade, 'unknown', at, reason);
    else this.conclude(trade, isShown ? 'expired' : 'unseen', at);
  }

  /** Returns why the ledger may have a rival of a trade; `undefined` if it has none. */
  private doubtOfRivals(trade: Trade<V, K>): Reason<K> | undefined {
    for (const rival of this.slots.rivalsOf(trade)) {
      if (rival.doubt !== undefined) return inHole(rival.doubt);
      const because = rival.state === 'unknown' ? this.lacks(this.ledger, rival) : undefined;
      if (because?.why === 'gap') return { because };
    }
    return undefined;
  }

  /** Returns why a side doesn't prove the state of a trade; `undefined` if it does. */
  private lacks(
    side: Side,
    { proof: [from, to] = [0, 0], block, seenAt, confirmedAt }: Trade<V, K>,
  ): Because | undefined {
    const isLost = (seenAt ?? confirmedAt) <= this.lostUntil || block < this.lostUntilBlock;
    const because = side.lacks(this.epoch(from), this.epoch(to));
    return because ?? (isLost ? { side: side.name, why: 'evicted' } : undefined);
  }

  private conclude(trade: Trade<V, K>, state: OutcomeState, at: number, reason?: Reason<K>): void {
    this.emit(trade, state, at, reason);
    this.keep(trade);
  }

  private keep(trade: Trade<V, K>): void {
    this.move(trade, this.decided, Math.max(this.now, this.lastAt));
  }

  private move(trade: Trade<V, K>, list: TradeList<V, K>, since: number): void {
    trade.since = since;
    list.add(trade);
  }

  private setSlot(trade: Trade<V, K>, slot: unknown): void {
    if (trade.slot !== undefined || slot === undefined) return;
    trade.slot = slot;
    this.slots.add(trade);
  }

  private emit(trade: Trade<V, K>, state: OutcomeState, at: number, reason?: Reason<K>): void {
    // A failed trade that the feed hasn't shown wasn't missed.
    if (trade.hasFailed && trade.seenAt === undefined && state !== 'reorged') return;
    if (at > this.lastAt) this.lastAt = at;
    this.push(outcomeOf(trade, state, this.lastAt, this.epoch(0), reason));
    trade.state = state;
    trade.decidedAt = this.lastAt;
  }
}

const inHole = (gap: Gap): Reason<never> => ({ because: { side: 'ledger', why: 'gap', gap } });

/** How many trades a step that waits counts as. */
const entriesOf = ({ confirmed, removed = [], doubted = [] }: LedgerStep<unknown>): number =>
  Math.max(1, confirmed.length + removed.length + doubted.length);
