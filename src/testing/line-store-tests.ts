// The tests of a store for the messages of a line.
//
// In: two engines. Out: named tests, for any test runner.
// Never: a number that only one kind of store has.
import { deepEqual, equal, ok } from 'node:assert/strict';
import { filter, firstValueFrom, map } from 'rxjs';
import type { ClusterEngine } from '../cluster/engine.js';
import type { LineStore } from '../log/line-store.js';
import type { Head } from '../protocol/place.js';
import { tryCall } from '../protocol/type-guards.js';

/** Two connections to the same broker, and an account that no other test uses. */
interface Replicas {
  readonly one: ClusterEngine;
  readonly other: ClusterEngine;
  readonly account: string;
  /** Waits until the broker has handled what an engine has subscribed to. */
  readonly settled: (engine: ClusterEngine) => Promise<unknown>;
}

/** Two stores of one line, and the messages that arrive at the second replica. */
interface Stores {
  readonly one: LineStore;
  readonly other: LineStore;
  /** Subscribes the second replica, and returns what it receives. */
  readonly listen: () => Promise<readonly string[]>;
}

/** Returns the tests of an engine's stores. They pass if the engine has none. */
export const lineStoreTests = (): Readonly<Record<string, (replicas: Replicas) => Promise<void>>> =>
  Object.fromEntries(
    Object.entries(tests).map(([name, test]) => [
      name,
      async ({ one, other, account, settled }: Replicas) => {
        if (one.line === undefined || other.line === undefined) return;
        const spec = { kind: 'line', name: account, headOf } as const;
        const subject = `rtf.v2.${account}.feed`;
        const received: string[] = [];
        const subscriptions = [other.subscribe(subject).subscribe((bytes) => received.push(nameOf(bytes)))];
        const listen = async () => {
          await settled(other);
          return received;
        };
        try {
          await test({ one: one.line(spec), other: other.line(spec), listen });
        } finally {
          for (const each of subscriptions) each.unsubscribe();
        }
      },
    ]),
  );

export const headOf = (bytes: Uint8Array): Head | undefined =>
  tryCall(() => JSON.parse(Buffer.from(bytes).toString()) as Head);
export const bytesOf = (head: Head): Uint8Array => Buffer.from(JSON.stringify(head));

/** Names a message by its generation and its offset. */
export const nameOf = (bytes: Uint8Array): string => {
  const { gen = NaN, offset = NaN } = headOf(bytes) ?? {};
  return `${gen}.${offset}`;
};

/** Returns the heads of messages with `count` records each. */
export const headsOf = (gen: number, from: number, to: number, more: Partial<Head> = {}): readonly Head[] => {
  const { count = 1 } = more;
  const place = { line: 'line', gen, after: gen - 1, began: from, frames: 0, holes: 0, at: 0, complete: 0, count };
  return Array.from({ length: Math.ceil((to - from) / count) }, (_, n) => {
    const offset = from + n * count;
    return { ...place, at: 1_000 + 10 * offset, ...more, offset };
  });
};

/** Appends messages. Returns how many records are stored then, or why one was refused. */
export const append = async (store: LineStore, heads: readonly Head[], isAgain = false): Promise<number | string> => {
  const end = Math.max(...heads.map(({ offset, count }) => offset + count));
  const answers$ = store.stored$.pipe(map((stored) => ('refused' in stored ? stored.refused : stored.upTo)));
  const answer = firstValueFrom(answers$.pipe(filter((each) => typeof each === 'string' || each >= end)));
  for (const head of heads) store.append(head, bytesOf(head), isAgain ? 'store' : undefined);
  return answer;
};

// Created when it's needed: importing this file must not need a global.
const never = (): AbortSignal => new AbortController().signal;

export const read = async (
  store: LineStore,
  from: number,
  signal: AbortSignal = never(),
  stop?: () => void,
): Promise<readonly string[]> => {
  const names: string[] = [];
  for await (const bytes of store.read(from, signal)) {
    names.push(nameOf(bytes));
    if (names.length === 2) stop?.();
  }
  return names;
};

export const names = (gen: number, from: number, to: number, step = 1): readonly string[] =>
  Array.from({ length: Math.ceil((to - from) / step) }, (_, n) => `${gen}.${from + n * step}`);

const tests: Readonly<Record<string, (stores: Stores) => Promise<void>>> = {
  'has an empty store for a line': async ({ one }) => {
    equal(await one.end(), undefined);
    equal(await one.since(0), undefined);
    equal(await one.extent(), undefined);
    deepEqual(await read(one, 0), []);
  },

  'stores the messages of a line in order, for all replicas': async ({ one, other }) => {
    await one.end();
    // On a busy machine, more at once may take too long.
    for (const from of [0, 200, 400]) equal(await append(one, headsOf(1, from, from + 200, { began: 0 })), from + 200);
    deepEqual(await other.end(), headsOf(1, 599, 600, { began: 0 }).at(-1));
    deepEqual(await read(other, 0), names(1, 0, 600));
    deepEqual(await read(other, 590), names(1, 590, 600));
  },

  'reads from the message that contains an offset': async ({ one }) => {
    await one.end();
    equal(await append(one, headsOf(1, 100, 130, { count: 3 })), 130);
    deepEqual(await read(one, 106), names(1, 106, 130, 3));
    deepEqual(await read(one, 108), names(1, 106, 130, 3));
    deepEqual(await read(one, 0), names(1, 100, 130, 3));
    deepEqual(await read(one, 127), ['1.127']);
    deepEqual(await read(one, 130), []);
    deepEqual(await read(one, 10_000), []);
  },

  'reads over several generations, with the messages that have no records': async ({ one, other }) => {
    await one.end();
    const last = headsOf(1, 50, 51).map((head) => ({ ...head, began: 0, count: 0 }));
    equal(await append(one, [...headsOf(1, 0, 50), ...last]), 50);
    // The message before it says 50 as well.
    while ((await other.end())?.count !== 0) await Promise.resolve();
    equal(await append(other, headsOf(2, 50, 60)), 60);
    await one.end();
    equal(await append(one, headsOf(4, 60, 70, { after: 2 })), 70);
    const all = [...names(1, 0, 51), ...names(2, 50, 60), ...names(4, 60, 70)];
    for (const [from, skipped] of [
      ...[[0, 0] as const, [49, 49] as const, [50, 50] as const],
      ...[[51, 52] as const, [59, 60] as const, [60, 61] as const, [69, 70] as const],
    ])
      deepEqual(await read(other, from), all.slice(skipped));
  },

  'reads all parts of a record': async ({ one }) => {
    await one.end();
    const parts = headsOf(1, 0, 3).flatMap((head) => (head.offset === 1 ? [head, head, head] : [head]));
    equal(await append(one, parts), 3);
    deepEqual(await read(one, 1), ['1.1', '1.1', '1.1', '1.2']);
  },

  'refuses a replaced owner': async ({ one, other }) => {
    await one.end();
    await append(one, headsOf(1, 0, 10));
    deepEqual(await other.end(), headsOf(1, 0, 10).at(-1));
    equal(await append(other, headsOf(2, 10, 11)), 11);
    // So many at once that the sequence of one of them would fit.
    equal(await append(one, headsOf(1, 10, 40)), 'fenced');
    equal(await append(other, headsOf(2, 11, 20, { began: 10 })), 20);
    equal((await one.end())?.gen, 2);
    equal(await append(one, headsOf(1, 40, 50)), 'fenced');
    deepEqual(await read(other, 0), [...names(1, 0, 10), ...names(2, 10, 20)]);
  },

  'refuses all that follows a refused message, until the end is read': async ({ one, other }) => {
    await one.end();
    await other.end();
    await append(one, headsOf(1, 0, 5));
    equal(await append(other, headsOf(2, 0, 5)), 'fenced');
    const more: unknown[] = [];
    const subscription = other.stored$.subscribe((stored) => more.push(stored));
    for (const head of headsOf(2, 5, 50)) other.append(head, bytesOf(head));
    equal((await other.end())?.gen, 1);
    deepEqual(more, []);
    subscription.unsubscribe();
    equal(await append(other, headsOf(2, 5, 50)), 50);
    deepEqual(await read(one, 0), [...names(1, 0, 5), ...names(2, 5, 50)]);
  },

  'keeps its order when messages are sent again': async ({ one }) => {
    await one.end();
    await append(one, headsOf(1, 0, 20));
    await one.end();
    equal(await append(one, headsOf(1, 10, 30, { began: 0 }), true), 30);
    const offsets = (await read(one, 0)).map((name) => Number(name.slice(2)));
    deepEqual(
      offsets,
      [...offsets].sort((a, b) => a - b),
    );
    deepEqual(
      [...new Set(offsets)],
      Array.from({ length: 30 }, (_, n) => n),
    );
  },

  'delivers a message once, but not again': async ({ one, listen }) => {
    await one.end();
    const received = await listen();
    equal(await append(one, headsOf(1, 0, 100)), 100);
    equal(await append(one, headsOf(1, 100, 120, { began: 0 }), true), 120);
    equal(await append(one, headsOf(1, 120, 121, { began: 0 })), 121);
    while (received.at(-1) !== '1.120') await listen();
    deepEqual(received, [...names(1, 0, 100), '1.120']);
  },

  'delivers what is stored later, after those before it': async ({ one, listen }) => {
    await one.end();
    const received = await listen();
    equal(await append(one, headsOf(1, 0, 10)), 10);
    const later = headsOf(1, 10, 20, { began: 0 });
    for (const head of later) one.append(head, bytesOf(head), 'live');
    while (received.at(-1) !== '1.19') await listen();
    deepEqual((await one.end())?.offset, 9);
    equal(await append(one, later, true), 20);
    deepEqual(await read(one, 0), names(1, 0, 20));
    deepEqual(received, names(1, 0, 20));
  },

  'finds the first message since a time of the owner': async ({ one, other }) => {
    await one.end();
    await append(one, headsOf(1, 0, 300));
    await other.end();
    await append(other, headsOf(2, 300, 310));
    equal(await one.since(0), 0);
    equal(await one.since(1_500), 50);
    equal(await one.since(1_501), 51);
    equal(await one.since(4_000), 300);
    equal(await one.since(4_090), 309);
    equal(await one.since(4_091), undefined);
  },

  'says what it holds': async ({ one, other }) => {
    await one.end();
    const heads = headsOf(1, 50, 110, { count: 2 });
    await append(one, heads);
    const { bytes, ...extent } = (await other.extent()) ?? { bytes: 0 };
    deepEqual(extent, { from: 50, to: 110, durationMs: 580 });
    ok(bytes >= heads.reduce((sum, head) => sum + bytesOf(head).byteLength, 0));
  },

  'ends reading when it is aborted': async ({ one }) => {
    await one.end();
    await append(one, headsOf(1, 0, 200));
    for (const from of [0, 190]) {
      const controller = new AbortController();
      equal((await read(one, from, controller.signal, () => controller.abort())).length, 2);
    }
  },

  'begins another line, also with a lower generation': async ({ one, other }) => {
    await one.end();
    await append(one, headsOf(7, 0, 100));
    equal((await other.end())?.gen, 7);
    equal(await append(other, headsOf(3, 0, 10, { line: 'other', after: 0 })), 10);
    deepEqual(await read(one, 0), names(3, 0, 10));
    deepEqual(await read(one, 5), names(3, 5, 10));
    equal(await one.since(0), 0);
    deepEqual((await one.extent())?.to, 10);
    equal((await one.end())?.line, 'other');
  },
};
