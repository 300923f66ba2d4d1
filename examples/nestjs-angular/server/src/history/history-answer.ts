import type { Opened, TradeFeedError } from 'rx-trade-feed';

/** The answer of `/history`. Times are in epoch ms, by the clock of this server. */
export interface HistoryAnswer {
  /** The answer counts everything before this time. The page counts the rest in its stream. */
  readonly until: number;
  /** The start of the totals. */
  readonly since: number;
  /** The first opening of the feed; `undefined` before that. */
  readonly openedAt: number | undefined;
  readonly totals: HistoryTotals;
  /** The current outage. The totals don't contain it: the page counts it when it is over. */
  readonly down: Down | undefined;
  /** The seconds of the last minutes with frames, oldest first. */
  readonly seconds: readonly SecondRow[];
  /** The start of the time that the events cover. */
  readonly eventsSince: number;
  /** The events of the last minutes, oldest first. */
  readonly events: readonly HistoryEvent[];
}

/** The totals since `since`. */
export interface HistoryTotals {
  readonly frames: number;
  readonly bytes: number;
  /** The number of outages that are over. */
  readonly gaps: number;
  /** How long these lasted, in ms. */
  readonly lostMs: number;
  /** The reconnects, by the code of the failure before each. */
  readonly reconnects: Readonly<Record<string, number>>;
}

/** A second: its start in epoch seconds, the frames, the bytes, and the p95 of the ms that frames spent in this server. */
export type SecondRow = readonly [second: number, frames: number, bytes: number, delayMs: number];

/** A failure as plain data, with fixed texts. `toPublic()` removes the details that only the server may know. */
export type PublicFailure = ReturnType<TradeFeedError['toJSON']>;

/** The current outage. */
export interface Down {
  /** The end of the last connection. */
  readonly from: number;
  /** The failure that began it. */
  readonly failure: PublicFailure;
}

/** An event of the feed that isn't a frame. */
export type HistoryEvent =
  | Opened
  | { readonly type: 'disconnected' | 'stopped'; readonly at: number; readonly failure: PublicFailure }
  | ({ readonly type: 'gap'; readonly to: number; readonly durationMs: number } & Down)
  /** A person requested a restart after a stop. */
  | { readonly type: 'restart-requested'; readonly at: number };
