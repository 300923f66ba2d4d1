import { defer, from, map, type Observable, switchMap, timeout } from 'rxjs';
import type { Failure } from './failure';
import type { LogEvent } from './feed-log';

/** A second: when it began in epoch seconds, frames, bytes, and p95 of the ms that frames spent in the server. */
export type SecondRow = readonly [second: number, frames: number, bytes: number, delayMs: number];

/** What the server knows: see `HistoryAnswer` there. Times in epoch ms. */
export interface ServerHistory {
  /** Everything before this time is counted here, and nothing from it on. */
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
  readonly events: readonly LogEvent[];
}

/** Fetches what the server knows. Errors when it does not answer, or not with a history. */
export const serverHistory$: Observable<ServerHistory> = defer(() => fetch('/history')).pipe(
  switchMap((response) => {
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return from(response.json() as Promise<ServerHistory>);
  }),
  timeout(5_000),
  map((history) => moved(history, Date.now() - history.until)),
);

/** The stream has its times put right as well when the clocks differ by more than this, in ms. */
const toleranceMs = 1_000;

/** Puts the times right, where the clock of the server is not that of this machine. */
const moved = (history: ServerHistory, byMs: number): ServerHistory => {
  if (Math.abs(byMs) <= toleranceMs) return history;
  const text = JSON.stringify(history, (key, value: unknown) =>
    typeof value === 'number' && times.has(key) ? value + byMs : value,
  );
  const seconds = history.seconds.map(([second, ...figures]): SecondRow => [
    second + Math.round(byMs / 1_000),
    ...figures,
  ]);
  return { ...(JSON.parse(text) as ServerHistory), seconds };
};

const times = new Set(['at', 'from', 'to', 'until', 'since', 'openedAt', 'endedAt']);
