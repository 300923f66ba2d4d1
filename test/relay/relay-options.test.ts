import { describe, expect, it } from '@jest/globals';
import { asyncScheduler, NEVER, queueScheduler } from 'rxjs';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { createRelay } from '../../src/relay/index.js';
import { resolveRelayOptions } from '../../src/relay/relay-options.js';

const defaults = {
  capacity: 50_000,
  capacityBytes: 32 * 1024 * 1024,
  maxReplayBytes: 8_388_608,
  batchMs: 16,
  heartbeatMs: 15_000,
  maxClients: 1_000,
  maxClientsPerUser: Infinity,
  maxAgeMs: Infinity,
  maxTopics: 100,
  lingerMs: 60_000,
  scheduler: asyncScheduler,
};

describe('resolveRelayOptions', () => {
  it('adds the defaults', () => {
    expect(resolveRelayOptions()).toEqual(defaults);
    expect(resolveRelayOptions({ capacity: undefined, batchMs: 0 })).toEqual({ ...defaults, batchMs: 0 });
  });

  it('uses the options, and does not change the object', () => {
    const options = Object.freeze({
      ...{ capacity: 1, capacityBytes: 1, maxReplayBytes: 1, batchMs: 0, heartbeatMs: 1, maxClients: 1, lingerMs: 0 },
      ...{ maxClientsPerUser: 1, maxAgeMs: 1, maxTopics: 1 },
      scheduler: queueScheduler,
    });
    expect(resolveRelayOptions(options)).toEqual(options);
  });
});

describe('createRelay', () => {
  it.each<[string, unknown]>([
    ...[0, -1, 1.5, NaN, Infinity, '5', null].map((value): [string, unknown] => ['capacity', value]),
    ...[0, -1, 1.5, '5'].map((value): [string, unknown] => ['capacityBytes', value]),
    ...[0, -1, 1.5, Infinity, '5'].map((value): [string, unknown] => ['maxReplayBytes', value]),
    ...[-1, NaN, '5'].map((value): [string, unknown] => ['batchMs', value]),
    ...[0, -1, NaN, '5'].map((value): [string, unknown] => ['heartbeatMs', value]),
    ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxClients', value]),
    ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxClientsPerUser', value]),
    ...[0, -1, NaN, '5'].map((value): [string, unknown] => ['maxAgeMs', value]),
    ...[0, 1.5, '5'].map((value): [string, unknown] => ['maxTopics', value]),
    ...[-1, NaN, '5'].map((value): [string, unknown] => ['lingerMs', value]),
    ['scheduler', {}],
    ['batch', 1],
  ])('refuses %s: %p at once, and names the option', (name, value) => {
    const make = () => createRelay(NEVER, { [name]: value });
    expect(make).toThrow(TradeFeedError);
    expect(make).toThrow(
      expect.objectContaining({ code: 'invalid-options', message: expect.stringContaining(`\`${name}\``) }),
    );
  });
});
