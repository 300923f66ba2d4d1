import type { Step } from '../follow/follow.js';

/** Shows a person how a feed is doing, while it runs. */
export interface View {
  show(step: Step): void;
  /** Gives the terminal back. */
  close(): void;
}

/** Shows nothing. */
export const noView: View = { show: () => undefined, close: () => undefined };
