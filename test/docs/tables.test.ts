import { describe, expect, it } from '@jest/globals';
import type { BackoffPolicy, FeedEvent, Frame, TradeFeedOptions } from 'rx-trade-feed';
import type { ClusterEvent } from 'rx-trade-feed/cluster';
import * as interop from 'rx-trade-feed/interop';
import * as operators from 'rx-trade-feed/operators';
import * as otel from 'rx-trade-feed/otel';
import { asapScheduler, asyncScheduler } from 'rxjs';
import { serviceDefaults } from 'rx-trade-feed/testing';
import { boundDefaults } from '../../src/operators/bounded/bounded-queue.js';
import { windowDefaults } from '../../src/operators/window/contents.js';
import { resolveElectionOptions } from '../../src/cluster/cluster-options.js';
import { memoryEngine } from '../../src/cluster/engine.js';
import { feedOptionRules, resolveOptions, resolveTicketOptions } from '../../src/feed/options.js';
import { consumeDefaults } from '../../src/log/consume.js';
import { appendDefaults } from '../../src/log/append.js';
import { resolveRelayOptions } from '../../src/relay/relay-options.js';
import { settingsOf } from '../../src/settle/settle-options.js';
import { defaultBackoff } from '../../src/feed/backoff.js';
import { cloneableSettings } from '../../src/worker/settings.js';
import { read } from './fences.js';
import { type Row, tablesUnder } from './tables.js';

/** Returns all keys of a type, sorted. The compiler rejects missing and unknown ones. */
const namesOf = <K extends string>(names: Readonly<Record<K, true>>): readonly string[] => Object.keys(names).sort();

const column = (rows: readonly Row[], name: string): readonly string[] => rows.map((row) => row[name] as string);

// Writes 10 000, 'main' and Math.random the way the documents do.
const names = new Map<unknown, string>([
  [Math.random, 'Math.random'],
  [asyncScheduler, 'asyncScheduler'],
  [asapScheduler, 'asapScheduler'],
]);
const textOf = (value: unknown): string => {
  if (typeof value === 'number') return String(value).replace(/\B(?=(\d{3})+$)/g, ' ');
  if (typeof value === 'string') return `'${value}'`;
  return names.get(value) ?? '–';
};

describe('the options of docs/options.md', () => {
  const [options = []] = tablesUnder('docs/options.md', 'The feed');
  const [policy = []] = tablesUnder('docs/options.md', 'The reconnect policy');

  it('match the type', () => {
    expect([...column(options, 'option')].sort()).toEqual(Object.keys(feedOptionRules).sort());
  });

  it('have the defaults of the library', () => {
    const { baseUrl: _, apiKey: __, ...defaults } = resolveOptions() as TradeFeedOptions;
    const special: Readonly<Record<string, string>> = {
      baseUrl: 'environment `TRADE_FEED_BASE_URL`',
      apiKey: 'environment `TRADE_FEED_API_KEY`',
      backoff: 'see below',
      // It's undefined in the resolved options, which means the main thread.
      receiveIn: "'main'",
      receiveBufferBytes: '268 435 456',
      // It's undefined in the resolved options, which means that warnings are on.
      warnings: 'true',
    };
    for (const { option = '', default: shown } of options) {
      const value = (defaults as Readonly<Record<string, unknown>>)[option];
      expect([option, shown]).toEqual([option, special[option] ?? textOf(value)]);
    }
  });

  it('match the type and the defaults of the reconnect policy', () => {
    expect([...column(policy, 'field')].sort()).toEqual(Object.keys(defaultBackoff).sort());
    for (const { field = '', default: shown } of policy) {
      expect([field, shown]).toEqual([field, textOf(defaultBackoff[field as keyof BackoffPolicy])]);
    }
  });
});

it('the options of a relay in docs/relay.md have the defaults of the library', () => {
  const [rows = []] = tablesUnder('docs/relay.md', 'On the server');
  const defaults = Object.entries(resolveRelayOptions()).map(([name, value]) => [name, textOf(value)]);
  expect(rows.map((row) => [row['option'], row['default']])).toEqual(defaults);
});

it('docs/outcomes.md has the bounds of settle with their defaults', () => {
  const [rows = []] = tablesUnder('docs/outcomes.md', 'What it remembers');
  const defaults: Readonly<Record<string, unknown>> = settingsOf({ key: String, withinMs: 1 });
  const special: Readonly<Record<string, string>> = { withinMs: '', rememberMs: 'withinMs' };
  expect(rows.map((row) => [row['option'], row['default']])).toEqual(
    ['withinMs', 'withinBlocks', 'graceMs', 'rememberMs', 'maxTrades', 'maxBytes'].map((option) => [
      option,
      special[option] ?? textOf(defaults[option]),
    ]),
  );
});

it('docs/events.md lists exactly the events of the type', () => {
  const types = namesOf<(FeedEvent | ClusterEvent)['type']>({
    'ticket-requested': true,
    'ticket-issued': true,
    opened: true,
    frame: true,
    disconnected: true,
    reconnecting: true,
    gap: true,
    stopped: true,
    watermark: true,
    'owner-changed': true,
    'engine-refused': true,
    'engine-recovered': true,
  });
  const [events = []] = tablesUnder('docs/events.md', 'All events');
  expect([...column(events, 'type')].sort()).toEqual(types);
});

it('a frame has the fields of docs/events.md', () => {
  const [fields = []] = tablesUnder('docs/events.md', 'A frame');
  const names = namesOf<keyof Frame>({
    type: true,
    feed: true,
    data: true,
    isBinary: true,
    receivedAt: true,
    connection: true,
    byteLength: true,
    text: true,
    json: true,
  });
  expect(column(fields, 'field').map((name) => name.replace('()', ''))).toEqual(expect.arrayContaining([...names]));
  expect(fields).toHaveLength(names.length);
});

it('docs/operators.md has a heading with the name of each function of the operators, of interop and of otel', () => {
  const headings = read('docs/operators.md').match(/^### .+$/gm)?.join() ?? '';
  const names = Object.entries({ ...operators, ...interop, ...otel })
    .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
    .map(([name]) => name);
  expect(names.filter((name) => !headings.includes(`\`${name}\``))).toEqual([]);
});

it('docs/testing.md lists the limits of the service with their defaults', () => {
  const [limits = []] = tablesUnder('docs/testing.md', 'Its limits');
  const shown = limits.map((row) => [row['limits'], Number(row['default']?.replaceAll(' ', ''))]);
  expect(shown).toEqual(Object.entries(serviceDefaults.limits));
});

describe('docs/limits.md', () => {
  // Reads an item such as: `maxFrameBytes`, 16 777 216 bytes: the largest frame.
  const ofPart = (heading: string): Readonly<Record<string, string>> => {
    const section = read('docs/limits.md').split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
    const items = section.matchAll(/^- `?([^`,\n]+)`?, `?(\d[\d ]*\d|\d|Infinity)\b/gm);
    return Object.fromEntries([...items].map(([, name = '', value = '']) => [name, value]));
  };

  const settings = resolveTicketOptions({ baseUrl: 'https://feed.example', apiKey: 'k' });
  const { receiveBufferBytes } = cloneableSettings(settings);
  it.each<[string, object]>([
    ['The feed', resolveOptions()],
    ['A worker thread', { receiveBufferBytes }],
    ['Reconnecting', defaultBackoff],
    ['Bounded operators', boundDefaults],
    ['Windows', windowDefaults],
    ['The relay', resolveRelayOptions()],
    ['A cluster', resolveElectionOptions({ engine: memoryEngine(), account: 'a' })],
    ['A log', appendDefaults],
    ['The consumers of a log', consumeDefaults],
    ['The local service', serviceDefaults.limits],
  ])('lists exactly the numeric defaults of the library: %s', (part, defaults) => {
    const numbers = Object.entries(defaults).filter(([, value]) => typeof value === 'number');
    expect(ofPart(part)).toEqual(Object.fromEntries(numbers.map(([name, value]) => [name, textOf(value)])));
  });

  it('lists the limits of the contract', () => {
    const [contract = []] = tablesUnder('docs/service-contract.md', '8. Limits');
    const limits = ofPart('The service');
    expect(Object.keys(limits)).toHaveLength(4);
    for (const [name, value] of Object.entries(limits))
      expect([name, contract.find((row) => row['Limit'] === name)?.['Value']]).toEqual([
        name,
        expect.stringMatching(new RegExp(`\\b${value}\\b`)),
      ]);
  });
});
