import type { Chance } from './chance.js';

/** A fault that a run will have. Times in ms. */
export interface PlannedFault {
  readonly name: string;
  readonly beginMs: number;
  readonly durationMs: number;
}

interface FaultPlan {
  readonly names: readonly string[];
  readonly count: number;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly mostMs: number;
  /** Half of the faults begin within this time after another one. */
  readonly closeMs: number;
}

/** Decides which faults a run has, and when. None lasts longer than until the end. */
export const planFaults = (chance: Chance, plan: FaultPlan): readonly PlannedFault[] => {
  const planned: PlannedFault[] = [];
  const { names, count, fromMs, untilMs, mostMs, closeMs } = plan;
  for (let n = 0; n < count; n += 1) {
    const earlier = planned.at(-1)?.beginMs;
    const isClose = earlier !== undefined && earlier + closeMs < untilMs && chance.isTrue(0.5);
    const beginMs = isClose ? chance.between(earlier, earlier + closeMs) : chance.between(fromMs, untilMs);
    const durationMs = chance.between(20, Math.max(20, Math.min(mostMs, untilMs - beginMs)));
    planned.push({ name: chance.oneOf(names), beginMs, durationMs });
  }
  return planned;
};
