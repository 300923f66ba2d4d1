import type { Socket } from 'node:net';

/** Received chunks that are not forwarded yet, in order. */
export interface Arrivals extends Disposable {
  /** Waits for the next chunk; `undefined` at the end of the source. Rejects when the signal aborts. */
  next(): Promise<{ readonly bytes: Buffer; readonly dueMs: number } | undefined>;
  /** Removes and returns all chunks that have arrived. */
  all(): readonly Buffer[];
}

/** Above this size the source is paused, so that its own buffers fill up, as on a slow network. */
const mostBytes = 1024 * 1024;

/** Reads a socket and returns each chunk with the time when it is due. Stops reading when disposed. */
export const holdArrivals = (from: Socket, holdMs: () => number, signal: AbortSignal): Arrivals => {
  const held: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  let size = 0;
  let dueMs = 0;
  let wake = (): void => undefined;

  const onData = (bytes: Buffer): void => {
    dueMs = Math.max(dueMs, performance.now() + holdMs());
    held.push({ bytes, dueMs });
    size += bytes.length;
    if (size > mostBytes) from.pause();
    wake();
  };
  const onEnd = (): void => wake();
  const onAbort = (): void => wake();
  from.on('data', onData).on('end', onEnd).on('close', onEnd).resume();
  signal.addEventListener('abort', onAbort, { once: true });

  const release = (bytes: Buffer): Buffer => {
    size -= bytes.length;
    if (size <= mostBytes) from.resume();
    return bytes;
  };
  return {
    next: async () => {
      while (held.length === 0 && !from.readableEnded && !from.destroyed && !signal.aborted) {
        await new Promise<void>((resolve) => (wake = resolve));
      }
      signal.throwIfAborted();
      const first = held.shift();
      if (first) release(first.bytes);
      return first;
    },
    all: () => held.splice(0).map(({ bytes }) => release(bytes)),
    [Symbol.dispose]: () => {
      from.off('data', onData).off('end', onEnd).off('close', onEnd);
      signal.removeEventListener('abort', onAbort);
    },
  };
};
