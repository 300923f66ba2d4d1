import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { filter, NEVER, type Observable, share, Subject, type Subscription } from 'rxjs';
import { conflate } from '../../../src/operators/conflate.js';
import { mergeMapBounded } from '../../../src/operators/merge-map-bounded.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import type { FeedEvent } from '../../../src/protocol/event.js';
import { Frame } from '../../../src/protocol/frame.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const afterCollection = async (): Promise<number> => {
  collectGarbage();
  await turn();
  return process.memoryUsage().arrayBuffers;
};

/** Collects garbage until no more is freed: V8 frees buffers in another thread, which may come late. */
const aliveBytes = async (): Promise<number> => {
  let least = await afterCollection();
  for (let same = 0; same < 5; same += 1) {
    const next = await afterCollection();
    if (next < least) [least, same] = [next, 0];
  }
  return least;
};

const frameBytes = 1_000;
const reads = 100;

/** The frames of a read of 64 KiB, with the number of the first one. */
const framesFrom = (first: number): Frame[] => {
  const read = Buffer.allocUnsafeSlow(65_536);
  return Array.from({ length: 65 }, (_, n) => {
    const data = read.subarray(4 + n * 1_004, 4 + n * 1_004 + frameBytes);
    data.writeUInt32LE(first + n);
    return new Frame('market', data, true, Date.now(), 1);
  });
};

const numberOf = (frame: Frame): number => frame.data.readUInt32LE();
const hourMs = 3_600_000;

/** Few frames of each read stay the newest of their key. */
const keyOf = (frame: Frame): number => Math.floor(4_000 * (((numberOf(frame) * 2_654_435_761) >>> 0) / 2 ** 32) ** 2);

const oneOfRead = (frames: Observable<Frame>): Observable<Frame> =>
  frames.pipe(filter((frame) => numberOf(frame) % 65 === 7));

const inWindow = (frames: Observable<FeedEvent>): Observable<unknown> =>
  frames.pipe(tumblingWindow({ lengthMs: hourMs }));

describe('memory that one of two operators keeps alive, as the garbage collector counts it', () => {
  it.each<[string, (frames: Observable<Frame>) => Observable<unknown>, heldBytes: number]>([
    ['a queue', mergeMapBounded(() => NEVER, { capacity: 1e6, capacityBytes: 1_000_000 }), 1_000_000],
    [
      'a queue of a part of the frames',
      (frames) => oneOfRead(frames).pipe(mergeMapBounded(() => NEVER, { capacityBytes: 75_000 })),
      75_000,
    ],
    ['a window', inWindow, reads * 65 * frameBytes],
    ['a window of a part of the frames', (frames) => inWindow(oneOfRead(frames)), reads * frameBytes],
  ])('%s keeps its bytes alive, with conflate beside it', async (_, operator, heldBytes) => {
    const subject = new Subject<Frame>();
    const shared = subject.pipe(share());
    const before = await aliveBytes();
    const other: Subscription = shared.pipe(conflate(keyOf, hourMs)).subscribe();
    const subscription = shared.pipe(operator).subscribe();
    for (let read = 0; read < reads; read += 1) {
      for (const frame of framesFrom(read * 65)) subject.next(frame);
      await turn();
    }
    other.unsubscribe();
    const alive = (await aliveBytes()) - before;
    subscription.unsubscribe();
    expect(alive / heldBytes).toBeGreaterThan(0.9);
    expect(alive / heldBytes).toBeLessThanOrEqual(1.5);
  });
});
