import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { FeedEvent, Gap, LifecycleEvent, Watermark } from '../../src/protocol/event.js';
import type { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { relayGap } from '../../src/protocol/feed-state.js';
import { Frame } from '../../src/protocol/frame.js';
import type { LedgerStep } from '../../src/settle/index.js';
import { createChance } from '../simulation/chance.js';

// A feed of trades as a script, and what everybody must make of it: counted here, without the library.

export type Plan = 'free' | 'developer';
export const plans: readonly Plan[] = ['free', 'developer'];

export const begin = 1_700_000_000_000;
const delayMs = { free: 500, developer: 0 } as const;
/** The market is busy for 8 of 20 s. */
const [periodMs, busyMs, everyMs, endMs] = [20_000, 8_000, 23, 240_000];

/** A trade that the service has seen. */
export interface Trade {
  readonly n: number;
  readonly symbol: string;
  readonly price: number;
  /** Some trades come twice. */
  readonly id: string;
  /** When a connection that is always open receives it, in ms from the beginning. */
  readonly due: number;
}

/** A connection: all times in ms from the beginning. */
export interface Connection {
  readonly number: number;
  readonly issuedAt: number;
  readonly openedAt: number;
  readonly endedAt: number;
  /** How it ends. The client knows at once: windows of the time before it notices a stall differ, in a log and live. */
  readonly end: 'close' | 'reset' | 'stop' | 'none';
}

const connection = (number: number, openedAt: number, endedAt: number, end: Connection['end']): Connection => ({
  number,
  issuedAt: openedAt - 40,
  openedAt,
  endedAt,
  end,
});

/** What happens to a feed: all times in ms from the beginning. */
export interface Script {
  readonly connections: readonly Connection[];
  /** A relay or a worker has dropped the frames of this time, and says how many before the window of that time is over. */
  readonly dropped: { readonly from: number; readonly to: number };
  /** From when the clock is behind. */
  readonly setBackAt: number;
}

export const script: Script = {
  connections: [
    connection(1, 80, 41_300, 'close'),
    connection(2, 41_500, 83_250, 'reset'),
    // The market is quiet when it opens.
    connection(3, 90_700, 120_900, 'reset'),
    // On the Free plan it ends before it's complete.
    connection(4, 121_100, 121_400, 'close'),
    connection(5, 122_000, 163_500, 'stop'),
    // Whoever subscribes again after a stop begins to count again.
    connection(1, 166_080, endMs, 'none'),
  ],
  dropped: { from: 183_105, to: 183_195 },
  setBackAt: 202_000,
};
const setBackMs = 3_000;

/** Returns a script by chance. */
export const scriptOf = (seed: number): Script => {
  const { whole, oneOf, isTrue } = createChance(seed);
  const connections: Connection[] = [];
  for (let [at, number] = [80, 1]; at < 150_000;) {
    const endedAt = at + (isTrue(0.4) ? whole(1, 1_200) : whole(1_000, 40_000));
    const end = oneOf(['close', 'reset', 'stop'] as const);
    connections.push(connection(number, at, endedAt, end));
    number = end === 'stop' ? 1 : number + 1;
    at = endedAt + (isTrue(0.5) ? whole(90, 900) : whole(900, 9_000));
    if (at >= 150_000) connections.push(connection(number, at, endMs, 'none'));
  }
  return { ...script, connections, setBackAt: 200_000 + whole(100, 7_900) };
};

const tradesOf = (plan: Plan): readonly Trade[] => {
  const trades: Trade[] = [];
  for (let period = 0; period * periodMs < endMs; period += 1)
    for (let at = 11, k = 0; at < busyMs; at += everyMs, k += 1) {
      const n = trades.length;
      const [symbol, price] = [`S${(n * 7) % 5}`, 100 + ((n * n) % 97)];
      const id = `0x${(k % 10 === 9 ? n - 4 : n).toString(16)}`;
      trades.push({ n, symbol, price, id, due: period * periodMs + at + delayMs[plan] });
    }
  return trades;
};

/** A payload that isn't a trade comes now and then. */
export const payloadOf = ({ n, symbol, price, id }: Trade): string =>
  n % 50 === 3 ? `not a trade: ${n}` : JSON.stringify({ n, symbol, price, id, note: 'é"\n' });

const isBinary = ({ n }: Trade): boolean => n % 40 === 1;
export const isTrade = (trade: Trade): boolean => !isBinary(trade) && payloadOf(trade).startsWith('{');

/** The clock of the ledger is right. */
const ledgerOf = (trades: readonly Trade[]): readonly (LedgerStep<string> | Watermark)[] => {
  const [ids, steps] = [new Set<string>(), []] as [Set<string>, (LedgerStep<string> | Watermark)[]];
  for (let at = 1_000; at <= endMs; at += 1_000) {
    const due = trades.filter((trade) => isTrade(trade) && trade.due >= at - 3_000 && trade.due < at - 2_000);
    const confirmed = due.filter(({ id }) => !ids.has(id)).map(({ id: key }) => ({ key }));
    for (const { key } of confirmed) ids.add(key);
    steps.push({ type: 'ledger', at: begin + at, confirmed }, { type: 'watermark', at: begin + at });
  }
  return steps;
};

/** From when a connection is complete; `undefined` if it ends before. */
const completeFrom = ({ issuedAt, openedAt, endedAt }: Connection, first: number): number | undefined => {
  const from = first < Math.min(issuedAt + 495, openedAt + 500) ? openedAt : Math.min(first, openedAt + 500);
  return first < endedAt || openedAt + 500 < endedAt ? from : undefined;
};

interface Timed {
  readonly at: number;
  readonly event: FeedEvent;
  /** An operator or a log finds it, although no source emits it. */
  readonly isFound?: boolean;
}

const closeCodes = { close: 1001, reset: 1006, stop: 4001, none: 1000 } as const;

/** Returns the script of a feed, and what it comes to. */
export const tradeWorld = (plan: Plan, { connections, dropped, setBackAt }: Script = script) => {
  const trades = tradesOf(plan);
  /** What the clock tells at a time. */
  const told = (at: number): number => begin + at - (at >= setBackAt ? setBackMs : 0);
  /** The service sees a trade and sends it later, over the same connection, or never. */
  const connectionOf = ({ due }: Trade): Connection | undefined =>
    connections.find(({ openedAt, endedAt }) => openedAt <= due - delayMs[plan] && due < endedAt);
  const isDropped = ({ due }: Trade): boolean => due >= dropped.from && due < dropped.to;
  const sent = trades.filter((trade) => connectionOf(trade) !== undefined);
  const missing = trades.filter((trade) => connectionOf(trade) === undefined || isDropped(trade));
  const received = sent.filter((trade) => !isDropped(trade));
  const timeline: Timed[] = [];
  const add = (at: number, event: LifecycleEvent | Frame, isFound = false) => timeline.push({ at, event, isFound });
  const outages: Gap[] = [];
  let outage: { readonly from: number; readonly failure: TradeFeedError; readonly hasStopped: boolean } | undefined;
  let coveredFrom = 0;

  for (const each of connections) {
    const { number, issuedAt, openedAt, endedAt, end } = each;
    const requestedAt = issuedAt - 40;
    const expiresAt = new Date(begin + issuedAt + 60_000).toISOString();
    add(requestedAt, { type: 'ticket-requested', at: told(requestedAt), feed: 'market' });
    add(issuedAt, { type: 'ticket-issued', at: told(issuedAt), feed: 'market', expiresAt });
    add(openedAt, { type: 'opened', at: told(openedAt), feed: 'market', connection: number });
    const own = received.filter((trade) => connectionOf(trade) === each);
    const first = own[0]?.due ?? Infinity;
    const complete = completeFrom(each, first);
    if (complete !== undefined && outage !== undefined) {
      const { from, failure, hasStopped } = outage;
      const gap: Gap = { type: 'gap', from, to: told(complete), durationMs: told(complete) - from, failure };
      outages.push(gap);
      add(Math.min(first, openedAt + 500), gap, hasStopped);
      outage = undefined;
    }
    coveredFrom ||= told(complete ?? 0);
    for (const trade of own) {
      const payload = Buffer.from(payloadOf(trade));
      add(trade.due, new Frame('market', payload, isBinary(trade), told(trade.due), number));
    }
    if (end === 'none') continue;
    const at = told(endedAt);
    const failure = createTradeFeedError({ stage: 'stream', closeCode: closeCodes[end], endedAt: at });
    outage ??= { from: at, failure, hasStopped: end === 'stop' };
    if (end === 'stop') add(endedAt, { type: 'stopped', at, failure });
    else {
      add(endedAt, { type: 'disconnected', at, failure });
      add(endedAt, { type: 'reconnecting', at, delayMs: 120, attempt: 1, verdict: failure.verdict });
    }
  }
  const lost = sent.filter(isDropped).map(({ due }) => told(due));
  const [from, to] = [Math.min(...lost), Math.max(...lost)];
  const numbered = relayGap({ from, to, frames: lost.length });
  add(dropped.to, numbered);

  timeline.sort((one, other) => one.at - other.at);
  return {
    plan,
    trades,
    /** What the feed emits. */
    events: timeline.filter(({ isFound }) => !isFound).map(({ event }) => event),
    /** When, in ms from the beginning. */
    times: timeline.filter(({ isFound }) => !isFound).map(({ at }) => at),
    /** What a log has of it. */
    recorded: timeline.map(({ event }) => event),
    received,
    missing,
    gaps: timeline.flatMap(({ event }) => (event.type === 'gap' ? [event] : [])),
    dropped: lost.length,
    /** When the first connection was complete. */
    coveredFrom,
    timeOf: ({ due }: Trade): number => told(due),
    clock: (at: number): number => told(at),
    /** What the ledger executes, each trade two seconds after it's due. */
    ledger: ledgerOf(trades),
  };
};

export type TradeWorld = ReturnType<typeof tradeWorld>;

/** Counts the windows of a length that begin at whole multiples of it. */
export const windowsOf = (world: TradeWorld, lengthMs: number) => {
  const { events, received, gaps, coveredFrom } = world;
  const indexOf = (time: number): number => Math.floor(time / lengthMs);
  const times = events.map((event) =>
    event.type === 'frame' ? event.receivedAt : 'at' in event ? event.at : event.to,
  );
  const latest = Math.max(...times);
  const windows = new Map<number, { count: number; sums: Record<string, number>; isComplete: boolean }>();
  for (let n = indexOf(times[0]!); n <= indexOf(latest); n += 1) {
    const [start, end] = [n * lengthMs, (n + 1) * lengthMs];
    // A number is of the frames up to and with the last ms.
    const overlaps = ({ from, to, missed }: Gap): boolean =>
      from < end && ((missed === undefined ? to : to + 1) > start || from >= start);
    const isComplete = start >= coveredFrom && end <= latest && !gaps.some(overlaps);
    windows.set(n, { count: 0, sums: {}, isComplete });
  }
  let newest = -Infinity;
  for (const trade of received) {
    const time = world.timeOf(trade);
    // Time never goes back: what is late counts for the window that is open.
    newest = Math.max(newest, time);
    const window = windows.get(indexOf(newest))!;
    window.count += 1;
    if (isTrade(trade)) window.sums[trade.symbol] = (window.sums[trade.symbol] ?? 0) + trade.price;
    if (indexOf(time) < indexOf(newest)) window.isComplete = false;
  }
  return [...windows].map(([n, window]) => ({ start: n * lengthMs, ...window }));
};
