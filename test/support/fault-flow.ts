import type { Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { holdArrivals } from './fault-arrivals.js';

/** What becomes of one direction of a connection. */
export interface Flow {
  /** Each chunk is held this long, and up to `jitterMs` longer; the order is kept. */
  readonly delayMs?: number;
  readonly jitterMs?: number;
  readonly bytesPerSecond?: number;
  /** `split`: random small pieces; `coalesced`: held and joined; `drip`: byte by byte. */
  readonly segments?: 'as-is' | 'split' | 'coalesced' | 'drip';
  readonly cut?: Cut;
}

/** The end of a connection at a byte: that many pass, and then it is reset, ended, or swallows both ways for ever. */
export interface Cut {
  readonly afterBytes: number;
  readonly how: 'reset' | 'end' | 'half-open';
}

/** How a direction came to its end. */
export type FlowEnd = 'source-ended' | Cut['how'];

/** Passes on what one socket receives to another, until it ends, is cut, or the signal aborts it (then it rejects). */
export const passOn = async (
  from: Socket,
  to: Socket,
  flow: Flow,
  random: () => number,
  signal: AbortSignal,
): Promise<FlowEnd> => {
  const { delayMs = 0, jitterMs = 0, segments = 'as-is', cut } = flow;
  using arrivals = holdArrivals(from, () => delayMs + jitterMs * random(), signal);
  const paced = pacer(flow.bytesPerSecond, signal);
  let left = cut?.afterBytes ?? Infinity;

  for (;;) {
    if (left <= 0) return (cut as Cut).how;
    const first = await arrivals.next();
    if (first === undefined) return 'source-ended';
    await until(first.dueMs, signal);
    if (segments === 'coalesced') await delay(coalesceMs, undefined, { signal });
    const bytes = segments === 'coalesced' ? Buffer.concat([first.bytes, ...arrivals.all()]) : first.bytes;
    for (const piece of pieces(bytes.subarray(0, Math.min(left, bytes.length)), flow, random)) {
      await paced(piece.length);
      await written(to, piece, signal);
      left -= piece.length;
      // Or the kernel would join them again.
      if (segments === 'split' || segments === 'drip') await nextTurn(undefined, { signal });
    }
  }
};

const coalesceMs = 20;

/** How many pieces a second a bandwidth limit makes. */
const ticks = 50;

function* pieces(bytes: Buffer, { segments, bytesPerSecond = Infinity }: Flow, random: () => number) {
  const most = Math.max(1, Math.ceil(bytesPerSecond / ticks));
  for (let at = 0; at < bytes.length;) {
    const wanted = segments === 'drip' ? 1 : segments === 'split' ? Math.ceil(4_096 ** random()) : Infinity;
    const end = Math.min(bytes.length, at + Math.min(wanted, most));
    yield bytes.subarray(at, end);
    at = end;
  }
}

// Waits before each piece for the time that those before it take; a timer that was late is caught up with.
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

// What fails is told by the socket's own events, and aborts the signal.
const written = (to: Socket, piece: Buffer, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    to.write(piece, () => (signal.aborted ? reject(signal.reason as Error) : resolve()));
  });
