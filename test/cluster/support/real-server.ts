import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, firstValueFrom } from 'rxjs';
import type { ClusterEngine } from '../../../src/cluster/engine.js';
import { clusterEngineTests } from '../../../src/testing/index.js';
import { type BrokerKind, connectEngine, type RunningBroker, startBroker } from '../../peers/brokers.mjs';
import { natsServer, redisServer } from '../../peers/packages.mjs';
import { waitFor } from '../../support/wait-for.js';

/** A real server, for the tests of one file. */
export interface RealServer {
  readonly broker: () => RunningBroker;
  /** Returns an engine with separate connections, which are open, and are closed after the tests. */
  readonly connect: () => Promise<ClusterEngine>;
  /** Adds a function that is called before the server ends. */
  readonly defer: (close: () => unknown) => void;
}

const programs: Readonly<Record<BrokerKind, string>> = { nats: natsServer, redis: redisServer };

/** Describes tests that need a server. Skips them, with the reason in the name, if it is not installed. */
export const describeInstalled = (kind: BrokerKind, name: string, tests: () => void): void => {
  const program = `${kind}-server`;
  if (existsSync(programs[kind])) describe(name, tests);
  else describe.skip(`${name}: ${program} is not installed (apt-get install ${program})`, tests);
};

/** A configuration file: the name of the option, and the text. */
interface Config {
  readonly option: string;
  readonly text: string;
}

/** Describes tests with a server that starts once, on a free port. The tests that each engine must pass come first. */
export const describeServer = (kind: BrokerKind, tests: (server: RealServer) => void, config?: Config): void => {
  describeInstalled(kind, `a real ${kind}-server`, () => {
    const closing: (() => unknown)[] = [];
    let folder: string;
    let broker: RunningBroker;
    let engines: readonly [ClusterEngine, ClusterEngine];

    const connect = async (): Promise<ClusterEngine> => {
      const { engine, close } = await connectEngine(kind, broker.port);
      closing.push(close);
      await firstValueFrom(engine.connected$.pipe(filter(Boolean)));
      return engine;
    };

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-server-'));
      const file = join(folder, 'server.conf');
      if (config) writeFileSync(file, config.text);
      broker = await startBroker(kind, folder, config ? [config.option, file] : []);
      engines = [await connect(), await connect()];
    });
    afterAll(async () => {
      for (const close of closing.reverse()) await close();
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    });

    it.each(clusterEngineTests(() => engines).map(({ name, run }) => [name, run] as const))('%s', (_, run) => run());

    const becomes = (expected: boolean) =>
      firstValueFrom(engines[0].connected$.pipe(filter((isConnected) => isConnected === expected)));
    /** Repeats a call until it succeeds, as a replica does. */
    const eventually = <T>(call: () => Promise<T>): Promise<readonly [T]> =>
      waitFor(() =>
        call().then(
          (value) => [value] as const,
          () => undefined,
        ),
      );

    it('is away after a kill, publishes nothing meanwhile, and is back with its key after a restart', async () => {
      const [one, other] = engines;
      const id = `restart.${randomUUID()}`;
      const revision = await one.compareAndSet(id, 'before', undefined);
      const texts: string[] = [];
      const subscription = other.subscribe(id).subscribe((data) => texts.push(Buffer.from(data).toString()));
      await broker.kill();
      await becomes(false);
      one.publish(id, Buffer.from('lost'));
      await expect(one.request('away', Buffer.from('?'), 50)).rejects.toThrow();
      await broker.start();
      await becomes(true);
      expect(await eventually(() => one.read(id))).toEqual([{ value: 'before', revision }]);
      // The other connection may need longer.
      await waitFor(() => {
        one.publish(id, Buffer.from('after'));
        return texts.length > 0;
      });
      subscription.unsubscribe();
      expect(texts[0]).toBe('after');
      const [next] = await eventually(() => one.compareAndSet(id, 'after', revision));
      expect(next).toBeGreaterThan(revision as number);
    }, 60_000);

    it('has no key after its data was deleted, and creates it again', async () => {
      const [one] = engines;
      const id = `wiped.${randomUUID()}`;
      await one.compareAndSet(id, 'before', undefined);
      await broker.kill();
      await becomes(false);
      broker.wipe();
      await broker.start();
      await becomes(true);
      expect(await eventually(() => one.read(id))).toEqual([undefined]);
      const [revision] = await eventually(() => one.compareAndSet(id, 'after', undefined));
      expect(await one.read(id)).toEqual({ value: 'after', revision });
    }, 60_000);

    tests({ broker: () => broker, connect, defer: (close) => closing.push(close) });
  });
};
