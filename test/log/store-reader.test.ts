import { describe, expect, it } from '@jest/globals';
import { waitFor } from '../support/wait-for.js';
import { memoryLog } from './memory-log.js';
import { follow, frame, opened, startWriter, texts, textsOf } from './support.js';

describe('a reader of a log in a store', () => {
  it('searches for what does not follow: the store has got it again, with other numbers', async () => {
    const none = async function* () {};
    let searches = 0;
    let hasOtherNumbers = false;
    const open = memoryLog(({ read }) => ({
      read: (from, signal, isNext = false) => {
        if (!isNext) searches += 1;
        return isNext && hasOtherNumbers ? none() : read(from, signal, isNext);
      },
    }));
    const writer = startWriter(open());
    const reader = follow(open());
    writer.send(opened(), frame(1));
    await waitFor(() => textsOf(reader.records).length === 1);
    const before = searches;
    writer.send(frame(2));
    await waitFor(() => textsOf(reader.records).length === 2);
    expect(searches).toBe(before);
    hasOtherNumbers = true;
    writer.send(frame(3));
    await waitFor(() => textsOf(reader.records).length === 3);
    expect(searches).toBe(before + 1);
    expect(textsOf(reader.records)).toEqual(texts(1, 4));
    reader.stop();
    await writer.end();
  });

  it('asks rarely for what a writer has said that the store never gets', async () => {
    let reads = 0;
    let isLost = false;
    const open = memoryLog(({ append, read }) => ({
      append: (head, bytes, only) => append(head, bytes, isLost ? 'live' : only),
      read: (...args) => {
        reads += 1;
        return read(...args);
      },
    }));
    const writer = startWriter(open());
    const reader = follow(open());
    writer.send(opened(), frame(1));
    await waitFor(() => textsOf(reader.records).length === 1);
    isLost = true;
    writer.send(frame(2));
    const heard = () => reader.records.filter(({ type }) => type === 'watermark').length;
    const enough = heard() + 8;
    const [before, at] = [reads, performance.now()];
    await waitFor(() => heard() >= enough || performance.now() - at > 2_000);
    expect((reads - before) / ((performance.now() - at) / 1_000)).toBeLessThan(20);
    isLost = false;
    await writer.end();
    // What it never got is a gap once something follows.
    await waitFor(() => reader.records.some(({ type }) => type === 'gap'));
    reader.stop();
  });
});
