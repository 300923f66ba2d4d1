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

// So large that the clock is looked at every 16 frames.
const frameBytes = 2 ** 20;
const atOnce = { frameBytes, warmUpMs: 0, countedMs: 0 };

describe('the counter', () => {
  it('counts what comes after the warm-up, and nothing before it', async () => {
    const { take, result } = counter(atOnce);
    for (let n = 0; n < 16; n += 1) take(1);
    for (let n = 0; n < 16; n += 1) take(5);
    for (let n = 0; n < 16; n += 1) take(9);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: 5 });
  });

  it('counts frames in bytes for a receiver that knows none', async () => {
    const { takeBytes, result } = counter(atOnce);
    for (let n = 0; n < 64; n += 1) takeBytes(frameBytes / 2);
    expect(await result).toMatchObject({ frames: 16, unitsPerFrame: frameBytes });
  });

  it('goes on until enough CPU time was spent, and divides it by the frames', async () => {
    const { take, result } = counter({ frameBytes, warmUpMs: 2, countedMs: 10 });
    const until = { isDone: false };
    void result.then(() => (until.isDone = true));
    for (let n = 0; !until.isDone; n += 1) {
      take(1);
      if (n % 1_000 === 0) await Promise.resolve();
    }
    const { frames, ns } = await result;
    // Divided and multiplied again, it may be a billionth less.
    expect(frames * ns).toBeGreaterThan(9.999e6);
  });
});
