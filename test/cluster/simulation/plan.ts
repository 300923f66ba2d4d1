import type { Chance } from './chance.js';
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

interface PlannedFault {
  readonly name: string;
  readonly beginMs: number;
  readonly durationMs: number;
}

const maxFaults = 12;
const maxDurationMs = 8_000;
/** A fault followed by the next one within this time. */
const closeMs = 1_500;

/** Decides what happens in a run. */
export const createPlan = (chance: Chance, options: RunOptions): Plan => {
  const foreign = options.foreign ?? chance.oneOf(['none', 'none', 'polite', 'stubborn'] as const);
  const faultsUntilMs = chance.oneOf([4_000, 6_000, 12_000]);
  const names = options.faultNames ?? kindsOf(chance);
  const planned: PlannedFault[] = [];
  const count = Math.ceil(chance.between(0, maxFaults));
  for (let n = 0; n < count; n += 1) {
    const earlier = planned.at(-1)?.beginMs;
    const isClose = earlier !== undefined && earlier + closeMs < faultsUntilMs && chance.isTrue(0.5);
    const beginMs = isClose ? chance.between(earlier, earlier + closeMs) : chance.between(500, faultsUntilMs);
    const durationMs = chance.between(20, Math.max(20, Math.min(maxDurationMs, faultsUntilMs - beginMs)));
    planned.push({ name: chance.oneOf(names), beginMs, durationMs });
  }
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
