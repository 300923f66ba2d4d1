import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

interface Sample {
  readonly atS: number;
  readonly isStable: boolean;
  readonly heap: number;
  readonly handles: number;
  readonly fds?: number;
}
interface Growth {
  readonly verdict: 'flat' | 'grows' | 'too noisy' | 'too few';
  readonly slope: number;
  readonly limit: number;
  readonly samples: number;
}
const { growthOf } = await reliabilityModule<{
  growthOf: (samples: readonly Sample[], name: string) => Growth | undefined;
}>('soak/growth.mjs');

// The same noise for the same sample in each run.
const noise = (n: number) => ((n * 7919) % 100) / 100 - 0.5;
const run = (seconds: number, of: (n: number) => Partial<Sample> = () => ({})): Sample[] =>
  Array.from({ length: seconds }, (_, n) => ({ atS: n, isStable: true, heap: 18, handles: 16, ...of(n) }));
const verdictOf = (samples: readonly Sample[], name = 'heap') => growthOf(samples, name)?.verdict;

describe('a resource', () => {
  it('is flat if it varies around a level', () => {
    expect(verdictOf(run(120, (n) => ({ heap: 18 + noise(n) })))).toBe('flat');
  });

  it('grows if each sample adds a little, even if the last sample is not the largest', () => {
    const leaking = run(120, (n) => ({ heap: 18 + n * 0.1 + 4 * noise(n) }));
    expect(verdictOf(leaking)).toBe('grows');
    expect(growthOf(leaking, 'heap')?.slope).toBeCloseTo(360, -2);
  });

  it('grows if a handle leaks every five seconds', () => {
    const leaking = run(120, (n) => ({ handles: 16 + Math.floor(n / 5) }));
    expect(verdictOf(leaking, 'handles')).toBe('grows');
  });

  it('is flat if it grows only in the warm-up', () => {
    expect(verdictOf(run(120, (n) => ({ heap: n < 30 ? n : 30 })))).toBe('flat');
  });

  it('is not measured while a connection is down', () => {
    const samples = run(120, (n) => (n % 5 === 0 ? { isStable: false, handles: 16 + n } : {}));
    expect(growthOf(samples, 'handles')).toMatchObject({ verdict: 'flat', samples: 72 });
  });

  it('has a lower limit for an hour in a long run than in a short run', () => {
    const slowly = (seconds: number) => run(seconds, (n) => ({ heap: 18 + n * 0.005 + noise(n) / 4 }));
    expect([verdictOf(slowly(120)), verdictOf(slowly(3_600))]).toEqual(['flat', 'grows']);
  });

  it('is not called flat if its samples are too noisy or too few', () => {
    expect(verdictOf(run(60, (n) => ({ heap: 18 + 40 * noise(n) })))).toBe('too noisy');
    expect(verdictOf(run(8))).toBe('too few');
  });

  it('is left out if the system does not report it', () => {
    expect(growthOf(run(60), 'fds')).toBeUndefined();
  });
});
