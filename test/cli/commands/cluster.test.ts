import { describe, expect, it } from '@jest/globals';
import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { statusText } from '../../../src/cli/commands/cluster.js';
import { run } from '../../../src/cli/run.js';
import type { ClusterState } from '../../../src/cluster/operate.js';
import { fakeContext } from '../support/fake-context.js';

const key: NonNullable<ClusterState['key']> = {
  ...{ v: 1, feed: 'raw', epoch: 1, gen: 7, owner: 'a-1', phase: 'open', since: 1_000 },
  ...{ credits: [], evictions: [] },
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
    ]);
    expect(text({ evictions: [{ leftMs: 1 }] }, []).slice(-2)).toEqual([
      'standbys    none',
      'evictions   1 connection in the last minute',
    ]);
  });

  it('shows a cluster without an open connection', () => {
    expect(text({ phase: 'opening' })[0]).toBe('owner       a-1, which opens a connection, for 30 s');
    expect(text({ phase: 'free' })[0]).toBe('owner       none: the last one gave the ownership away');
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

describe('the engine of a command', () => {
  it.each(['nats', 'redis'])('must answer: %s', async (protocol) => {
    const address = `${protocol}://user:password@127.0.0.1:${await closedPort()}`;
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
  });

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
