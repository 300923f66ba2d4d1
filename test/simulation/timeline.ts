import type { Time } from './world.js';

/** What happened in a run: everything that `test/support/simulation.mjs` needs of one. Worlds add numbers to sum up. */
export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  /** How many violations there are of each kind. */
  readonly kinds: Readonly<Record<string, number>>;
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  readonly timeline: readonly string[];
}

/** The diary of a run: what happens, each fault, and what is wrong. */
export class Timeline {
  readonly lines: string[] = [];
  readonly violations: string[] = [];
  readonly kinds: Record<string, number> = {};
  readonly faults: Record<string, number> = {};
  readonly #time: Time;

  constructor(time: Time) {
    this.#time = time;
  }

  note(text: string): void {
    this.lines.push(`${this.#time.elapsed.toFixed(1).padStart(9)}  ${text}`);
  }

  /** Counts a fault that the plan of the run has. */
  count(name: string): void {
    this.faults[name] = this.times(name) + 1;
  }

  fault(name: string, text = ''): void {
    this.count(name);
    this.note(`fault: ${name} ${text}`);
  }

  /** How often faults have happened. */
  times(...names: readonly string[]): number {
    return names.reduce((sum, name) => sum + (this.faults[name] ?? 0), 0);
  }

  wrong(text: string, kind = 'other'): void {
    this.kinds[kind] = (this.kinds[kind] ?? 0) + 1;
    this.violations.push(`${this.#time.elapsed.toFixed(1)}: ${text}`);
    this.note(`VIOLATION: ${text}`);
  }

  result(seed: number): Run {
    const { violations, kinds, faults, lines: timeline } = this;
    return { seed, violations, kinds, faults, timeline };
  }
}
