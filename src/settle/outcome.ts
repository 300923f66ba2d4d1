import type { Gap } from '../protocol/event.js';

/** What became of a trade. */
export type OutcomeState = Outcome<unknown, unknown>['state'];

/** The fields of every outcome. */
interface OutcomeFacts<S extends string, K> {
  readonly type: 'outcome';
  readonly state: S;
  readonly key: K;
  /** When, in epoch ms of the stream. Never decreases. */
  readonly at: number;
  /** The outcome of the same key that this one corrects. If you add up outcomes, subtract it. */
  readonly previous?: PreviousOutcome;
}

/** The trade as the feed showed it. */
interface Shown<V> {
  /** What `keep` returned. */
  readonly value: V;
  /** When the feed showed it first, in epoch ms. */
  readonly seenAt: number;
}

/** The trade as the feed and the ledger have it. */
interface Mined<V> extends Shown<V> {
  /** When the ledger had it first, in epoch ms. */
  readonly confirmedAt: number;
  /** From the first sight to `confirmedAt`, in ms. Negative if the feed showed it later. */
  readonly leadMs: number;
  /** The block was fetched after a hole, so `confirmedAt` is when you learned of it. */
  readonly late?: true;
}

/** The ledger has the trade, and executed it. */
export interface Confirmed<V, K> extends OutcomeFacts<'confirmed', K>, Mined<V> {}

/**
 * The ledger has the trade, but didn't execute it: on Ethereum, it was mined and reverted. Its slot is used up. A failed
 * trade that the feed never shows has no outcome, because nothing was missed.
 */
export interface Failed<V, K> extends OutcomeFacts<'failed', K>, Mined<V> {}

/** The ledger has another trade of the same slot, executed or failed. */
export interface Replaced<V, K> extends OutcomeFacts<'replaced', K>, Shown<V> {
  /** The key of the other trade. */
  readonly by: K;
}

/** The ledger was observed for all of `withinMs`, and didn't have the trade. */
export interface Expired<V, K> extends OutcomeFacts<'expired', K>, Shown<V> {}

/** The ledger took back the block of this trade, or of the one that replaced it. The trade waits again. */
export interface Reorged<V, K> extends OutcomeFacts<'reorged', K>, Partial<Shown<V>> {}

/** The ledger executed a trade that the feed hasn't shown, although it was open all the time. */
export interface Unseen<K> extends OutcomeFacts<'unseen', K> {
  /** When the ledger had it first, in epoch ms. */
  readonly confirmedAt: number;
}

/** Can't be decided: the feed or the ledger wasn't observed for all of the time that counts. */
export interface Unknown<V, K> extends OutcomeFacts<'unknown', K>, Partial<Shown<V>> {
  readonly because: Because;
}

/** Why an outcome is unknown. */
export interface Because {
  /** The side that wasn't observed. */
  readonly side: 'feed' | 'ledger';
  /**
   * `'gap'`: an outage, or blocks that are missing. `'start'`: the time before it began. `'end'`: the time after it
   * ended. `'evicted'`: the bounds were reached, see `maxTrades` and `maxBytes`.
   */
  readonly why: 'gap' | 'start' | 'end' | 'evicted';
  /** The gap, if `why` is `'gap'`. */
  readonly gap?: Gap;
}

/** The outcome before a correction. */
export interface PreviousOutcome {
  readonly state: OutcomeState;
  /** Its `at`: the window that contains this time has counted it. */
  readonly at: number;
  /** Its lead in ms, if it was `confirmed` or `failed`. */
  readonly leadMs?: number;
}

/** What became of a trade; `state` distinguishes the outcomes. See {@link settle}. */
export type Outcome<V, K> =
  Confirmed<V, K> | Failed<V, K> | Replaced<V, K> | Expired<V, K> | Reorged<V, K> | Unseen<K> | Unknown<V, K>;

/** A trade in a ledger. */
export interface LedgerEntry<K> {
  readonly key: K;
  /** What only one trade can take, such as the sender with the nonce. */
  readonly slot?: unknown;
  /** It wasn't executed. On Ethereum: its receipt has the status 0. */
  readonly failed?: true | undefined;
}

/** One step of a ledger: what it has added and taken back. {@link ledger} makes them from blocks. */
export interface LedgerStep<K> {
  readonly type: 'ledger';
  /** When you learned it, in epoch ms, by the clock of `receivedAt`: `leadMs` compares the two. */
  readonly at: number;
  /** What it has now, failed trades included. If you learn later that a trade failed, emit its entry again. */
  readonly confirmed: readonly LedgerEntry<K>[];
  /** What it took back: its blocks were removed. An entry that is in `confirmed`, too, only moves. */
  readonly removed?: readonly LedgerEntry<K>[];
  /** It had them before, but blocks are missing, so it may not be any more. */
  readonly doubted?: readonly LedgerEntry<K>[];
  /** The time of the missing blocks, with `doubted`. */
  readonly gap?: Gap;
  /** How many blocks can be taken back. Outcomes are remembered until theirs is that deep. @defaultValue 0 */
  readonly depth?: number;
  /** How many blocks longer the ledger is than before. @defaultValue 1 */
  readonly blocks?: number;
  /** The step fills a hole: its blocks are older than `at`. */
  readonly late?: true;
}
