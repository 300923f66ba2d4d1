import type { Disconnected, LifecycleEvent } from '../protocol/event.js';
import type { Missed } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import type { Block } from './block.js';
import type { CloneableError, ThrownByUser } from './errors.js';
import type { CloneableSettings, NetworkDefaults } from './settings.js';

export interface MissedFrames extends Missed {
  readonly type: 'missed';
  readonly frames: number;
}

/** An event, perhaps with its failure as plain data, or the error that ends the feed. */
export type EventItem =
  /** A watermark covers the frames and events sent before it. */
  | { readonly type: 'event'; readonly event: LifecycleEvent }
  | { readonly type: 'failed'; readonly event: Omit<Disconnected, 'failure'>; readonly failure: CloneableError }
  | { readonly type: 'error'; readonly error: CloneableError };

/** What the worker sends to the main thread, in the order of the feed. */
export type Item = Block | MissedFrames | EventItem;

export interface WorkerStart {
  readonly progress: Int32Array;
  readonly network: NetworkDefaults;
}

export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'batch'; readonly items: readonly Item[] }
  /** Asks for the next ticket request's key, if the option `apiKey` is a function. */
  | { readonly type: 'key-request'; readonly id: number };

export type ToWorker =
  | {
      readonly type: 'start';
      readonly feed: Feed;
      readonly settings: CloneableSettings;
      /** Whether a connection of this subscription has opened, in the worker before this one. */
      readonly hasOpened: boolean;
    }
  | { readonly type: 'resume' }
  | { readonly type: 'network'; readonly network: NetworkDefaults }
  | { readonly type: 'key'; readonly id: number; readonly key: KeyResult }
  | { readonly type: 'stop' };

/** What the user's `apiKey` returned or threw; `undefined` for any other value, which might not be cloneable. */
export type KeyResult = string | undefined | ThrownByUser;

// Indexes in the memory that both threads share: how many batches the main thread has handled, and whether the worker
// is waiting. Only then does the main thread send a message after handling a batch.
const handled = 0;
const isAwaited = 1;

export const createProgress = (): Int32Array => new Int32Array(new SharedArrayBuffer(8));

/** Returns how many batches the main thread has handled. Wraps around after 2^32, so use only differences. */
export const handledOf = (progress: Int32Array): number => Atomics.load(progress, handled);

/** Counts a batch as handled. Returns whether the worker is waiting for a message. */
export const countHandled = (progress: Int32Array): boolean => {
  Atomics.add(progress, handled, 1);
  return Atomics.exchange(progress, isAwaited, 0) === 1;
};

/** Requests a message after the next handled batch. Then call {@link handledOf} again: one may already have been. */
export const awaitHandled = (progress: Int32Array): void => {
  Atomics.store(progress, isAwaited, 1);
};
