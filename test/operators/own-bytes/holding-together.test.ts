import { describe, expect, it } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { filter, type Observable, Subject } from 'rxjs';
import { Frame } from '../../../src/protocol/frame.js';
import { cases } from '../../support/cases.js';
import { holders } from './holders.js';

const frameBytes = 1_000;
const reads = 8;

/** Creates frames in buffers of `bufferBytes`, each behind `headBytes`, as a socket or a worker does. */
const feed = (bufferBytes: number, headBytes: number): Frame[][] => {
  let n = 0;
  return Array.from({ length: reads }, () => {
    const buffer = Buffer.allocUnsafeSlow(bufferBytes);
    const frames: Frame[] = [];
    for (let at = headBytes; at + frameBytes <= bufferBytes; at += frameBytes + headBytes) {
      const data = buffer.subarray(at, at + frameBytes).fill(n % 251);
      data.writeUInt32LE(n);
      n += 1;
      frames.push(new Frame('market', data, true, Date.now(), 1));
    }
    return frames;
  });
};

const aliveBytes = (held: readonly Uint8Array[]): number =>
  [...new Set(held.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0);
const bytesOf = (held: readonly Uint8Array[]): number => held.reduce((sum, { byteLength }) => sum + byteLength, 0);

type Part = (frames: Observable<Frame>) => Observable<Frame>;
const all: Part = (frames) => frames;
const oneOfFive: Part = filter((frame) => frame.data.readUInt32LE() % 5 === 0);
const mostOfThem: Part = filter((frame) => frame.data.readUInt32LE() % 10 < 7);

/** Passes one shared feed to operators, and returns how many bytes each keeps alive per held byte. */
const ratios = async (read: readonly (readonly Frame[])[], parts: readonly (readonly [string, Part])[]) => {
  const subject = new Subject<Frame>();
  const drains = parts.map(([name, part]) => holders[name]!(part(subject)));
  for (const frames of read) {
    for (const frame of frames) subject.next(frame);
    await turn();
  }
  const held: (readonly Uint8Array[])[] = [];
  for (const drain of drains) held.push(await drain());
  return held.map((each) => {
    // If an operator holds almost nothing, its ratio means nothing.
    expect(bytesOf(each)).toBeGreaterThan(20_000);
    return aliveBytes(each) / bytesOf(each);
  });
};

const names = Object.keys(holders);
/** What the two operators receive. */
const combinations: readonly (readonly [Part, Part])[] = [
  [all, oneOfFive],
  [all, all],
  [oneOfFive, all],
  [all, mostOfThem],
  [mostOfThem, oneOfFive],
];
const pairs = names.flatMap((one, n) => names.slice(n).map((other) => [one, other] as const));

describe.each([
  ['reads of 64 KiB', 65_536, 4],
  ['blocks of 256 KiB, as of a worker', 262_144, 0],
])('two operators that hold frames of one shared feed: %s', (_, bufferBytes, headBytes) => {
  it.each(pairs)('%s and %s each keep at most 1.5 times their bytes alive', async (one, other) => {
    for (const [some, others] of combinations.slice(0, cases(combinations.length))) {
      const found = await ratios(feed(bufferBytes, headBytes), [
        [one, some],
        [other, others],
      ]);
      expect(Math.max(...found)).toBeLessThanOrEqual(1.5);
    }
  });
});
