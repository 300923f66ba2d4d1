import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { ClusterCommand } from '../../../src/cli/arguments/parsed-command.js';
import { exitCodeOf } from '../../../src/cli/cli-error.js';
import { cluster, statusText } from '../../../src/cli/commands/cluster.js';
import { run } from '../../../src/cli/run.js';
import { readKey, writeKey } from '../../../src/cluster/election/cluster-key.js';
import { type ClusterEngine, memoryEngine } from '../../../src/cluster/index.js';
import { writeControl } from '../../../src/cluster/messages/control.js';
import type { ClusterState } from '../../../src/cluster/operate.js';
import { subjectsOf } from '../../../src/cluster/subjects.js';
import { fencesOf } from '../../docs/fences.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { fakeContext } from '../support/fake-context.js';

const key: NonNullable<ClusterState['key']> = {
  ...{ v: 1, feed: 'raw', epoch: 1, gen: 7, owner: 'a-1', phase: 'open', since: 1_000 },
  ...{ credits: [], evictions: [], changes: [{ gen: 7, owner: 'a-1', since: 1_000, cause: 'first' }] },
};
const standbys = ['b-1', 'c-1'].map((replica, since) => ({ replica, since }));
const text = (fields: Partial<typeof key> = {}, others = standbys) =>
  statusText({ key: { ...key, ...fields }, standbys: others }, 31_000);

/** An address where no server listens. */
const closedPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

const outcome = async (args: string, env: Record<string, string> = {}) => {
  const context = fakeContext({ env });
  const code = await run(args.split(' '), context);
  return { code, error: context.stderr.text };
};

describe('cluster status', () => {
  it('shows the owner, its generation, the standbys and the evictions', () => {
    expect(text()).toEqual([
      'owner       a-1, for 30 s',
      'feed        raw',
      'generation  7',
      'standbys    b-1, c-1',
      'evictions   none in the last minute',
      'hand-overs  generation 7, 30 s ago: a-1 is the first owner',
    ]);
    expect(text({ evictions: [{ leftMs: 1 }] }, []).slice(3, 5)).toEqual([
      'standbys    none',
      'evictions   1 connection in the last minute',
    ]);
  });

  it('shows the last hand-overs, the newest first, with their causes', () => {
    const causes = ['released', 'first', 'hand-over', 'released', 'silence', 'resumed'] as const;
    const changes = causes.map((cause, n) => ({ gen: n + 2, owner: 'abcdef'.charAt(n), since: n * 1_000, cause }));
    expect(text({ changes }).slice(5)).toEqual([
      'hand-overs  generation 7, 26 s ago: f claimed it after cluster resume',
      '            generation 6, 27 s ago: e claimed it because d did not answer',
      '            generation 5, 28 s ago: d claimed it after c had released it',
      '            generation 4, 29 s ago: b handed over to c',
      '            generation 3, 30 s ago: b is the first owner',
      '            generation 2, 31 s ago: a claimed it after the previous owner had released it',
    ]);
  });

  it('is as docs/replicas.md shows it', () => {
    const now = 100_000_000;
    const [first, second, third] = ['app-1-0f52c1aa93be', 'app-2-77ab3e0c6d15', 'app-3-51c0a8e2f9d4'] as const;
    const changes = [
      { gen: 1, owner: first, since: now - 96_060_000, cause: 'first' },
      { gen: 2, owner: second, since: now - 7_800_000, cause: 'hand-over' },
      { gen: 3, owner: third, since: now - 725_000, cause: 'silence' },
    ] as const;
    const lines = statusText(
      {
        key: { ...key, feed: 'market', gen: 3, owner: third, since: now - 725_000, changes },
        standbys: [{ replica: first, since: 0 }],
      },
      now,
    );
    const shown = fencesOf('docs/replicas.md').filter(({ language }) => language === 'console');
    expect(shown.map(({ code }) => code.trimEnd())).toEqual([lines.join('\n')]);
  });

  it('shows a cluster without an open connection', () => {
    expect(text({ phase: 'opening' })[0]).toBe('owner       a-1, which opens a connection, for 30 s');
    expect(text({ phase: 'free' })[0]).toBe('owner       none: the last one gave the ownership away');
    expect(text({ phase: 'free', stop: { by: 'a-1', at: 0 } })[0]).toBe(
      'owner       none: the replicas may connect again',
    );
    expect(text({ phase: 'stopped', stop: { by: 'a-1', at: 21_000 } })[0]).toMatch(
      /none: another client replaced the connection, 10 s ago; cluster resume/,
    );
    expect(text({ phase: 'stopped' })[0]).toMatch(/replaced the connection; cluster resume/);
    expect(statusText({ key: undefined, standbys: [] }, 0)[0]).toMatch(/no replica has owned/);
  });

  it('shows no control characters of a forged name', () => {
    expect(text({ owner: '\x1b[31ma' })[0]).not.toContain('\x1b');
  });
});

describe('cluster', () => {
  const names = subjectsOf('main');
  const presence = writeControl({ replica: 'b-1', since: 1 });

  /** Runs an action in virtual time. Standbys report themselves while it waits for them. */
  const act = async (
    action: ClusterCommand['action'],
    engine: ClusterEngine,
    { hasStandby = false, options = {} }: { hasStandby?: boolean; options?: ClusterCommand['options'] } = {},
  ) => {
    using _timers = fakeTimers();
    const context = fakeContext();
    const address = 'nats://127.0.0.1:4222';
    let isClosed = false;
    const close = async () => {
      isClosed = true;
      return Promise.resolve();
    };
    const done = cluster(
      { command: 'cluster', action, options: { cluster: address, ...options } },
      context,
      async (given) => {
        expect(given).toBe(address);
        return Promise.resolve({ engine, close });
      },
    ).then(
      (code) => ({ code, message: '' }),
      (error: unknown) => ({ code: exitCodeOf(error), message: (error as Error).message }),
    );
    await jest.advanceTimersByTimeAsync(1_000);
    if (hasStandby) engine.publish(names.standby, presence);
    await jest.advanceTimersByTimeAsync(500);
    const { code, message } = await done;
    expect(isClosed).toBe(true);
    return { code, text: message || context.stdout.text };
  };

  const engineWith = async (fields: Partial<typeof key> = {}): Promise<ClusterEngine> => {
    const engine = memoryEngine();
    await engine.compareAndSet(names.key, writeKey({ ...key, ...fields }), undefined);
    return engine;
  };

  it('status shows the state of the account, also as JSON', async () => {
    const engine = await engineWith();
    const { code, text: shown } = await act('status', engine, { hasStandby: true });
    expect(code).toBe(0);
    expect(shown).toMatch(/^owner {7}a-1, for .*\nfeed {8}raw\ngeneration {2}7\nstandbys {4}b-1\n/);
    const json = await act('status', engine, { options: { json: true } });
    expect(JSON.parse(json.text)).toEqual({ key, standbys: [] });
    const other = await act('status', engine, { options: { account: 'other' } });
    expect(other.text).toBe('no replica has owned the connection of this account yet\n');
  });

  it('hand-over asks the owner, if another replica could own the connection', async () => {
    const engine = await engineWith();
    const hasStandby = true;
    expect(await act('hand-over', engine)).toEqual({
      code: 5,
      text: 'There is no other replica that could own the connection.',
    });
    expect(await act('hand-over', engine, { hasStandby })).toEqual({ code: 5, text: 'There is no owner.' });
    let requests = 0;
    const owner = engine.respond(names.handOver, (data) => {
      requests += 1;
      return data;
    });
    const subscription = owner.subscribe();
    expect(await act('hand-over', engine, { hasStandby })).toEqual({
      code: 0,
      text: 'The owner gives the ownership away.\n',
    });
    expect(requests).toBe(1);
    subscription.unsubscribe();
  });

  it('resume frees the key of a cluster that has stopped', async () => {
    expect(await act('resume', await engineWith())).toEqual({ code: 5, text: 'The cluster has not stopped.' });
    const engine = await engineWith({ owner: '', phase: 'stopped', stop: { by: 'a-1', at: 0 } });
    const { code, text: shown } = await act('resume', engine);
    expect([code, shown]).toEqual([0, 'The replicas may connect again. Restart those that have stopped.\n']);
    expect(readKey((await engine.read(names.key))!.value)).toMatchObject({ phase: 'free', gen: 8 });
  });
});

describe('the engine of a command', () => {
  it.each(['nats://user:password@', 'tls://', 'redis://user:password@', 'rediss://'])(
    'must answer: %s',
    async (begin) => {
      const address = `${begin}127.0.0.1:${await closedPort()}`;
      for (const args of [`cluster status --cluster ${address}`, `cluster resume --cluster ${address} --account a`]) {
        const { code, error } = await outcome(args);
        expect([code, error]).toEqual([
          7,
          expect.stringMatching(/^rx-trade-feed: The (NATS|Redis) server of --cluster did not accept/),
        ]);
        expect(error).not.toContain('password');
      }
      const env = { TRADE_FEED_BASE_URL: 'http://127.0.0.1:1', TRADE_FEED_API_KEY: 'key', TRADE_FEED_CLUSTER: address };
      expect((await outcome('listen', env)).code).toBe(7);
    },
  );

  it.each([
    ['cluster status', /The address of the engine is missing\. Set TRADE_FEED_CLUSTER or use --cluster URL\./],
    ['cluster stat --cluster nats://a', /There is no action stat\. The actions are status, hand-over and resume\./],
    ['cluster', /The action is missing/],
    ['listen --cluster http://a', /--cluster must be an address such as nats:\/\/127\.0\.0\.1:4222/],
    ['listen --cluster nats://a --account a.b', /--account must be 1 to 80 letters/],
    ['listen --account main', /--account applies only to a cluster/],
    ['listen --replica a', /--replica applies only to a cluster/],
  ])('%s is wrong usage', async (args, message) => {
    expect(await outcome(args)).toEqual({ code: 2, error: expect.stringMatching(message) });
  });
});
