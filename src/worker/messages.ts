import type { MessagePort } from 'node:worker_threads';
import type { Disconnected, LifecycleEvent } from '../protocol/event.js';
import type { Verdict } from '../protocol/failures/failure-code.js';
import type { Feed } from '../protocol/feed.js';
import type { Missed } from '../protocol/gap.js';
import type { Block } from './block.js';
import type { CrossedError } from './crossed-error.js';
import type { MovedSettings } from './moved-settings.js';
import type { NetworkDefaults } from './network-defaults.js';

/** Frames that the store had no room for: from the time of the first to that of the last. */
export interface MissedFrames extends Missed {
  readonly type: 'missed';
  readonly frames: number;
}

/** What happened: an event, its failure made ready to cross, or the end of the feed. */
export type Told =
  /** Also a watermark: of the frames and events that were handed over before it. */
  | { readonly type: 'event'; readonly event: LifecycleEvent }
  | { readonly type: 'failed'; readonly event: Omit<Disconnected, 'failure'>; readonly failure: CrossedError }
  | { readonly type: 'error'; readonly error: CrossedError };

/** What is handed over, in the order in which it came. */
export type Item = Block | MissedFrames | Told;

/** What the worker is given with its first breath. */
export interface Boot {
  /** Where it puts each {@link Question}, and the word that wakes it when the answer is there. */
  readonly questions: MessagePort;
  readonly answered: Int32Array;
  /** How far the main thread has come with what it was handed. */
  readonly progress: Int32Array;
  readonly network: NetworkDefaults;
}

/** What the worker says. */
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'batch'; readonly items: readonly Item[] }
  | { readonly type: 'key-wanted'; readonly id: number };

/** What the worker is told. */
export type ToWorker =
  | { readonly type: 'start'; readonly feed: Feed; readonly settings: MovedSettings }
  | { readonly type: 'go-on' }
  | { readonly type: 'key'; readonly id: number; readonly key: Answer<string | undefined> }
  | { readonly type: 'stop' };

/** What a function of the user's gave or threw. */
export type Answer<T> = { readonly value: T } | { readonly thrown: CrossedError };

/** A question to a function of the user's that must be answered at once; the worker stands still until it is. */
export type Question =
  | { readonly ask: 'classify'; readonly failure: CrossedError; readonly verdict: Verdict }
  | { readonly ask: 'random' }
  | { readonly ask: 'checkServerIdentity'; readonly host: string; readonly certificate: object };
