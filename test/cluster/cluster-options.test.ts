import { describe, expect, it } from '@jest/globals';
import { type ClusterOptions, createFeedCluster, memoryEngine } from '../../src/cluster/index.js';
import { resolveClusterOptions } from '../../src/cluster/cluster-options.js';

const options = (fields: Readonly<Record<string, unknown>> = {}): ClusterOptions => ({
  engine: memoryEngine(),
  account: 'main',
  baseUrl: 'https://feed.example',
  apiKey: 'key',
  ...fields,
});

describe('the options of a cluster', () => {
  it('have defaults', () => {
    expect(resolveClusterOptions(options())).toMatchObject({
      ...{ canOwn: true, leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600 },
      ...{ batchBytes: 262_144, handOverMs: 5_000 },
      replica: expect.stringMatching(/^[\w-]+$/),
      feed: { baseUrl: 'https://feed.example', idleTimeoutMs: 30_000 },
    });
  });

  it.each<[string, Readonly<Record<string, unknown>>, RegExp]>([
    ['engine', { engine: undefined }, /`engine` must be a ClusterEngine/],
    ['engine', { engine: {} }, /`engine` must be a ClusterEngine/],
    ['account', { account: undefined }, /`account` must be 1 to 80 letters/],
    ['account', { account: 'a b' }, /`account` must be 1 to 80 letters/],
    ['account', { account: 'a.b' }, /`account` must be 1 to 80 letters/],
    ['replica', { replica: '*' }, /`replica` must be 1 to 80 letters/],
    ['canOwn', { canOwn: 'yes' }, /`canOwn` must be true or false/],
    ['leaseMs', { leaseMs: 0 }, /`leaseMs` must be a number of ms above 0, got 0/],
    ['renewMs', { renewMs: 700 }, /`renewMs` must be at most a third of leaseMs \(2000\), got 700/],
    ['marginMs', { marginMs: 1_500 }, /`marginMs` must be less than leaseMs minus renewMs \(1500\), got 1500/],
    ['suspectMs', { suspectMs: 250 }, /`suspectMs` must be more than 250, and less than leaseMs \(2000\), got 250/],
    ['suspectMs', { suspectMs: 2_000 }, /`suspectMs` must be more than 250/],
    ['batchBytes', { batchBytes: 1_023 }, /`batchBytes` must be a whole number of bytes, 1024 or more/],
    ['handOverMs', { handOverMs: -1 }, /`handOverMs` must be a number of ms above 0/],
    ['receiveIn', { receiveIn: 'worker' }, /`receiveIn` must be 'main' in a cluster/],
    ['idleTimeoutMs', { idleTimeoutMs: -1 }, /`idleTimeoutMs` must be/],
    ['lease', { lease: 1 }, /`lease` must be left out: the options are engine, account/],
  ])('throw for a wrong %s', (name, fields, message) => {
    expect(() => createFeedCluster('market', options(fields))).toThrow(
      expect.objectContaining({ code: 'invalid-options', option: name, message: expect.stringMatching(message) }),
    );
  });

  it('throw for a feed that does not exist', () => {
    expect(() => createFeedCluster('other' as 'raw', options())).toThrow(/`feed` must be/);
  });
});
