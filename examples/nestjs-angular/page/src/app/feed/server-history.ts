import { defer, from, map, type Observable, switchMap, timeout } from 'rxjs';
import type { Failure } from './failure';
import type { LogEvent } from './feed-log';

/** A second: its start in epoch seconds, the frames, the bytes, and the p95 of the ms that frames spent in the server. */
export type SecondRow = readonly [second: number, frames: number, bytes: number, delayMs: number];

/** The history of the server: see `HistoryAnswer` in the server. Times are in epoch ms. */
export interface ServerHistory {
  /** The history counts everything before this time, and nothing after it. */
  readonly until: number;
  readonly since: number;
  readonly openedAt?: number;
  readonly totals: {
    readonly frames: number;
    readonly bytes: number;
    readonly gaps: number;
    readonly lostMs: number;
    readonly reconnects: Readonly<Record<string, number>>;
  };
  readonly down?: { readonly from: number; readonly failure: Failure };
  readonly seconds: readonly SecondRow[];
  /** The start of the time that the events cover. */
  readonly eventsSince: number;
  readonly events: readonly LogEvent[];
}

/** Loads the history of the server. Errors when the request fails, or after 5 s. */
export const serverHistory$: Observable<ServerHistory> = defer(() => {
  const requestedAt = Date.now();
  return from(fetch('/history')).pipe(
    switchMap((response) => {
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return from(response.json() as Promise<ServerHistory>);
    }),
    timeout(5_000),
    map((history) => onThisClock(history, requestedAt, Date.now())),
  );
});

/** A larger difference of the clocks is corrected, in ms. The library does the same for the stream. */
const toleranceMs = 1_000;

/** Shifts all times if the clock of the server differs from the clock of this machine. An answer that is only late was still made after its request. */
const onThisClock = (history: ServerHistory, requestedAt: number, answeredAt: number): ServerHistory => {
  const { until } = history;
  if (until >= requestedAt - toleranceMs && until <= answeredAt + toleranceMs) return history;
  const byMs = answeredAt - until;
  const text = JSON.stringify(history, (key, value: unknown) =>
    typeof value === 'number' && times.has(key) ? value + byMs : value,
  );
  const seconds = history.seconds.map(([second, ...figures]): SecondRow => [
    second + Math.round(byMs / 1_000),
    ...figures,
  ]);
  return { ...(JSON.parse(text) as ServerHistory), seconds };
};

const times = new Set(['at', 'from', 'to', 'until', 'since', 'eventsSince', 'openedAt', 'endedAt']);
