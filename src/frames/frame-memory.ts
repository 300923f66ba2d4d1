import { markAsUntransferable } from 'node:worker_threads';

/** Size of a chunk of memory for payloads. A separate buffer for each payload would take longer than its copy. */
const CHUNK_BYTES = 64 * 1024;

/** Larger payloads have a separate buffer. So at most a quarter of a chunk is unused. */
const MOST_SHARED_BYTES = CHUNK_BYTES / 4;

// As the pool of Node for small Buffers. Its memory is never used again, so it is no state of a connection.
let chunk: Buffer = Buffer.alloc(0);
let used = 0;

/**
 * Allocates memory for a payload, which can be a part of a chunk. It cannot be transferred to another thread: a transfer would detach the bytes
 * of frames that other subscribers have, too. Since Node 21 it throws a `DataCloneError`. Node 20 copies the memory instead.
 */
export const allocateBytes = (bytes: number): Buffer => {
  if (bytes > MOST_SHARED_BYTES) return allocateSeparately(bytes);
  if (used + bytes > chunk.length) {
    chunk = allocateSeparately(CHUNK_BYTES);
    used = 0;
  }
  const start = used;
  used += bytes;
  return chunk.subarray(start, used);
};

/** Allocates a separate buffer, which cannot be transferred to another thread. */
export const allocateSeparately = (bytes: number): Buffer => {
  const memory = Buffer.allocUnsafeSlow(bytes);
  markAsUntransferable(memory.buffer);
  return memory;
};
