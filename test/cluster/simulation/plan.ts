import type { Chance } from '../../simulation/chance.js';
import { type PlannedFault, planFaults } from '../../simulation/faults.js';
import { freeDelayMs } from '../../../src/protocol/feed-state.js';
import { faults } from './faults.js';

/** Another client of the account. `polite`: it connects once. `stubborn`: it reconnects after each eviction. */
export type Foreign = 'none' | 'polite' | 'stubborn';

/** What happens in a run, unless the seed decides. */
export interface RunOptions {
  readonly faultNames?: readonly string[];
  readonly foreign?: Foreign;
}

/** What a run's seed decides in advance. Times in ms. */
export interface Plan {
  /** How long the service holds each frame back: 500 on the Free plan. */
  readonly delayMs: number;
  /** What all replicas have as an option. */
  readonly deliveryDelayMs: 'auto' | number;
  readonly frameEveryMs: number;
  readonly foreign: Foreign;
  readonly foreignAtMs: number;
  /** The end of the last fault. */
  readonly faultsUntilMs: number;
  readonly faults: readonly PlannedFault[];
}

/** Decides what happens in a run. */
export const createPlan = (chance: Chance, options: RunOptions): Plan => {
  const foreign = options.foreign ?? chance.oneOf(['none', 'none', 'polite', 'stubborn'] as const);
  const faultsUntilMs = chance.oneOf([4_000, 6_000, 12_000]);
  const names = options.faultNames ?? kindsOf(chance);
  const count = Math.ceil(chance.between(0, 12));
  const times = { fromMs: 500, untilMs: faultsUntilMs, mostMs: 8_000, closeMs: 1_500 };
  const planned = planFaults(chance, { names, count, ...times });
  const delayMs = chance.oneOf([0, freeDelayMs]);
  // With 0 on the Free plan, the application would have told us a wrong thing.
  const deliveryDelayMs = chance.oneOf(['auto', 'auto', freeDelayMs, delayMs] as const);
  const frameEveryMs = chance.oneOf([40, 200, 200, 700]);
  const line = { delayMs, deliveryDelayMs, frameEveryMs };
  return { ...line, foreign, foreignAtMs: chance.between(1_000, faultsUntilMs), faultsUntilMs, faults: planned };
};

/** Runs with this fault take several times as long, so few have it. */
const slowKind = 'very late handshakes';

// Few kinds per run make each combination of some of them frequent.
const kindsOf = (chance: Chance): readonly string[] => {
  const all = Object.keys(faults).filter((name) => name !== slowKind || chance.isTrue(0.1));
  const count = Math.ceil(chance.between(0, 6));
  return Array.from({ length: count }, () => chance.oneOf(all));
};
