import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { holdArrivals } from './fault-arrivals.js';

/** The faults of one direction of a connection. */
export interface Flow {
  /** Delays each chunk by this time, plus up to `jitterMs`. The order is kept. */
  readonly delayMs?: number;
  readonly jitterMs?: number;
  readonly bytesPerSecond?: number;
  /** `split`: random small pieces; `coalesced`: chunks are joined; `drip`: one byte at a time. */
  readonly segments?: 'as-is' | 'split' | 'coalesced' | 'drip';
  readonly cut?: Cut;
}

/** Ends a connection after a number of bytes: with RST, with FIN, or by discarding everything in both directions. */
export interface Cut {
  readonly afterBytes: number;
  readonly how: 'reset' | 'end' | 'half-open';
}

/** Why a direction ended. */
export type FlowEnd = 'source-ended' | Cut['how'];

/** Forwards from one socket to another until the source ends or is cut. Rejects when the signal aborts. */
export const forward = async (
  from: Socket,
  to: Socket,
  flow: Flow,
  random: () => number,
  signal: AbortSignal,
): Promise<FlowEnd> => {
  const { delayMs = 0, jitterMs = 0, segments = 'as-is', cut } = flow;
  using arrivals = holdArrivals(from, () => delayMs + jitterMs * random(), signal);
  const pace = pacer(flow.bytesPerSecond, signal);
  let left = cut?.afterBytes ?? Infinity;

  for (;;) {
    if (left <= 0) return (cut as Cut).how;
    const first = await arrivals.next();
    if (first === undefined) return 'source-ended';
    await until(first.dueMs, signal);
    if (segments === 'coalesced') await delay(coalesceMs, undefined, { signal });
    const bytes = segments === 'coalesced' ? Buffer.concat([first.bytes, ...arrivals.all()]) : first.bytes;
    for (const piece of pieces(bytes.subarray(0, Math.min(left, bytes.length)), flow, random)) {
      await pace(piece.length);
      await write(to, piece, signal);
      left -= piece.length;
      // Otherwise the kernel joins the pieces again.
      if (segments === 'split' || segments === 'drip') await nextTurn(undefined, { signal });
    }
  }
};

const coalesceMs = 20;

/** Pieces per second under a bandwidth limit. */
const ticks = 50;

function* pieces(bytes: Buffer, { segments, bytesPerSecond = Infinity }: Flow, random: () => number) {
  const most = Math.max(1, Math.ceil(bytesPerSecond / ticks));
  for (let at = 0; at < bytes.length;) {
    const size = segments === 'drip' ? 1 : segments === 'split' ? Math.ceil(4_096 ** random()) : Infinity;
    const end = Math.min(bytes.length, at + Math.min(size, most));
    yield bytes.subarray(at, end);
    at = end;
  }
}

// Waits before each piece until the bandwidth allows it. A late timer shortens the next wait.
const pacer = (bytesPerSecond: number | undefined, signal: AbortSignal) => {
  let freeMs = -Infinity;
  return async (bytes: number): Promise<void> => {
    if (bytesPerSecond === undefined) return;
    await until(freeMs, signal);
    freeMs = Math.max(freeMs, performance.now() - 1_000 / ticks) + (bytes / bytesPerSecond) * 1_000;
  };
};

const until = async (atMs: number, signal: AbortSignal): Promise<void> => {
  const ms = atMs - performance.now();
  if (ms > 0) await delay(ms, undefined, { signal });
};

// A failed write also emits an event of the socket, which aborts the signal.
const write = (to: Socket, piece: Buffer, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    to.write(piece, () => (signal.aborted ? reject(signal.reason as Error) : resolve()));
  });
