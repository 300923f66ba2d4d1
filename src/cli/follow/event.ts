import type { ClusterLifecycleEvent, Frame, Stopped, Watermark } from '../../index.js';
import type { Interrupt } from '../context.js';

/** Why a command ends. */
export type Ending =
  | { readonly kind: 'count-reached' }
  | { readonly kind: 'time-up' }
  | { readonly kind: 'interrupted'; readonly signal: Interrupt }
  /** The reader of stdout has exited (`| head`). */
  | { readonly kind: 'output-closed' }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Updates the time between other events. Emitted at intervals. */
export interface Tick {
  readonly type: 'tick';
  readonly at: number;
}

/** Marks the end of the command. */
export interface Ended {
  readonly type: 'ended';
  readonly at: number;
  readonly ending: Ending;
}

/** The lifecycle events that a command shows. */
export type ShownLifecycle = Exclude<ClusterLifecycleEvent, Stopped | Watermark>;

/** The feed events that a command shows. */
export type ShownEvent = ShownLifecycle | Frame;

/** All events of a command that follows a feed. Times are epoch ms. */
export type CliEvent = ShownEvent | Tick | Ended;

/** Creates the event of an ending, with the current time. */
export const ended = (ending: Ending): Ended => ({ type: 'ended', at: Date.now(), ending });
