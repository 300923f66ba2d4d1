import type { Socket } from 'node:net';

/** What has been received and not passed on yet, in its order. */
export interface Arrivals extends Disposable {
  /** Waits for the next chunk; `undefined` at the end of the source. Rejects when the signal aborts. */
  next(): Promise<{ readonly bytes: Buffer; readonly dueMs: number } | undefined>;
  /** Takes all chunks that are there now. */
  all(): readonly Buffer[];
}

/** More than this waits in the source's own buffers, as it would on a slow network. */
const mostBytes = 1024 * 1024;

/** Reads a socket, and says of each chunk when it is due. Stops to read when disposed. */
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

  const taken = (bytes: Buffer): Buffer => {
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
      if (first) taken(first.bytes);
      return first;
    },
    all: () => held.splice(0).map(({ bytes }) => taken(bytes)),
    [Symbol.dispose]: () => {
      from.off('data', onData).off('end', onEnd).off('close', onEnd);
      signal.removeEventListener('abort', onAbort);
    },
  };
};
