import { markAsUntransferable } from 'node:worker_threads';

/**
 * Marks memory that frames are views of as untransferable. A frame shares its memory with the frames that were read with it: a
 * transfer to another thread would empty all of them, also those that are not emitted yet.
 *
 * Since Node 21 such a transfer throws a `DataCloneError` to its caller. Node 20 copies the memory instead. A mark costs about
 * 100 ns, so it is set once for each read, not for each frame.
 */
export const markShared = (memory: ArrayBufferLike): void => markAsUntransferable(memory);
