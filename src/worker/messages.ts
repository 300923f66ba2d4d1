import type { MessagePort } from 'node:worker_threads';
import type { Disconnected, LifecycleEvent } from '../protocol/event.js';
import type { Verdict } from '../protocol/failures/failure-code.js';
import type { Feed } from '../protocol/feed.js';
import type { Missed } from '../protocol/gap.js';
import type { Block } from './block.js';
import type { CloneableError } from './cloneable-error.js';
import type { CloneableSettings } from './cloneable-settings.js';
import type { NetworkDefaults } from './network-defaults.js';

/** Frames that were dropped because the store was full. */
export interface MissedFrames extends Missed {
  readonly type: 'missed';
  readonly frames: number;
}

/** An event, an event with its failure as plain data, or the error that ends the feed. */
export type EventItem =
  /** A watermark covers the frames and events that were sent before it. */
  | { readonly type: 'event'; readonly event: LifecycleEvent }
  | { readonly type: 'failed'; readonly event: Omit<Disconnected, 'failure'>; readonly failure: CloneableError }
  | { readonly type: 'error'; readonly error: CloneableError };

/** An item that the worker sends to the main thread. Items are sent in the order of the feed. */
export type Item = Block | MissedFrames | EventItem;

/** The `workerData` of the worker. */
export interface WorkerStart {
  /** The port for each {@link UserCall}. */
  readonly calls: MessagePort;
  /** Is set to 1 when the result of a call is available. */
  readonly answered: Int32Array;
  /** How many batches the main thread has handled: see progress.ts. */
  readonly progress: Int32Array;
  readonly network: NetworkDefaults;
}

/** The messages from the worker. */
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'batch'; readonly items: readonly Item[] }
  | { readonly type: 'key-request'; readonly id: number };

/** The messages to the worker. */
export type ToWorker =
  | { readonly type: 'start'; readonly feed: Feed; readonly settings: CloneableSettings }
  | { readonly type: 'resume' }
  | { readonly type: 'key'; readonly id: number; readonly key: CallResult<string | undefined> }
  | { readonly type: 'stop' };

/** The value that a function of the user returned, or the error that it threw. */
export type CallResult<T> = { readonly value: T } | { readonly thrown: CloneableError };

/** A call of a function of the user. It blocks the worker until the main thread returns the result. */
export type UserCall =
  | { readonly name: 'classify'; readonly failure: CloneableError; readonly verdict: Verdict }
  | { readonly name: 'random' }
  | { readonly name: 'checkServerIdentity'; readonly host: string; readonly certificate: object };
