import { describe, expect, it } from '@jest/globals';
import { reliabilityModule } from './library.js';

interface Sample {
  readonly atS: number;
  readonly isSettled: boolean;
  readonly heap: number;
  readonly handles: number;
  readonly fds?: number;
}
interface Judged {
  readonly verdict: 'flat' | 'grows' | 'too noisy' | 'too few';
  readonly slope: number;
  readonly limit: number;
  readonly samples: number;
}
const { judge } = await reliabilityModule<{ judge: (samples: readonly Sample[], name: string) => Judged | undefined }>(
  'soak/flat.mjs',
);

// Noise that follows from the number of the sample.
const noise = (n: number) => ((n * 7919) % 100) / 100 - 0.5;
const run = (seconds: number, of: (n: number) => Partial<Sample> = () => ({})): Sample[] =>
  Array.from({ length: seconds }, (_, n) => ({ atS: n, isSettled: true, heap: 18, handles: 16, ...of(n) }));
const verdictOf = (samples: readonly Sample[], name = 'heap') => judge(samples, name)?.verdict;

describe('a resource', () => {
  it('is flat when it only wobbles', () => {
    expect(verdictOf(run(120, (n) => ({ heap: 18 + noise(n) })))).toBe('flat');
  });

  it('grows when a little is held each time, though the last sample is no larger than the largest', () => {
    const leaking = run(120, (n) => ({ heap: 18 + n * 0.1 + 4 * noise(n) }));
    expect(verdictOf(leaking)).toBe('grows');
    expect(judge(leaking, 'heap')?.slope).toBeCloseTo(360, -2);
  });

  it('grows when a handle is left behind every five seconds', () => {
    const leaking = run(120, (n) => ({ handles: 16 + Math.floor(n / 5) }));
    expect(verdictOf(leaking, 'handles')).toBe('grows');
  });

  it('may fill its caches in the warm-up', () => {
    expect(verdictOf(run(120, (n) => ({ heap: n < 30 ? n : 30 })))).toBe('flat');
  });

  it('is not judged by what is held while a connection is away', () => {
    const samples = run(120, (n) => (n % 5 === 0 ? { isSettled: false, handles: 16 + n } : {}));
    expect(judge(samples, 'handles')).toMatchObject({ verdict: 'flat', samples: 72 });
  });

  it('may grow less in an hour of a long run than of a short one', () => {
    const slowly = (seconds: number) => run(seconds, (n) => ({ heap: 18 + n * 0.005 + noise(n) / 4 }));
    expect([verdictOf(slowly(120)), verdictOf(slowly(3_600))]).toEqual(['flat', 'grows']);
  });

  it('is too noisy, or too seldom seen, to be called flat', () => {
    expect(verdictOf(run(60, (n) => ({ heap: 18 + 40 * noise(n) })))).toBe('too noisy');
    expect(verdictOf(run(8))).toBe('too few');
  });

  it('is left out where the system does not tell', () => {
    expect(judge(run(60), 'fds')).toBeUndefined();
  });
});
