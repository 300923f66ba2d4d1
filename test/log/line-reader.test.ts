import { describe, expect, it, jest } from '@jest/globals';
import { LineReader, type Origin } from '../../src/log/line-reader.js';
import { type LineStore, retention } from '../../src/log/line-store.js';
import { memoryLine } from '../../src/log/memory-line.js';
import { between, type Head, type Place, startOf } from '../../src/protocol/place.js';
import { fakeTimers } from '../support/fake-timers.js';

interface Generation {
  readonly line?: string;
  readonly after?: number;
  readonly began?: number;
}

/** A message of a generation: its records from one offset to before another. */
const message = (gen: number, from: number, to: number, { line = 'a', after = gen - 1, began = 0 }: Generation = {}) =>
  ({ ...startOf(line, from, from), gen, after, began, count: to - from }) satisfies Head;
const encode = (head: Head): Uint8Array => Buffer.from(JSON.stringify(head));
const decode = (bytes: Uint8Array): Head => JSON.parse(Buffer.from(bytes).toString()) as Head;

/** A reader that notes each record as `<generation>:<offset>`, and what is missing as `-`. */
const start = (change: (store: LineStore) => Partial<LineStore> = () => ({}), sinceMs = 0) => {
  const memory = memoryLine(
    { messages: [], bytes: 0, limits: { kind: 'line' }, oldestKept: retention({ kind: 'line' }) },
    () => undefined,
  );
  const store: LineStore = { ...memory, ...change(memory) };
  const [seen, refused]: [string[], unknown[]] = [[], []];
  const origins = new Set<string>();
  let place: Place | undefined;
  const take = (head: Head, origin: Origin = 'live'): void => {
    const answer = between(place, head);
    if (answer.type === 'old') return;
    if (answer.type === 'hole' || answer.type === 'other') seen.push('-');
    origins.add(origin);
    const skip = answer.type === 'next' ? answer.skip : 0;
    for (let n = head.offset + skip; n < head.offset + head.count; n += 1) seen.push(`${head.gen}:${n}`);
    place = { ...head, offset: head.offset + head.count };
  };
  const reader = new LineReader<Head>({
    ...{ store, sinceMs, decode, place: () => place, receive: take, refused: (error) => refused.push(error) },
    join: (head) => (place = { ...head, offset: head.offset + head.count }),
  });
  return {
    ...{ reader, seen, refused, origins, take },
    receive: (...heads: readonly Head[]) => heads.forEach((head) => reader.receive(head, 100)),
    /** Stores messages, each after the last one. */
    append: (...heads: readonly Head[]) => {
      for (const head of heads) memory.append(head, encode(head));
    },
    [Symbol.dispose]: () => reader.close(),
  };
};

const advance = (ms: number) => jest.advanceTimersByTimeAsync(ms);
const records = (gen: number, from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, n) => `${gen}:${from + n}`);

describe('a reader of a line', () => {
  it('reads what is missing, and then what came live meanwhile', async () => {
    using test = start();
    test.append(message(1, 0, 5), message(1, 5, 8), message(1, 8, 10));
    test.receive(message(1, 0, 5), message(1, 8, 10), message(1, 10, 11));
    await test.reader.finish();
    expect(test.seen).toEqual(records(1, 0, 11));
  });

  it('waits for a store that lacks it, as long as an owner may take to send it again', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 3, 4));
    await advance(4_000);
    test.receive(message(1, 4, 5));
    expect(test.seen).toEqual(['1:0']);
    test.append(message(1, 0, 1), message(1, 1, 3));
    await advance(100);
    expect(test.seen).toEqual(records(1, 0, 5));
  });

  it('reports it as missing after 5 s, and waits again only after the store had what was missing', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 2, 3));
    await advance(4_999);
    expect(test.seen).toEqual(['1:0']);
    await advance(101);
    test.receive(message(1, 4, 5));
    await advance(1);
    expect(test.seen).toEqual(['1:0', '-', '1:2', '-', '1:4']);
    test.append(message(1, 0, 7));
    test.receive(message(1, 7, 8));
    await advance(1);
    test.receive(message(1, 9, 10));
    await advance(4_999);
    expect(test.seen.slice(5)).toEqual(['1:5', '1:6', '1:7']);
  });

  it('waits longer for a store that it cannot reach, and then as long as usual', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 3, 4));
    await advance(1_000);
    test.reader.connected(false);
    await advance(60_000);
    test.reader.connected(true);
    await advance(4_000);
    expect(test.seen).toEqual(['1:0']);
    test.append(message(1, 0, 4));
    await advance(100);
    expect(test.seen).toEqual(records(1, 0, 4));
    test.receive(message(1, 5, 6));
    test.reader.connected(false);
    test.reader.connected(true);
    await advance(4_900);
    expect(test.seen).toEqual(records(1, 0, 4));
    await advance(101);
    expect(test.seen.slice(4)).toEqual(['-', '1:5']);
  });

  it('receives what came live before what a later owner has stored, although the store lacks it', async () => {
    using test = start();
    test.append(message(2, 4, 6, { began: 4 }));
    test.receive(message(1, 0, 1), message(1, 2, 3), message(1, 3, 4));
    await test.reader.finish();
    expect(test.seen).toEqual(['1:0', '-', '1:2', '1:3', '2:4', '2:5']);
  });

  it('reports at once what the store has removed', async () => {
    using test = start();
    test.append(message(1, 5, 8));
    test.receive(message(1, 0, 2), message(1, 7, 8));
    await test.reader.catchUp();
    await test.reader.finish();
    expect(test.seen).toEqual(['1:0', '1:1', '-', ...records(1, 5, 8)]);
  });

  it('reads again from where the generation between two began, if that was before its own place', async () => {
    using test = start();
    const second = { began: 4 };
    test.append(message(1, 0, 4), message(2, 4, 5, second), message(2, 5, 9, second));
    test.receive(message(1, 0, 6), message(3, 9, 10, { began: 9 }));
    await test.reader.finish();
    expect(test.seen).toEqual([...records(1, 0, 6), ...records(2, 4, 9), '3:9']);
  });

  it.each<[string, Head, readonly string[]]>([
    ['is of its first generation', message(2, 4, 5, { line: 'b', began: 3 }), ['2:3', '2:4']],
    ['is of a later one', message(3, 4, 5, { line: 'b', began: 4 }), ['2:3', '3:4']],
  ])('reads another line from its beginning if a live message %s', async (_, live, more) => {
    using test = start();
    test.receive(message(1, 0, 3));
    test.append(message(2, 3, 4, { line: 'b', began: 3 }));
    test.receive(live);
    await test.reader.finish();
    expect(test.seen).toEqual([...records(1, 0, 3), '-', ...more]);
  });

  it('does not wait for what comes before the beginning of another line', () => {
    using test = start();
    test.receive(message(1, 0, 3), message(2, 0, 1, { line: 'b', after: 0 }));
    expect(test.seen).toEqual([...records(1, 0, 3), '-', '2:0']);
  });

  it('goes on waiting when a message comes again, late', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 3, 4), message(1, 1, 2), message(1, 0, 1));
    await advance(1_000);
    expect(test.seen).toEqual(['1:0']);
    test.append(message(1, 0, 1), message(1, 1, 2), message(1, 2, 3));
    await advance(100);
    expect(test.seen).toEqual(records(1, 0, 4));
  });

  it('does not wait for what another owner has never seen', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 3, 4));
    await advance(1_000);
    test.receive(message(2, 1, 2, { began: 1 }));
    await advance(100);
    expect(test.seen).toEqual(['1:0', '-', '1:3', '2:1']);
  });

  it('ends the wait when its process continues the line, also while it cannot reach the store', async () => {
    using _timers = fakeTimers();
    using test = start();
    test.receive(message(1, 0, 1), message(1, 3, 4));
    const finished = test.reader.finish();
    test.reader.connected(false);
    await advance(100);
    await finished;
    expect(test.seen).toEqual(['1:0', '-', '1:3']);
  });

  it('asks a store that refuses again, and says when it refuses and when it no longer does', async () => {
    using _timers = fakeTimers();
    let isAway = true;
    using test = start((store) => ({
      read: (from, signal) => {
        if (isAway) throw new Error('away');
        return store.read(from, signal);
      },
    }));
    test.append(message(1, 0, 3));
    test.receive(message(1, 0, 1), message(1, 3, 4));
    await advance(1_000);
    expect(test.refused).toContainEqual(new Error('away'));
    expect(test.refused).not.toContain(undefined);
    isAway = false;
    await advance(100);
    expect(test.seen).toEqual(records(1, 0, 4));
    await test.reader.catchUp();
    expect(test.refused.filter((error) => error === undefined)).toHaveLength(1);
  });

  it.each<[string, readonly Head[], readonly string[]]>([
    ['nothing that it has', [message(1, 0, 3)], []],
    ['the rest of a message', [message(1, 0, 5)], ['1:3', '1:4']],
    ['a later generation, although it has records which that one refused', [message(2, 2, 3, { began: 2 })], ['2:2']],
    ['a later generation without records', [message(1, 0, 3), message(2, 3, 3, { began: 3 })], []],
    ['all of another line of a later generation', [message(2, 0, 2, { line: 'b' })], ['-', '2:0', '2:1']],
    ['nothing of another line of an earlier generation', [message(0, 5, 9, { line: 'b' })], []],
  ])('catches up after a silence: %s', async (_, stored, more) => {
    using test = start();
    test.append(...stored);
    test.receive(message(1, 0, 3));
    await test.reader.catchUp();
    expect(test.seen).toEqual([...records(1, 0, 3), ...more]);
  });

  it('does not stop the live messages while a store that it asks for its end hangs', async () => {
    let answer = (): void => undefined;
    using test = start((store) => ({
      end: async () => {
        await new Promise<void>((resolve) => (answer = resolve));
        return store.end();
      },
    }));
    test.append(message(1, 0, 5));
    test.receive(message(1, 0, 1));
    const caughtUp = test.reader.catchUp();
    test.receive(message(1, 1, 2));
    expect(test.seen).toEqual(records(1, 0, 2));
    answer();
    await caughtUp;
    expect(test.seen).toEqual(records(1, 0, 5));
  });

  it('without a place, begins at the end, with no record', async () => {
    using test = start();
    test.append(message(1, 0, 3), message(1, 3, 5));
    await test.reader.finish();
    test.receive(message(1, 5, 6));
    expect(test.seen).toEqual(['1:5']);
  });

  it('does not leave the line that its process begins while it looks for the end', async () => {
    const test = start((store) => ({
      async *read(from, signal) {
        test.take(message(1, 0, 2, { line: 'b' }));
        yield* store.read(from, signal);
      },
    }));
    using _ended = test;
    test.append(message(2, 0, 3), message(2, 3, 5));
    await test.reader.catchUp();
    expect(test.seen).toEqual(['1:0', '1:1', '-', '2:3', '2:4']);
  });

  it.each<[string, number, readonly string[]]>([
    ['from so long ago, by the time of the first live message', 4, records(1, 6, 11)],
    ['all that the store has, if that is less', 60, records(1, 3, 11)],
    ['nothing that is older', 0.5, ['1:10']],
  ])('with `sinceMs` begins with the past: %s', async (_, sinceMs, expected) => {
    using test = start(undefined, sinceMs);
    for (let n = 3; n < 10; n += 1) test.append(message(1, n, n + 1));
    test.receive(message(1, 10, 11));
    await test.reader.finish();
    expect(test.seen).toEqual(expected);
    expect(test.origins).toEqual(new Set([...(expected.length > 1 ? ['past'] : []), 'live']));
  });

  it.each<[string, number, readonly string[]]>([
    ['its own clock, if nobody owns', 13, records(1, 8, 11)],
    ['the end of the line, if that clock is behind', -60_000, records(1, 4, 11)],
    ['that clock, although the line ended an hour ago', 3_600_000, ['1:10']],
  ])('counts `sinceMs` by %s', async (_, clock, expected) => {
    using _timers = fakeTimers();
    using test = start(undefined, 5);
    test.append(message(1, 0, 4));
    for (let n = 4; n < 10; n += 1) test.append(message(1, n, n + 1));
    jest.setSystemTime(clock);
    await test.reader.finish();
    test.receive(message(1, 10, 11));
    expect(test.seen).toEqual(expected);
  });

  it('begins live if the store refuses the past', async () => {
    using test = start(() => ({ since: () => Promise.reject(new Error('away')) }), 60_000);
    test.append(message(1, 0, 3));
    test.receive(message(1, 3, 4));
    await test.reader.finish();
    expect(test.seen).toEqual(['1:3']);
    expect(test.refused).toContainEqual(new Error('away'));
  });

  it('drops what comes while it reads, beyond 1 MiB, and reads it from the store', async () => {
    using test = start();
    test.append(message(1, 0, 3));
    test.receive(message(1, 0, 1), message(1, 2, 3));
    test.reader.receive(message(1, 3, 4), 1024 * 1024);
    test.reader.receive(message(1, 4, 5), 1);
    test.append(message(1, 3, 5));
    await test.reader.finish();
    test.receive(message(1, 5, 6));
    expect(test.seen).toEqual(records(1, 0, 6));
  });

  it('emits nothing after it was closed', async () => {
    using test = start();
    test.append(message(1, 0, 3));
    test.receive(message(1, 0, 1), message(1, 3, 4));
    test.reader.close();
    test.receive(message(1, 1, 2));
    await test.reader.finish();
    expect(test.seen).toEqual(['1:0']);
  });
});
