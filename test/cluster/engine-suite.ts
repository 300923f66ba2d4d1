import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, take, toArray } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/index.js';

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

/** Tests that an engine works as `ClusterEngine` demands. `create` returns two connections of different replicas to the same engine. */
export const engineSuite = (name: string, create: () => readonly [ClusterEngine, ClusterEngine]): void => {
  describe(`the engine ${name}`, () => {
    it('creates a key once', async () => {
      const [one, other] = create();
      expect(await one.read('key')).toBeUndefined();
      const results = await Promise.all([one, other].map((each, n) => each.compareAndSet('key', `v${n}`, undefined)));
      expect(results.filter((revision) => revision !== undefined)).toHaveLength(1);
      const revision = results.find((each) => each !== undefined);
      const value = results[0] === undefined ? 'v1' : 'v0';
      for (const each of [one, other]) expect(await each.read('key')).toEqual({ value, revision });
    });

    it('replaces only the expected revision, and revisions grow', async () => {
      const [one, other] = create();
      const first = await one.compareAndSet('key', 'a', undefined);
      const second = await other.compareAndSet('key', 'b', first);
      expect(second).toBeGreaterThan(first!);
      expect(await one.compareAndSet('key', 'c', first)).toBeUndefined();
      expect(await one.compareAndSet('key', 'c', undefined)).toBeUndefined();
      expect(await one.read('key')).toEqual({ value: 'b', revision: second });
    });

    it('lets one of many writers win each round', async () => {
      const [one, other] = create();
      let revision = (await one.compareAndSet('key', '0', undefined))!;
      for (let round = 1; round <= 20; round += 1) {
        const writers = Array.from({ length: 8 }, (_, n) => (n % 2 === 0 ? one : other));
        const results = await Promise.all(writers.map((each) => each.compareAndSet('key', `${round}`, revision)));
        const winners = results.filter((each) => each !== undefined);
        expect(winners).toHaveLength(1);
        revision = winners[0]!;
      }
    });

    it('keeps keys apart', async () => {
      const [one] = create();
      await one.compareAndSet('key', 'a', undefined);
      expect(await one.read('other')).toBeUndefined();
      expect(await one.compareAndSet('other', 'b', undefined)).toBeDefined();
      expect(await one.read('key')).toMatchObject({ value: 'a' });
    });

    it('delivers messages to all subscribers of a subject, in order and unchanged', async () => {
      const [one, other] = create();
      const sent = [...Array.from({ length: 100 }, (_, n) => bytes(`${n}`)), Buffer.from([0, 255, 128, 10]), bytes('')];
      const received = [one, other].map((each) =>
        firstValueFrom(each.subscribe('subject').pipe(take(sent.length), toArray())),
      );
      // A subscription needs a round trip before it receives messages.
      await one.read('key');
      await other.read('key');
      one.publish('elsewhere', bytes('x'));
      for (const data of sent) one.publish('subject', data);
      for (const data of await Promise.all(received))
        expect(data.map((each) => Buffer.from(each).toString('hex'))).toEqual(sent.map((each) => each.toString('hex')));
    });

    it('delivers nothing after unsubscribing', async () => {
      const [one, other] = create();
      const received: string[] = [];
      other
        .subscribe('subject')
        .subscribe((data) => received.push(textOf(data)))
        .unsubscribe();
      const last = firstValueFrom(other.subscribe('subject'));
      await other.read('key');
      one.publish('subject', bytes('a'));
      expect(textOf(await last)).toBe('a');
      expect(received).toEqual([]);
    });

    it('answers requests while a replica responds', async () => {
      const [one, other] = create();
      expect(await other.request('owner', bytes('?'), 1_000)).toEqual({ type: 'no-responders' });
      const responding = one.respond('owner', (data) => bytes(`${textOf(data)}!`)).subscribe();
      await one.read('key');
      const reply = await other.request('owner', bytes('?'), 1_000);
      expect(reply.type === 'reply' && textOf(reply.data)).toBe('?!');
      responding.unsubscribe();
      await one.read('key');
      expect(await other.request('owner', bytes('?'), 1_000)).toEqual({ type: 'no-responders' });
    });

    it('says at once that it is connected', async () => {
      for (const each of create()) expect(await firstValueFrom(each.connected$)).toBe(true);
    });
  });
};
