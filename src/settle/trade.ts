import type { Gap } from '../protocol/event.js';
import type { Because, OutcomeState } from './outcome.js';

/** A trade that the feed or the ledger has shown. It's its own place in a list, so a list takes no other objects. */
export class Trade<V, K> {
  readonly key: K;
  slot: unknown = undefined;
  value: V | undefined = undefined;
  bytes = 0;
  /** The time that orders its list. */
  since: number;
  /** When the feed showed it first; `undefined` if only the ledger has. */
  seenAt: number | undefined = undefined;
  /** Whether the ledger has it. */
  isConfirmed = false;
  /** When the ledger had it first. */
  confirmedAt = 0;
  isLate = false;
  /** The hole because of which the ledger may not have it any more. */
  doubt: Gap | undefined = undefined;
  /** The length of the ledger when it was shown or confirmed. */
  block = 0;
  state: OutcomeState | undefined = undefined;
  /** The `at` of its last outcome. */
  decidedAt = 0;
  /** The time that must be without holes for it to be `expired` or `unseen`. */
  proof: readonly [from: number, to: number] | undefined = undefined;
  list: TradeList<V, K> | undefined = undefined;
  before: Trade<V, K> | undefined = undefined;
  after: Trade<V, K> | undefined = undefined;

  constructor(key: K, since: number) {
    this.key = key;
    this.since = since;
  }
}

/** Trades in the order of `since`. Each step takes constant time, except for a trade that is late. */
export class TradeList<V, K> {
  /** What its trades wait for; `undefined` if they are decided. */
  readonly side: Because['side'] | undefined;
  first: Trade<V, K> | undefined = undefined;
  #last: Trade<V, K> | undefined = undefined;
  readonly #stayMs: number;

  /** @param stayMs - how long a trade stays */
  constructor(stayMs: number, side?: Because['side']) {
    this.#stayMs = stayMs;
    this.side = side;
  }

  /** When the first trade has stayed long enough. */
  get due(): number {
    return this.first === undefined ? Infinity : this.first.since + this.#stayMs;
  }

  /** The block of the first trade. */
  get lowest(): number {
    return this.first === undefined ? Infinity : this.first.block;
  }

  /** Moves a trade from its list to this one. */
  add(trade: Trade<V, K>): void {
    trade.list?.remove(trade);
    let before = this.#last;
    while (before !== undefined && before.since > trade.since) before = before.before;
    const after = before === undefined ? this.first : before.after;
    // A late trade does not wait for more blocks than the one after it.
    if (after !== undefined && after.block < trade.block) trade.block = after.block;
    trade.list = this;
    trade.before = before;
    trade.after = after;
    if (before === undefined) this.first = trade;
    else before.after = trade;
    if (after === undefined) this.#last = trade;
    else after.before = trade;
  }

  remove(trade: Trade<V, K>): void {
    const { before, after } = trade;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    trade.list = trade.before = trade.after = undefined;
  }
}

/** The trades of each slot, of which a ledger can have one. */
export class Slots<V, K> {
  /** A list only where there are several, which is rare. */
  readonly #trades = new Map<unknown, Trade<V, K> | readonly Trade<V, K>[]>();

  rivalsOf(trade: Trade<V, K>): readonly Trade<V, K>[] {
    const found = trade.slot === undefined ? undefined : this.#trades.get(trade.slot);
    if (found === undefined || found === trade) return none;
    return found instanceof Trade ? [found] : found.filter((other) => other !== trade);
  }

  add(trade: Trade<V, K>): void {
    if (trade.slot === undefined) return;
    const rivals = this.rivalsOf(trade);
    this.#trades.set(trade.slot, rivals.length === 0 ? trade : [trade, ...rivals]);
  }

  remove(trade: Trade<V, K>): void {
    if (trade.slot === undefined) return;
    const [first, ...others] = this.rivalsOf(trade);
    if (first === undefined) this.#trades.delete(trade.slot);
    else this.#trades.set(trade.slot, others.length === 0 ? first : [first, ...others]);
  }
}

const none: readonly never[] = [];
