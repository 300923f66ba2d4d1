import { markAsUntransferable } from 'node:worker_threads';

/**
 * Allocates memory for payloads, which cannot be transferred to another thread: a transfer would detach the bytes of frames that other
 * subscribers have, too. Since Node 21 it throws a `DataCloneError`. Node 20 copies the memory instead.
 */
export const allocateBytes = (bytes: number): Buffer => {
  const memory = Buffer.allocUnsafe(bytes);
  // Node marks its pool for small Buffers.
  if (memory.buffer.byteLength === bytes) markAsUntransferable(memory.buffer);
  return memory;
};
