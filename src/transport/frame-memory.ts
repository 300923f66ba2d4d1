import { markAsUntransferable } from 'node:worker_threads';

/**
 * Creates a Buffer for a part of a memory block, as `Buffer.from(memory, offset, length)` does. That function first checks each
 * argument, which takes longer than the rest of the work for a small frame.
 */
export const { [Symbol.species]: BufferView } = Buffer as unknown as {
  readonly [Symbol.species]: new (memory: ArrayBufferLike, offset: number, length: number) => Buffer;
};

/**
 * Marks memory that contains frames as untransferable. All frames of one read share their memory. A transfer to another thread would
 * detach it, so that these frames would be empty, including frames that are not emitted yet.
 *
 * Since Node 21 a transfer of marked memory throws a `DataCloneError`. Node 20 copies the memory instead. A mark costs about
 * 100 ns, so it is set once for each read, not for each frame.
 */
export const markUntransferable = (memory: ArrayBufferLike): void => markAsUntransferable(memory);
