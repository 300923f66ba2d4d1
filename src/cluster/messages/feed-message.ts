import type { LifecycleEvent } from '../../protocol/event.js';
import type { Frame } from '../../protocol/frame.js';
import type { KeyPhase } from '../election/cluster-key.js';

/** What each message of an owner contains. */
export interface MessageHead {
  /** Identifies the generations: see `epoch` of the key. */
  readonly epoch: number;
  readonly gen: number;
  /** The id of the owner. */
  readonly owner: string;
  readonly phase: KeyPhase;
  /** The last revision of the key that the owner wrote. */
  readonly revision: number;
  /** How many frames and events of this generation precede the message. */
  readonly sequence: number;
  /** How many of them are frames. */
  readonly frames: number;
  /** In epoch ms by the clock of the owner. No frame after a beat is earlier. */
  readonly at: number;
}

/** A message with frames. */
export type BatchMessage = MessageHead & { readonly kind: 'batch'; readonly batch: readonly Frame[] };

/** A message without frames. */
export type PlainMessage = MessageHead &
  ({ readonly kind: 'event'; readonly event: LifecycleEvent } | { readonly kind: 'beat' | 'end' });

/** A message of an owner to all replicas. */
export type FeedMessage = BatchMessage | PlainMessage;
