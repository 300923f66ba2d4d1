import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { firstValueFrom, ignoreElements, interval, merge, take, tap, toArray } from 'rxjs';
import type { ClusterEngine } from '../cluster/engine.js';
import { lineStoreTests } from './line-store-tests.js';

/** A test of an engine, for any test runner. */
export interface ClusterEngineTest {
  readonly name: string;
  /** Resolves if the engine passes; rejects with an `AssertionError` if not. */
  readonly run: () => Promise<void>;
}

/** Two connections to the same broker, like those of two replicas, and names that no other test uses. */
interface Replicas {
  readonly one: ClusterEngine;
  readonly other: ClusterEngine;
  readonly key: string;
  readonly subject: string;
  readonly account: string;
  /** Waits until the broker has handled what an engine has subscribed to. */
  readonly settled: (engine: ClusterEngine) => Promise<void>;
}

/**
 * Returns the tests that an engine of a cluster must pass, as `memoryEngine`, `natsEngine` and `redisEngine` do. Run
 * them with any test runner, or with none.
 *
 * @param connect - returns two engines with separate connections to the same broker. Called once for each test
 * @example
 * ```ts
 * import { test } from 'node:test';
 * import { memoryEngine } from 'rx-trade-feed/cluster';
 * import { clusterEngineTests } from 'rx-trade-feed/testing';
 *
 * const engine = memoryEngine();
 * for (const { name, run } of clusterEngineTests(() => [engine, engine]))
 *   test(name, run);
 * ```
 */
export const clusterEngineTests = (
  connect: () => readonly [ClusterEngine, ClusterEngine] | Promise<readonly [ClusterEngine, ClusterEngine]>,
): readonly ClusterEngineTest[] =>
  [...Object.entries(tests), ...Object.entries(lineStoreTests())].map(([name, test]) => ({
    name,
    run: async () => {
      const [one, other] = await connect();
      const id = randomUUID();
      const subject = `test.${id}.subject`;
      await test({
        ...{ one, other, key: `test.${id}`, subject, account: `test-${id}` },
        settled: (engine) => settled(engine, subject),
      });
    },
  }));

/** How long an answer may take, in ms. Generous, because it only ends tests that fail anyway. */
const timeoutMs = 20_000;

/** Waits until the broker has handled everything that an engine has subscribed to or unsubscribed from. */
const settled = async (engine: ClusterEngine, subject: string): Promise<void> => {
  const probe = `${subject}.probe.${randomUUID()}`;
  const send$ = interval(5).pipe(
    tap(() => engine.publish(probe, bytes('?'))),
    ignoreElements(),
  );
  await firstValueFrom(merge(engine.subscribe(probe), send$));
};

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();
const hexOf = (data: Uint8Array): string => Buffer.from(data).toString('hex');

const tests: Readonly<Record<string, (replicas: Replicas) => Promise<void>>> = {
  'is connected': async ({ one, other }) => {
    for (const each of [one, other]) equal(await firstValueFrom(each.connected$), true);
  },

  'creates a key once': async ({ one, other, key }) => {
    equal(await one.read(key), undefined);
    const results = await Promise.all([one, other].map((each, n) => each.compareAndSet(key, `v${n}`, undefined)));
    const revision = results.find((each) => each !== undefined);
    equal(results.filter((each) => each !== undefined).length, 1);
    const value = `v${results.findIndex((each) => each !== undefined)}`;
    for (const each of [one, other]) deepEqual(await each.read(key), { value, revision });
  },

  'replaces only the expected revision, and revisions grow': async ({ one, other, key }) => {
    const first = Number(await one.compareAndSet(key, 'a', undefined));
    const second = Number(await other.compareAndSet(key, 'b', first));
    ok(second > first);
    equal(await one.compareAndSet(key, 'c', first), undefined);
    equal(await one.compareAndSet(key, 'c', undefined), undefined);
    deepEqual(await one.read(key), { value: 'b', revision: second });
  },

  'lets one of many writers win each round': async ({ one, other, key }) => {
    let revision = await one.compareAndSet(key, '0', undefined);
    for (let round = 1; round <= 20; round += 1) {
      const expected = revision;
      const writers = [one, other, one, other, one, other, one, other];
      const results = await Promise.all(writers.map((each) => each.compareAndSet(key, `${round}`, expected)));
      const winners = results.filter((each) => each !== undefined);
      equal(winners.length, 1);
      [revision] = winners;
    }
  },

  'keeps keys apart': async ({ one, key }) => {
    await one.compareAndSet(key, 'a', undefined);
    equal(await one.read(`${key}.b`), undefined);
    ok((await one.compareAndSet(`${key}.b`, 'b', undefined)) !== undefined);
    equal((await one.read(key))?.value, 'a');
  },

  'delivers messages to all subscribers of a subject, in order and unchanged': async ({ one, other, subject }) => {
    const numbers = Array.from({ length: 100 }, (_, n) => bytes(`${n}`));
    const large = Array.from({ length: 20 }, (_, n) => Buffer.alloc(256 * 1024, n));
    const sent = [...numbers, Buffer.from([0, 255, 128, 10]), bytes(''), ...large, bytes('end')];
    const received = [one, other].map((each) =>
      firstValueFrom(each.subscribe(subject).pipe(take(sent.length), toArray())),
    );
    for (const each of [one, other]) await settled(each, subject);
    one.publish(`${subject}.other`, bytes('x'));
    for (const data of sent) one.publish(subject, data);
    for (const data of await Promise.all(received)) deepEqual(data.map(hexOf), sent.map(hexOf));
  },

  'delivers to the other subscribers when one has unsubscribed': async ({ one, other, subject }) => {
    const first = firstValueFrom(other.subscribe(subject));
    const both = firstValueFrom(other.subscribe(subject).pipe(take(2), toArray()));
    await settled(other, subject);
    one.publish(subject, bytes('a'));
    equal(textOf(await first), 'a');
    one.publish(subject, bytes('b'));
    deepEqual((await both).map(textOf), ['a', 'b']);
  },

  'subscribes again after all have unsubscribed': async ({ one, other, subject }) => {
    other.subscribe(subject).subscribe().unsubscribe();
    const next = firstValueFrom(other.subscribe(subject));
    await settled(other, subject);
    one.publish(subject, bytes('a'));
    equal(textOf(await next), 'a');
  },

  'answers requests while a replica responds': async ({ one, other, subject }) => {
    deepEqual(await other.request(subject, bytes('?'), timeoutMs), { type: 'no-responders' });
    const responding = one.respond(subject, (data) => bytes(`${textOf(data)}!`)).subscribe();
    await settled(one, subject);
    const replies = await Promise.all(['a', 'b'].map((text) => other.request(subject, bytes(text), timeoutMs)));
    deepEqual(
      replies.map((reply) => reply.type === 'reply' && textOf(reply.data)),
      ['a!', 'b!'],
    );
    responding.unsubscribe();
    await settled(one, subject);
    deepEqual(await other.request(subject, bytes('?'), timeoutMs), { type: 'no-responders' });
  },
};
