/** @lane brokers */
import { expect } from '@jest/globals';
import { Kvm } from '@nats-io/kv';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import { natsEngine, type NatsEngineOptions } from '../../src/nats/index.js';
import { clusterEngineTests } from '../../src/testing/index.js';
import { becomes, describeInstalled, describeServer, startServer } from '../cluster/support/real-server.js';
import { startTestCluster } from '../cluster/support/replicas.js';
import { itInCi } from '../support/cases.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';

/** `limited` has no permission for the subjects that begin with `denied`. */
const config = `authorization {
  users = [
    { user: all, password: all }
    { user: limited, password: limited, permissions: { publish: ">", subscribe: { allow: ">", deny: "denied.>" } } }
  ]
}
no_auth_user: all`;

const bytes = (text: string): Buffer => Buffer.from(text);

describeServer(
  'nats',
  async (server, prefix) => {
    const connection = await server.nats();
    return [natsEngine(connection, { prefix }), natsEngine(connection, { prefix })];
  },
  (server) => {
    const open = async (options?: NatsEngineOptions, client?: NodeConnectionOptions) => {
      const connection = await server().nats(client);
      return { connection, engine: natsEngine(connection, options) };
    };

    itInCi('separates buckets', async () => {
      const [{ engine }, { engine: other }] = [await open(), await open({ bucket: 'other', replicas: 1 })];
      await engine.compareAndSet('bucket', 'one', undefined);
      expect(await other.read('bucket')).toBeUndefined();
    });

    itInCi.each<[string, object, string]>([
      ['a space in the prefix', { prefix: 'team a.' }, 'prefix'],
      ['the wildcard * in the prefix', { prefix: 'team.*.' }, 'prefix'],
      ['a dot at the begin of the prefix', { prefix: '.team' }, 'prefix'],
      ['a prefix of 81 characters', { prefix: 'a'.repeat(81) }, 'prefix'],
      ['a dot in the bucket', { bucket: 'team.a' }, 'bucket'],
      ['two replicas', { replicas: 2 }, 'replicas'],
      ['an unknown option', { buckets: 'a' }, 'buckets'],
    ])('throws invalid-options from the call for %s, before anything is sent', async (_, options, option) => {
      const { connection } = await open();
      const { outMsgs } = connection.stats();
      expect(() => natsEngine(connection, options)).toThrow(
        expect.objectContaining({ code: 'invalid-options', option }),
      );
      expect(connection.stats()).toMatchObject({ outMsgs });
    });

    itInCi(
      'throws invalid-options from the call for a connection with noEcho, and for the promise of a connection',
      async () => {
        const connection = await server().nats({ noEcho: true });
        expect(() => natsEngine(connection)).toThrow(
          expect.objectContaining({ code: 'invalid-options', option: 'noEcho' }),
        );
        expect(() => natsEngine(Promise.resolve(connection) as never)).toThrow(
          expect.objectContaining({ code: 'invalid-options', option: 'connection' }),
        );
      },
    );

    itInCi('passes all tests of an engine with the options of a client that change what it sends', async () => {
      const client = {
        ...{ inboxPrefix: '_INBOX_main', noAsyncTraces: true, pedantic: true, verbose: true },
        ignoreClusterUpdates: true,
      };
      const engines = [(await open({}, client)).engine, (await open({}, client)).engine] as const;
      await Promise.all(clusterEngineTests(() => engines).map(({ run }) => run()));
    });

    itInCi('is disconnected when it is created during an outage, and connected afterwards', async () => {
      const { connection, engine: before } = await open();
      await server().broker.kill();
      await becomes(before, false);
      const early = natsEngine(connection);
      expect(await firstValueFrom(early.connected$)).toBe(false);
      await waitFor(() => connection.info === undefined);
      const late = natsEngine(connection);
      expect(await firstValueFrom(late.connected$)).toBe(false);
      await server().broker.start();
      await Promise.all([early, late].map((engine) => becomes(engine, true)));
    });

    itInCi('answers no request while its connection is drained', async () => {
      const [{ connection, engine }, asking] = [await open(), await server().connect()];
      let asked = 0;
      engine
        .respond('drained', (data) => {
          asked += 1;
          void connection.drain();
          return data;
        })
        .subscribe({ error: () => undefined });
      await engine.request('drained.probe', bytes(''), 20_000);
      await expect(asking.request('drained', bytes('?'), 300)).rejects.toThrow('timeout');
      expect(asked).toBe(1);
    });

    itInCi('has no key after an operator deleted it, and creates it again', async () => {
      const { connection, engine } = await open();
      const before = (await engine.compareAndSet('deleted', 'one', undefined)) ?? 0;
      const bucket = await new Kvm(connection).open('rx-trade-feed');
      await bucket.delete('deleted');
      expect(await engine.read('deleted')).toBeUndefined();
      expect(await engine.compareAndSet('deleted', 'two', undefined)).toBeGreaterThan(before);
    });

    itInCi('rejects a request that has no answer in time', async () => {
      const { engine } = await open();
      const subscription = engine.subscribe('silent').subscribe();
      await engine.request('silent.probe', bytes(''), 20_000);
      await expect(engine.request('silent', bytes('?'), 1)).rejects.toThrow('timeout');
      subscription.unsubscribe();
    });

    itInCi('reports a subscription that the server refuses', async () => {
      const { engine } = await open({}, { user: 'limited', pass: 'limited' });
      await expect(firstValueFrom(engine.subscribe('denied.a'))).rejects.toThrow(/permission/i);
      await expect(firstValueFrom(engine.respond('denied.b', (data) => data))).rejects.toThrow(/permission/i);
    });

    itInCi('is disconnected after its connection was closed, and rejects calls', async () => {
      const { connection, engine } = await open();
      await engine.read('closed');
      await connection.close();
      expect(await lastValueFrom(engine.connected$)).toBe(false);
      engine.publish('closed', bytes('x'));
      await expect(engine.compareAndSet('closed', 'x', undefined)).rejects.toThrow();
      await expect(engine.read('closed')).rejects.toThrow();
      expect(await firstValueFrom(natsEngine(connection).connected$)).toBe(false);
    });
  },
  config,
);

describeInstalled('nats', 'a nats-server with a small max_payload', () => {
  itInCi('receives frames of any size, also after a reconnect to a server with another limit', async () => {
    await using server = await startServer('nats', 'max_payload: 8192');
    const { broker, configure } = server;
    const connections = [await server.nats(), await server.nats()] as const;
    const engines = connections.map((connection) => natsEngine(connection));
    await using test = await startTestCluster(engines[0]);
    const replicas = engines.map((engine, n) => test.start(`r${n}`, { engine }));
    for (const limit of [8_192, 2_048, 4_096]) {
      if (limit !== connections[0].info?.max_payload) {
        await broker.kill();
        configure(`max_payload: ${limit}`);
        await broker.start();
        for (const [n, connection] of connections.entries()) {
          await waitFor(() => connection.info?.max_payload === limit, { limitMs: startLimitMs });
          await becomes(engines[n]!, true);
        }
      }
      // The rest is for headers.
      expect(engines.map((engine) => engine.maxMessageBytes?.())).toEqual([limit - 256, limit - 256]);
      await test.owner(...replicas);
      // The first messages after a reconnect end the outage of the follower.
      const first = `first ${limit}`;
      await waitFor(() => {
        test.push(first);
        return replicas.every((replica) => replica.texts().includes(first));
      });
      const texts = [...Array.from({ length: 100 }, (_, n) => `${limit}.${n}`.padEnd(300)), `${limit}`.padEnd(30_000)];
      test.push(...texts);
      for (const replica of replicas) {
        await waitFor(() => replica.texts().includes(texts.at(-1)!));
        expect(replica.texts().filter((text) => !text.startsWith('first'))).toEqual(expect.arrayContaining([...texts]));
        const gaps = replica.events.flatMap((event) => (event.type === 'gap' ? [event.failure.code] : []));
        expect(gaps).not.toContain('cluster-behind');
        expect(replica.error()).toBeUndefined();
      }
      // The owner doesn't wait for messages that have become too large for the stream.
      await waitFor(() => replicas.every(({ cluster }) => cluster.status.refused === undefined));
    }
  });
});
