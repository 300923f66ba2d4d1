import type { Frame, LifecycleEvent, Stopped, Watermark } from '../../index.js';
import type { Interrupt } from '../context.js';

/** Why the command stops following a feed. */
export type Ending =
  | { readonly kind: 'count-reached' }
  | { readonly kind: 'time-up' }
  | { readonly kind: 'interrupted'; readonly signal: Interrupt }
  /** The reader of stdout is gone (`| head`). */
  | { readonly kind: 'output-closed' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Time went by. */
export interface Tick {
  readonly type: 'tick';
  readonly at: number;
}

/** It is over. */
export interface Ended {
  readonly type: 'ended';
  readonly at: number;
  readonly ending: Ending;
}

/** The events that a command shows. */
export type ShownLifecycle = Exclude<LifecycleEvent, Stopped | Watermark>;

/** The same, and the frames. */
export type ShownEvent = ShownLifecycle | Frame;

/** What a command that follows a feed sees, in order, in epoch ms. */
export type Happening = ShownEvent | Tick | Ended;

/** The end, now. */
export const ended = (ending: Ending): Ended => ({ type: 'ended', at: Date.now(), ending });
