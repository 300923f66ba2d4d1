import type { Gap } from '../protocol/event.js';
import type { OutcomeState, PreviousOutcome } from './outcome.js';

/**
 * A trade that the feed or the ledger has shown. It is its own place in a list: a queued trade needs no other object.
 */
export class Trade<V, K> {
  readonly key: K;
  slot: unknown = undefined;
  value: V | undefined = undefined;
  bytes = 0;
  /** The time that orders its list, in epoch ms. */
  since: number;
  /** When the feed showed it first; `undefined` if only the ledger has. */
  seenAt: number | undefined = undefined;
  /** When the ledger had it first; `undefined` while it does not have it. */
  confirmedAt: number | undefined = undefined;
  /** The length of the ledger when it was shown or confirmed. */
  block = 0;
  isLate = false;
  state: OutcomeState | undefined = undefined;
  /** The time in which the ledger did not have it, when it expired. Ends before `decidedAt` if a late step came first. */
  waitedFrom = 0;
  waitedUntil = 0;
  /** The `at` of its last outcome. */
  decidedAt = 0;
  doubt: Gap | undefined = undefined;
  list: TradeList<V, K> | undefined = undefined;
  before: Trade<V, K> | undefined = undefined;
  after: Trade<V, K> | undefined = undefined;
  /** The next trade of the same slot. */
  rival: Trade<V, K> | undefined = undefined;

  constructor(key: K, since: number) {
    this.key = key;
    this.since = since;
  }
}

/** Trades in the order of `since`. Each step takes constant time, except for a trade that is late. */
export class TradeList<V, K> {
  first: Trade<V, K> | undefined = undefined;
  size = 0;
  #last: Trade<V, K> | undefined = undefined;

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
    this.size += 1;
  }

  remove(trade: Trade<V, K>): void {
    const { before, after } = trade;
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    trade.list = trade.before = trade.after = undefined;
    this.size -= 1;
  }
}

/** The trades by key and by slot. Each is in one list. */
export class Trades<V, K> {
  /** Not folded yet. They count, too. */
  readonly queued = new TradeList<V, K>();
  /** Waits for the ledger. */
  readonly waiting = new TradeList<V, K>();
  /** Only the ledger has it: it waits for the feed. */
  readonly lone = new TradeList<V, K>();
  /** Decided, and its block can be taken back. */
  readonly shallow = new TradeList<V, K>();
  /** Decided, and remembered for a while. */
  readonly decided = new TradeList<V, K>();
  bytes = 0;
  readonly #byKey = new Map<K, Trade<V, K>>();
  /** The first trade of each slot, of which a ledger can have one. */
  readonly #firsts = new Map<unknown, Trade<V, K>>();

  get size(): number {
    return this.#byKey.size + this.queued.size;
  }

  /** The trade that is missed least. */
  get leastNeeded(): Trade<V, K> | undefined {
    return this.decided.first ?? this.shallow.first ?? this.lone.first ?? this.waiting.first ?? this.queued.first;
  }

  get(key: K): Trade<V, K> | undefined {
    return this.#byKey.get(key);
  }

  add(trade: Trade<V, K>): void {
    this.#byKey.set(trade.key, trade);
    if (trade.slot !== undefined) this.#takeSlot(trade);
  }

  /** Sets the slot of a trade that had none. */
  setSlot(trade: Trade<V, K>, slot: unknown): void {
    if (trade.slot !== undefined || slot === undefined) return;
    trade.slot = slot;
    this.#takeSlot(trade);
  }

  forget(trade: Trade<V, K>): void {
    // A trade of the queue can have the key of another one.
    if (trade.list !== this.queued) this.#byKey.delete(trade.key);
    trade.list?.remove(trade);
    this.bytes -= trade.bytes;
    if (trade.slot !== undefined) this.#leaveSlot(trade);
  }

  rivalsOf(trade: Trade<V, K>): readonly Trade<V, K>[] {
    if (trade.slot === undefined) return none;
    const first = this.#firsts.get(trade.slot);
    if (first === trade && trade.rival === undefined) return none;
    const rivals: Trade<V, K>[] = [];
    for (let other = first; other !== undefined; other = other.rival) if (other !== trade) rivals.push(other);
    return rivals;
  }

  #takeSlot(trade: Trade<V, K>): void {
    trade.rival = this.#firsts.get(trade.slot);
    this.#firsts.set(trade.slot, trade);
  }

  #leaveSlot(trade: Trade<V, K>): void {
    let other = this.#firsts.get(trade.slot);
    if (other !== trade) {
      while (other !== undefined && other.rival !== trade) other = other.rival;
      if (other !== undefined) other.rival = trade.rival;
    } else if (trade.rival === undefined) this.#firsts.delete(trade.slot);
    else this.#firsts.set(trade.slot, trade.rival);
  }
}

const none: readonly never[] = [];

export const factsOf = <V, K>(trade: Trade<V, K>, state: OutcomeState, time: number, origin: number): object => {
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

export const previousOf = <V, K>(
  { decidedAt, confirmedAt, seenAt }: Trade<V, K>,
  state: OutcomeState,
  origin: number,
): PreviousOutcome =>
  state === 'confirmed' && confirmedAt !== undefined && seenAt !== undefined
    ? { state, at: origin + decidedAt, leadMs: confirmedAt - seenAt }
    : { state, at: origin + decidedAt };
