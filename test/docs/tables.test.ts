import { describe, expect, it } from '@jest/globals';
import { join } from 'node:path';
import { type BackoffPolicy, Frame, type TradeFeedOptions } from 'rx-trade-feed';
import * as interop from 'rx-trade-feed/interop';
import * as operators from 'rx-trade-feed/operators';
import * as otel from 'rx-trade-feed/otel';
import { asapScheduler, asyncScheduler } from 'rxjs';
import { feedOptionRules, resolveOptions } from '../../src/feed/options.js';
import { settingsOf } from '../../src/settle/settle-options.js';
import { defaultBackoff } from '../../src/feed/backoff.js';
import { read, root } from './fences.js';
import { siteLibrary } from './site.js';
import { type Row, tablesUnder } from './tables.js';

const { limitSources, limitsPage } = await siteLibrary('limits.mjs');

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

it('docs/events.md lists exactly the events that the sources declare', () => {
  const declared = [...read('src/protocol/event.ts').matchAll(/^ +readonly type: '([\w-]+)';/gm)]
    .map(([, type]) => type)
    .filter((type) => type !== 'value'); // a value of a relay's topic, of docs/relay.md
  const [events = []] = tablesUnder('docs/events.md', 'All events');
  expect([...column(events, 'type')].sort()).toEqual([...declared, 'frame'].sort());
});

it('docs/events.md lists exactly the public members of a frame', () => {
  const [fields = []] = tablesUnder('docs/events.md', 'A frame');
  const names = [Frame.prototype, new Frame('market', Buffer.from(''), false, 0, 1)].flatMap(
    Object.getOwnPropertyNames,
  );
  expect(
    column(fields, 'field')
      .map((name) => name.replace('()', ''))
      .sort(),
  ).toEqual(names.filter((name) => name !== 'constructor').sort());
});

it('docs/operators.md has a heading with the name of each function of the operators, of interop and of otel', () => {
  const headings =
    read('docs/operators.md')
      .match(/^### .+$/gm)
      ?.join() ?? '';
  const names = Object.entries({ ...operators, ...interop, ...otel })
    .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
    .map(([name]) => name);
  expect(names.filter((name) => !headings.includes(`\`${name}\``))).toEqual([]);
});

describe('docs/limits.md', () => {
  it('has the defaults of the library: run scripts/site/update.mjs limits', async () => {
    const source = {};
    for (const file of Object.keys(limitSources)) Object.assign(source, await import(join(root, 'src', file)));
    expect(read('docs/limits.md')).toBe(limitsPage(read('docs/limits.md'), source));
  });

  it('has the limits of the contract', () => {
    const [contract = []] = tablesUnder('docs/service-contract.md', '8. Limits');
    const [, section = ''] = /^## The service\n(.+?)^## /ms.exec(read('docs/limits.md')) ?? [];
    const limits = [...section.matchAll(/^- (.+?), (\d+)/gm)];
    expect(limits).toHaveLength(4);
    for (const [, name, value] of limits)
      expect([name, contract.find((row) => row['Limit'] === name)?.['Value']]).toEqual([
        name,
        expect.stringMatching(new RegExp(`\\b${value}\\b`)),
      ]);
  });
});
