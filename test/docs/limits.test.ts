import { describe, expect, it } from '@jest/globals';
import { serviceDefaults } from 'rx-trade-feed/testing';
import { timing } from '../../src/cluster/election/turn.js';
import { boundDefaults } from '../../src/operators/bounded/bounds.js';
import { windowDefaults } from '../../src/operators/window/window-options.js';
import { resolveOptions } from '../../src/options.js';
import { defaultBackoff } from '../../src/reconnect/policy.js';
import { resolveRelayOptions } from '../../src/relay/relay-options.js';
import { filesIn, read } from './fences.js';
import { tablesUnder } from './tables.js';

const rows = (tablesUnder('docs/limits.md', 'Limits and defaults')[0] ?? []).map(
  ({ part = '', name = '', value = '', unit = '', from = '' }) => ({ part, name, value, unit, from }),
);

/** The files with the limits of each part of the table. */
const files: Readonly<Record<string, readonly string[]>> = {
  tradeFeed$: [
    'options.ts',
    'worker/cloneable-settings.ts',
    'diagnostics/warn-without-connection.ts',
    'protocol/rules.ts',
  ],
  backoff: ['reconnect/policy.ts'],
  connection: [
    ...['liveness', 'handshake', 'request-ticket', 'open-tunnel', 'renew-idle', 'spare-socket'],
    ...['resuming-connect', 'lease'],
  ].map((name) => `transport/${name}.ts`),
  worker: ['worker/hand-over.ts', 'worker/inside/run-feed.ts', 'worker/worker.ts'],
  'bounded operators': ['bounded/bounds.ts', 'bounded/drop-tally.ts', 'merge-map-bounded.ts'].map(
    (n) => `operators/${n}`,
  ),
  windows: ['operators/window/window-options.ts', 'operators/window/time-window-collector.ts'],
  conflate: ['operators/conflate.ts'],
  distinctRecent: ['operators/distinct-recent.ts'],
  shareFeed: ['operators/share-feed.ts'],
  feedStats: ['operators/feed-stats.ts'],
  freshness: ['operators/freshness.ts', 'operators/timing/recent-intervals.ts'],
  decodeWith: ['operators/decode/decode-failure.ts', 'operators/decode/stack-overflow.ts'],
  recordTo: ['operators/node/record-to.ts', 'operators/node/recording/recording-writer.ts'],
  replay$: ['operators/node/replay.ts', 'operators/node/recording/recording-reader.ts'],
  createRelay: [
    ...['relay-options', 'relay-handler', 'retry-after', 'client-messages', 'http-response', 'event-log'],
    ...['start-position', 'relay'],
  ].map((name) => `relay/${name}.ts`),
  select: ['relay/topic.ts', 'relay/topic-input.ts'],
  relayFeed$: ['relay-feed-options.ts', 'clock-shift.ts', 'server-sent-events.ts'].map((name) => `browser/${name}`),
  Angular: ['angular/signal-options.ts'],
  NestJS: ['nestjs/health-indicator.ts', 'nestjs/sse-response.ts'],
  createFeedCluster: ['cluster/cluster-options.ts'],
  election: ['cluster/election/turn.ts', 'cluster/election/cluster-key.ts'],
  replica: ['cluster/follower/follower.ts', 'cluster/feed-channel.ts', 'cluster/engine-calls.ts'],
  'local service': ['testing/options/service-settings.ts'],
  command: [
    ...['commands/demo-service', 'serve/line-source', 'doctor/service-checks', 'doctor/network-checks'],
    ...['doctor/tls-check', 'top/top-views'],
  ].map((name) => `cli/${name}.ts`),
};

/** Constants that a user cannot notice, by file: sizes of the first buffer, parts of a format, codes. */
const internal: Readonly<Record<string, readonly string[]>> = {
  'cluster/messages/layout.ts': ['version', 'frameHeadBytes', 'partHeadBytes'],
  'cluster/messages/open-batch.ts': ['chunkBytes'],
  'frames/frame-memory.ts': ['CHUNK_BYTES'],
  'frames/received-frame.ts': ['STRING_BELOW_BYTES'],
  'operators/bounded/ring.ts': ['firstSlots'],
  'operators/node/recording/claim-recording.ts': ['maxAttempts'],
  'operators/node/recording/line-buffer.ts': ['initialBytes', 'maxReusedBytes'],
  'operators/node/recording/open-recording.ts': ['blockBytes'],
  'protocol/feed-position.ts': ['ownerLength'],
  'testing/connection/outbox.ts': ['burstBytes'],
  'testing/connection/push-only-socket.ts': ['messageTooBig'],
  'testing/connection/upgrade.ts': ['maxMessageBytes'],
  'testing/engine/cluster-engine-tests.ts': ['timeoutMs'],
  'testing/options/service-settings.ts': ['longestMs'],
  'testing/sources/paced.ts': ['shortestTickMs'],
  'transport/frame-socket.ts': ['LINE_FEED'],
  'transport/open-connection.ts': ['NO_STATUS'],
  'transport/read-buffer.ts': ['FIRST_BYTES', 'SIZE_BYTES', 'LEAST_FREE_BYTES'],
  'transport/read-frames.ts': ['PIECE_BYTES'],
  'transport/renew-idle.ts': ['ACCEPTED_MS'],
  'worker/block.ts': ['rowBytes'],
  'worker/open-block.ts': ['ROW_ALIGNMENT', 'firstRows', 'firstBytes'],
  'worker/progress.ts': ['handled', 'isAwaited'],
  'worker/thrown-values.ts': ['maxStored'],
};

/** A number in the source: `10_000`, `64 * 1024`, `2 ** 31 - 1`. */
const number = /(?:[\d_]+(?: (?:\*\*|\*|-) [\d_]+)*|Infinity)/.source;

const valueOf = (text: string): number => {
  const [minuend = '', subtrahend = '0'] = text.replaceAll('_', '').split(' - ');
  const powers = minuend.split(' * ').map((factor) => factor.split(' ** ').map(Number));
  return (
    powers.map(([base = 0, exponent = 1]) => base ** exponent).reduce((one, other) => one * other) - Number(subtrahend)
  );
};

/** Returns the values that files give to a name: a constant, a default of an option. */
const valuesIn = (paths: readonly string[], name: string): readonly number[] => {
  const assignment = new RegExp(`\\b${name}(?:: number)?(?: = |: )(${number})(?=[,;\\s}])`, 'g');
  const code = (path: string): string => read(`src/${path}`).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
  const found = paths.flatMap((path) => [...code(path).matchAll(assignment)]);
  return [...new Set(found.map(([, value = '']) => valueOf(value)))];
};

const shown = (value: string): number => Number(value.replaceAll(' ', ''));

const ofService = rows.filter(({ part }) => part === 'service');
const ofLibrary = rows.filter(({ part }) => part !== 'service');

describe('the table of limits', () => {
  it.each(ofLibrary)('has the value of $part $name in the source', ({ part, name, value }) => {
    expect(valuesIn(files[part] ?? [], name)).toEqual([shown(value)]);
  });

  it('has each part, and each name of a part once', () => {
    expect([...new Set(ofLibrary.map(({ part }) => part))]).toEqual(Object.keys(files));
    const keys = rows.map(({ part, name }) => `${part} ${name}`);
    expect(keys).toEqual([...new Set(keys)]);
  });

  it('has the unit of each name, and says where each is from', () => {
    for (const { name, unit, from } of ofLibrary) {
      expect([name, unit === 'ms']).toEqual([name, /(Ms|_MS|closeTimeout)$/.test(name)]);
      if (/(Bytes|_BYTES)$/.test(name)) expect([name, unit]).toEqual([name, 'bytes']);
      expect(from).toMatch(/^(option|constant)\b/);
    }
  });

  it('has the limits of the contract', () => {
    const [contract = []] = tablesUnder('docs/service-contract.md', '8. Limits');
    for (const { name, value, unit, from } of ofService) {
      const limit = contract.find((row) => row['Limit'] === name)?.['Value'];
      expect([name, limit]).toEqual([name, expect.stringMatching(new RegExp(`\\b${value}\\b`))]);
      if (['ms', 's'].includes(unit)) expect(limit).toMatch(new RegExp(`\\b${value} ${unit}`));
      expect(from).toBe('contract, section 8');
    }
  });

  const defaults: readonly (readonly [part: string, object: object])[] = [
    ['tradeFeed$', resolveOptions()],
    ['backoff', defaultBackoff],
    ['bounded operators', boundDefaults],
    ['windows', windowDefaults],
    ['createRelay', resolveRelayOptions()],
    ['election', timing],
    ['local service', serviceDefaults.limits],
  ];

  it.each(defaults)('has all defaults of %s', (part, object) => {
    const named = Object.fromEntries(ofLibrary.filter((row) => row.part === part).map((row) => [row.name, row.value]));
    const numbers = Object.entries(object).filter(([, value]) => typeof value === 'number');
    expect(numbers).not.toHaveLength(0);
    for (const [name, value] of numbers) expect([name, shown(named[name] ?? 'missing')]).toEqual([name, value]);
  });

  it('has every constant of the library, except internal ones', () => {
    const constant = new RegExp(`^(?:export )?const (\\w+)(?:: number)? = ${number};`, 'gm');
    const paths = filesIn('src', '.ts').map((path) => path.replace(/^src\//, ''));
    const found = paths
      .filter((path) => !path.startsWith('cli/'))
      .flatMap((path) => {
        const names = [...read(`src/${path}`).matchAll(constant)].map(([, name = '']) => name);
        return names.map((name) => ({ path, name }));
      });
    const isListed = ({ path, name }: { readonly path: string; readonly name: string }): boolean =>
      ofLibrary.some((row) => row.name === name && files[row.part]?.includes(path) === true);
    const unlisted = found.filter((constant) => !isListed(constant));
    const expected = Object.entries(internal).flatMap(([path, names]) => names.map((name) => ({ path, name })));
    expect(unlisted).toEqual(expected);
  });
});
