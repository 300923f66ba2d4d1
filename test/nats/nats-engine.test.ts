import { Kvm } from '@nats-io/kv';
import { connect } from '@nats-io/transport-node';
import { expect, it } from '@jest/globals';
import { filter, firstValueFrom } from 'rxjs';
import type { ClusterEngine } from '../../src/cluster/engine/cluster-engine.js';
import { natsEngine, type NatsEngineOptions } from '../../src/nats/index.js';
import { describeServer } from '../cluster/support/real-server.js';
import { waitFor } from '../support/wait-for.js';

/** `limited` has no permission for the subjects that begin with `denied`. */
const config = {
  option: '-c',
  text: `authorization {
    users = [
      { user: all, password: all }
      { user: limited, password: limited, permissions: { publish: ">", subscribe: { allow: ">", deny: "denied.>" } } }
    ]
  }
  no_auth_user: all`,
};

const becomes = (engine: ClusterEngine, expected: boolean) =>
  firstValueFrom(engine.connected$.pipe(filter((isConnected) => isConnected === expected)));

const bytes = (text: string): Buffer => Buffer.from(text);
const textOf = (data: Uint8Array): string => Buffer.from(data).toString();

describeServer(
  'nats',
  ({ broker, connect: connectEngine, defer }) => {
    const open = async (options?: NatsEngineOptions, user = 'all') => {
      const connection = await connect({ servers: `127.0.0.1:${broker().port}`, user, pass: user });
      defer(() => connection.close());
      return { connection, engine: natsEngine(connection, options) };
    };

    it('puts the prefix before keys and subjects, and separates buckets', async () => {
      const engine = await connectEngine();
      const { engine: prefixed } = await open({ prefix: 'team.' });
      const { engine: other } = await open({ bucket: 'other', replicas: 1 });
      await prefixed.compareAndSet('key', 'one', undefined);
      expect(await engine.read('key')).toBeUndefined();
      expect(await engine.read('team.key')).toMatchObject({ value: 'one' });
      expect(await other.read('team.key')).toBeUndefined();
      const received = firstValueFrom(prefixed.subscribe('subject'));
      // A request arrives after the subscription.
      await prefixed.request('subject.probe', bytes(''), 20_000);
      engine.publish('subject', bytes('without'));
      engine.publish('team.subject', bytes('with'));
      expect(textOf(await received)).toBe('with');
    });

    it('has no key after an operator deleted it, and creates it again', async () => {
      const { connection, engine } = await open();
      const before = (await engine.compareAndSet('deleted', 'one', undefined)) ?? 0;
      const bucket = await new Kvm(connection).open('rx-trade-feed');
      await bucket.delete('deleted');
      expect(await engine.read('deleted')).toBeUndefined();
      expect(await engine.compareAndSet('deleted', 'two', undefined)).toBeGreaterThan(before);
    });

    it('rejects a request that has no answer in time', async () => {
      const { engine } = await open();
      const subscription = engine.subscribe('silent').subscribe();
      await engine.request('silent.probe', bytes(''), 20_000);
      await expect(engine.request('silent', bytes('?'), 1)).rejects.toThrow('timeout');
      subscription.unsubscribe();
    });

    it('reports a subscription that the server refuses', async () => {
      const { engine } = await open({}, 'limited');
      await expect(firstValueFrom(engine.subscribe('denied.a'))).rejects.toThrow(/permission/i);
      await expect(firstValueFrom(engine.respond('denied.b', (data) => data))).rejects.toThrow(/permission/i);
    });

    it('is away after a kill, publishes nothing meanwhile, and is back with its key after a restart', async () => {
      const { connection, engine } = await open();
      const revision = await engine.compareAndSet('restart', 'before', undefined);
      const received = firstValueFrom(engine.subscribe('restart'));
      await broker().kill();
      await becomes(engine, false);
      const { outMsgs } = connection.stats();
      engine.publish('restart', bytes('lost'));
      expect(connection.stats()).toMatchObject({ outMsgs });
      await broker().start();
      await becomes(engine, true);
      engine.publish('restart', bytes('after'));
      expect(textOf(await received)).toBe('after');
      // The server accepts connections before it has read its data.
      const stored = await waitFor(() => engine.read('restart').catch(() => undefined));
      expect(stored).toEqual({ value: 'before', revision });
    });

    it('is away after its connection was closed, and rejects', async () => {
      const { connection, engine } = await open();
      await engine.read('closed');
      await connection.close();
      await becomes(engine, false);
      engine.publish('closed', bytes('x'));
      await expect(engine.compareAndSet('closed', 'x', undefined)).rejects.toThrow();
      await expect(engine.read('closed')).rejects.toThrow();
      expect(await firstValueFrom(natsEngine(connection).connected$)).toBe(false);
    });
  },
  config,
);
