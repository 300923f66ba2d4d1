import type { Gap } from '../protocol/event.js';
import type { Because, Outcome, OutcomeState } from './outcome.js';

/** A trade that the feed or the ledger has shown. It's its own place in a list, so a list takes no other objects. */
export class Trade<V, K> {
  readonly key: K;
  value: V | undefined = undefined;
  bytes = 0;
  slot: unknown = undefined;
  /** The time that orders its list. */
  since: number;
  /** When the feed showed it first; `undefined` if only the ledger has. */
  seenAt: number | undefined = undefined;
  /** Whether the ledger has it, or the hole because of which it may not have it any more. */
  onLedger: boolean | 'late' | Gap = false;
  /** Whether it wasn't executed there. */
  hasFailed = false;
  /** When the ledger had it first. */
  confirmedAt = 0;
  /** When the ledger took it back. */
  removedAt = -Infinity;
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

  get isOnLedger(): boolean {
    return this.onLedger === true || this.onLedger === 'late';
  }

  get doubt(): Gap | undefined {
    return typeof this.onLedger === 'object' ? this.onLedger : undefined;
  }
}

export type Reason<K> = { readonly because: Because } | { readonly by: K };

/** Creates the next outcome of a trade, whose times count from `origin`. */
export const outcomeOf = <V, K>(
  { key, value, state: before, seenAt: seen, confirmedAt: confirmed, decidedAt, onLedger }: Trade<V, K>,
  state: OutcomeState,
  time: number,
  origin: number,
  reason: Reason<K> | undefined,
): Outcome<V, K> => {
  const type = 'outcome';
  const at = origin + time;
  const confirmedAt = origin + confirmed;
  const leadMs = seen === undefined ? 0 : confirmed - seen;
  const hasLead = isMined(state);
  // Most outcomes: one literal is faster.
  if (seen !== undefined && hasLead && before === undefined && onLedger === true)
    return { type, state, key, at, value: value as V, seenAt: origin + seen, confirmedAt, leadMs } as Outcome<V, K>;
  const outcome = {
    type,
    state,
    key,
    at,
    ...(seen !== undefined && { value, seenAt: origin + seen }),
    ...(hasLead ? { confirmedAt, leadMs } : state === 'unseen' && { confirmedAt }),
    ...(hasLead && onLedger === 'late' && { late: true }),
    ...reason,
    ...(before && { previous: { state: before, at: origin + decidedAt, ...(isMined(before) && { leadMs }) } }),
  };
  return outcome as Outcome<V, K>;
};

const isMined = (state: OutcomeState): boolean => state === 'confirmed' || state === 'failed';

/** Trades in the order of `since`. Each step takes constant time, except for a trade that is late. */
export class TradeList<V, K> {
  /** What its trades wait for; `undefined` if they are decided. */
  readonly side: Because['side'] | undefined;
  first: Trade<V, K> | undefined = undefined;
  private last: Trade<V, K> | undefined = undefined;
  private readonly stayMs: number;

  constructor(stayMs: number, side?: Because['side']) {
    this.stayMs = stayMs;
    this.side = side;
  }

  /** When the first trade has stayed long enough. */
  get due(): number {
    return this.first === undefined ? Infinity : this.first.since + this.stayMs;
  }

  /** The block of the first trade. */
  get lowest(): number {
    return this.first === undefined ? Infinity : this.first.block;
  }

  /** Moves a trade from its list to this one. */
  add(trade: Trade<V, K>): void {
    trade.list?.remove(trade);
    let before = this.last;
    while (before !== undefined && before.since > trade.since) before = before.before;
    const after = before === undefined ? this.first : before.after;
    // A late trade doesn't wait for more blocks than the one after it.
    if (after !== undefined && after.block < trade.block) trade.block = after.block;
    trade.list = this;
    this.link(before, trade);
    this.link(trade, after);
  }

  remove(trade: Trade<V, K>): void {
    this.link(trade.before, trade.after);
    trade.list = trade.before = trade.after = undefined;
  }

  private link(before: Trade<V, K> | undefined, after: Trade<V, K> | undefined): void {
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
  }
}

/** The trades of each slot, of which a ledger can have one. */
export class Slots<V, K> {
  /** A list only where there are several, which is rare. */
  private readonly trades = new Map<unknown, Trade<V, K> | readonly Trade<V, K>[]>();

  rivalsOf(trade: Trade<V, K>): readonly Trade<V, K>[] {
    const found = trade.slot === undefined ? undefined : this.trades.get(trade.slot);
    if (found === undefined || found === trade) return none;
    return found instanceof Trade ? [found] : found.filter((other) => other !== trade);
  }

  add(trade: Trade<V, K>): void {
    if (trade.slot !== undefined) this.set(trade.slot, [trade, ...this.rivalsOf(trade)]);
  }

  remove(trade: Trade<V, K>): void {
    if (trade.slot !== undefined) this.set(trade.slot, this.rivalsOf(trade));
  }

  private set(slot: unknown, trades: readonly Trade<V, K>[]): void {
    const [first, second] = trades;
    if (first === undefined) this.trades.delete(slot);
    else this.trades.set(slot, second === undefined ? first : trades);
  }
}

const none: readonly never[] = [];
