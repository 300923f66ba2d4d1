import type { Opened, TradeFeedError } from 'rx-trade-feed';

/** What a page begins with. Times are epoch ms of the clock of this server. */
export interface HistoryAnswer {
  /** Everything before this time is counted here, and nothing from it on: the page counts the rest from its stream. */
  readonly until: number;
  /** When the totals began to count. */
  readonly since: number;
  /** When the feed was open for the first time; `undefined`: not yet. */
  readonly openedAt: number | undefined;
  readonly totals: HistoryTotals;
  /** The outage that is not over. It is not in the totals: the page counts it when it is over. */
  readonly down: Down | undefined;
  /** The seconds of the last minutes in which frames came, oldest first. */
  readonly seconds: readonly SecondRow[];
  /** The events of the last minutes, oldest first. */
  readonly events: readonly HistoryEvent[];
}

/** The sums since `since`. */
export interface HistoryTotals {
  readonly frames: number;
  readonly bytes: number;
  /** Outages that are over. */
  readonly gaps: number;
  /** How long these lasted, in ms. */
  readonly lostMs: number;
  /** Reconnects, by the code of the failure before each. */
  readonly reconnects: Readonly<Record<string, number>>;
}

/** A second: when it began in epoch seconds, frames, bytes, and p95 of the ms that frames spent in this server. */
export type SecondRow = readonly [second: number, frames: number, bytes: number, delayMs: number];

/** A failure without anything that only the server should know. */
export type PublicFailure = ReturnType<TradeFeedError['toJSON']>;

/** An outage that is not over. */
export interface Down {
  /** The end of the last connection. */
  readonly from: number;
  /** What began it. */
  readonly failure: PublicFailure;
}

/** Something that happened, besides the frames. */
export type HistoryEvent =
  | Opened
  | { readonly type: 'disconnected' | 'stopped'; readonly at: number; readonly failure: PublicFailure }
  | ({ readonly type: 'gap'; readonly to: number; readonly durationMs: number } & Down)
  /** A person asked to connect again after a stop. */
  | { readonly type: 'asked'; readonly at: number };
