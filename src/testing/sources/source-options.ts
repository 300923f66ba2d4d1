import type { SchedulerLike } from 'rxjs';
import { type Checks, scheduler, integerIn } from '../options/check-options.js';

/** The options of all built-in sources. */
export interface SourceOptions {
  /** Frames per second: above 0, up to 100 000. @defaultValue 20 */
  readonly rate?: number | undefined;
  /** A whole number from 0 to 2^32-1. The same seed produces the same payloads in the same order. @defaultValue 1 */
  readonly seed?: number | undefined;
  /** The clock of the rate. @defaultValue real time */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The checks of the shared options. */
export const sourceChecks: Checks = {
  rate: [(value) => typeof value === 'number' && value > 0 && value <= 100_000, 'a number above 0, up to 100000'],
  seed: integerIn(0, 2 ** 32 - 1),
  scheduler,
};
