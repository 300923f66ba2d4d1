import { describe, expect, it } from '@jest/globals';
import { createLease } from '../../src/transport/lease.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';

/** Creates frames that are next to each other in memory that is used again. */
const readOf = (words: readonly string[]) => {
  const memory = Buffer.from(words.join(''));
  let end = 0;
  const frames = words.map((word) => {
    const start = end;
    end += word.length;
    return new ReceivedFrame('raw', memory, start, end, false, true, 1, 1, true);
  });
  return { frames, memory };
};

describe('a lease', () => {
  it('copies at its end the frames that no subscriber has read, and no others, to one block', () => {
    const words = ['text', 'data', 'never', 'x'.repeat(20_000), ''];
    const { frames, memory } = readOf(words);
    const reads = [(frame: ReceivedFrame) => frame.text(), (frame: ReceivedFrame) => frame.data];
    const next = [...reads];
    const lease = createLease((frame) => next.shift()?.(frame));
    for (const frame of frames) lease.emit(frame);
    expect(frames.map(({ isLeased }) => isLeased)).toEqual([false, false, true, true, true]);
    lease.end();
    memory.fill('z');
    expect(frames.map(({ isLeased }) => isLeased)).toEqual([false, false, false, false, false]);
    expect(frames.map((frame) => String(frame.data))).toEqual(words);
    const [, data, ...unread] = frames.map((frame) => frame.data.buffer);
    expect([...new Set(unread)].map(({ byteLength }) => byteLength)).toEqual([20_005]);
    expect(data).not.toBe(unread[0]);
  });

  it('copies to blocks of at most 64 KiB, so that a stored frame keeps few others, and a larger frame to a separate block', () => {
    const sizes = [30_000, 35_536, 20_000, 65_536, 100_000, 20_001];
    const words = sizes.map((size, n) => String(n).repeat(size));
    const { frames, memory } = readOf(words);
    const lease = createLease(() => undefined);
    for (const frame of frames) lease.emit(frame);
    lease.end();
    memory.fill('z');
    const blocks = [...new Set(frames.map(({ view }) => view.buffer))];
    expect(blocks.map(({ byteLength }) => byteLength)).toEqual([65_536, 20_000, 65_536, 100_000, 20_001]);
    expect(frames.map((frame) => frame.text() === words[frames.indexOf(frame)])).toEqual(words.map(() => true));
  });

  it('does not copy a frame that was read in the `next` of a later one', () => {
    const { frames } = readOf(['first', 'x'.repeat(20_000)]);
    const [first, second] = frames as [ReceivedFrame, ReceivedFrame];
    const lease = createLease((frame) => frame === second && first.text());
    for (const frame of frames) lease.emit(frame);
    lease.end();
    expect(second.data.buffer.byteLength).toBe(20_000);
    expect(first.text()).toBe('first');
  });

  it('keeps no frame of a read that has ended', () => {
    const [unread] = readOf(['a']).frames as [ReceivedFrame];
    const lease = createLease(() => undefined);
    lease.emit(unread);
    lease.end();
    let looks = 0;
    Object.defineProperty(unread, 'isLeased', { get: () => (looks += 1) < 0 });
    lease.emit(readOf(['b']).frames[0] as ReceivedFrame);
    lease.end();
    expect(looks).toBe(0);
  });

  it('copies nothing when all frames were read, and begins again with each read', () => {
    const lease = createLease((frame) => frame.text());
    const all = [readOf(['a', 'b']), readOf(['c'])];
    for (const { frames, memory } of all) {
      for (const frame of frames) lease.emit(frame);
      lease.end();
      memory.fill('z');
    }
    expect(all.flatMap(({ frames }) => frames.map((frame) => frame.text()))).toEqual(['a', 'b', 'c']);
  });
});
