import { beforeAll, describe, expect, it } from '@jest/globals';
import { benchModule } from './library.js';

interface Counter {
  readonly take: (length: number) => void;
  readonly takeBytes: (count: number) => void;
  readonly result: Promise<{ readonly frames: number; readonly ns: number; readonly unitsPerFrame: number }>;
}

let counter: (of: { frameBytes: number; warmUpMs: number; countedMs: number }) => Counter;
beforeAll(async () => {
  ({ counter } = (await benchModule('support/measure.mjs')) as { counter: typeof counter });
});

// With this size the clock is read every 16 frames.
const frameBytes = 2 ** 20;
const atOnce = { frameBytes, warmUpMs: 0, countedMs: 0 };

describe('the counter', () => {
  it('counts frames after the warm-up only', async () => {
    const { take, result } = counter(atOnce);
    for (let n = 0; n < 16; n += 1) take(1);
    for (let n = 0; n < 16; n += 1) take(5);
    for (let n = 0; n < 16; n += 1) take(9);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: 5 });
  });

  it('computes frames from bytes for a receiver that does not parse frames', async () => {
    const { takeBytes, result } = counter(atOnce);
    for (let n = 0; n < 64; n += 1) takeBytes(frameBytes / 2);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: frameBytes });
  });

  it('continues until enough CPU time was used, and divides it by the frames', async () => {
    const { take, result } = counter({ frameBytes, warmUpMs: 2, countedMs: 10 });
    const until = { isDone: false };
    void result.then(() => (until.isDone = true));
    for (let n = 0; !until.isDone; n += 1) {
      take(1);
      if (n % 1_000 === 0) await Promise.resolve();
    }
    const { frames, ns } = await result;
    // Rounding may make it slightly less.
    expect(frames * ns).toBeGreaterThan(9.999e6);
  });
});
