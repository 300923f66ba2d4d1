import type { Failure } from './failure';

/** A time of which frames are missing. In epoch ms. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  readonly durationMs: number;
  readonly failure: Failure;
  /** How many frames, where that is known. */
  readonly missed?: number;
}
