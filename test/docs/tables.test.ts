import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as library from 'rx-trade-feed';
import type { BackoffPolicy, FeedEvent, Frame, RelayFailureCode, TradeFeedOptions, Verdict } from 'rx-trade-feed';
import type { OwnerChanged } from 'rx-trade-feed/cluster';
import { asapScheduler, asyncScheduler } from 'rxjs';
import { serviceDefaults } from 'rx-trade-feed/testing';
import { commands } from '../../src/cli/arguments/commands.js';
import { resolveOptions } from '../../src/options.js';
import { relayMeanings } from '../../src/protocol/failures/relay-meanings.js';
import { relayReports } from '../../src/protocol/failures/relay-meanings.js';
import { resolveRelayOptions } from '../../src/relay/relay-options.js';
import { serviceMeanings } from '../../src/protocol/failures/service-meanings.js';
import type { Meaning } from '../../src/protocol/failures/meaning.js';
import { defaultBackoff } from '../../src/reconnect/policy.js';
import { failureCodes } from '../support/failure-table.js';
import { filesIn, read, root } from './fences.js';
import { type Row, tablesUnder } from './tables.js';

/** Returns all keys of a type, sorted. The compiler rejects a missing key and an unknown one. */
const namesOf = <K extends string>(names: Readonly<Record<K, true>>): readonly string[] => Object.keys(names).sort();

const column = (rows: readonly Row[], name: string): readonly string[] => rows.map((row) => row[name] as string);

// The observation of a row of the failure table, in the notation of the documents.
const observationOf = ({ status, closeCode, reason, code }: Meaning): string => {
  if (status !== undefined) return status === 'other' ? 'HTTP, any other' : `HTTP ${status}`;
  if (closeCode === undefined) return '–';
  if (closeCode === 'other') return 'close, any other';
  const other = serviceMeanings.some(
    (row) => row.closeCode === closeCode && row.code !== code && row.reason !== undefined,
  );
  return `close ${closeCode}${reason === undefined ? (other ? ', any other reason' : '') : ` \`${reason}\``}`;
};

// 10 000, 'main' and Math.random in the notation of the documents.
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

const failurePage = 'docs/failures/index.md';

/** Returns the rows of a failure table, with codes that are not links. */
const failuresUnder = (heading: string): readonly Row[] =>
  (tablesUnder(failurePage, heading)[0] ?? []).map((row): Row => ({
    ...row,
    code: (row['code'] ?? '').replace(/^\[`(.+)`\]\(\1\.md\)$/, '$1'),
  }));

/** The functions of the main entry point that are no operators: sources, parts of a feed, errors. */
const others = [
  ...['tradeFeed$', 'tradeFeedEvents$', 'requestTicket', 'openConnection', 'proxyFromEnvironment'],
  ...['backoff', 'retryDelay', 'classify', 'createTradeFeedError'],
];
const operatorNames = [
  ...Object.entries(library)
    .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
    .map(([name]) => name)
    .filter((name) => !others.includes(name)),
  'feedMetrics',
];

describe('the failure tables of docs/failures', () => {
  const headings = {
    ticket: 'At the ticket request',
    handshake: 'At the handshake',
    stream: 'On the open stream',
    any: 'At any time',
  };
  const rows = Object.entries(headings).flatMap(([stage, heading]) =>
    failuresUnder(heading).map((row): Row => ({ ...row, stage })),
  );

  it('has exactly the rows of the library, with their codes and verdicts', () => {
    const inLibrary = serviceMeanings.map((row) =>
      [row.stage ?? 'any', observationOf(row), row.code, row.verdict].join(' | '),
    );
    const onPage = rows.map(({ stage, seen, code, verdict }) => [stage, seen, code, verdict].join(' | '));
    expect([...onPage].sort()).toEqual([...inLibrary].sort());
  });

  it('names every failure code', () => {
    expect([...new Set(column(rows, 'code'))].sort()).toEqual(failureCodes);
  });

  it('explains in every row what happened and what to do', () => {
    for (const row of rows) {
      expect(row['what happened']).toMatch(/\S\.$/);
      expect(row['what you do']).toMatch(/\S\.$/);
    }
  });

  it('explains every verdict', () => {
    const verdicts = namesOf<Verdict>({ stop: true, renew: true, wait: true, backoff: true });
    const [explained = []] = tablesUnder(failurePage, 'Failure codes');
    expect([...column(explained, 'verdict')].sort()).toEqual(verdicts);
  });
});

describe('the options of docs/options.md', () => {
  const [options = []] = tablesUnder('docs/options.md', 'The feed');
  const [policy = []] = tablesUnder('docs/options.md', 'The reconnect policy');

  it('are those of the type', () => {
    const names = namesOf<keyof TradeFeedOptions>({
      baseUrl: true,
      apiKey: true,
      ticketTimeoutMs: true,
      handshakeTimeoutMs: true,
      idleTimeoutMs: true,
      maxFrameBytes: true,
      backoff: true,
      classify: true,
      tls: true,
      standby: true,
      receiveIn: true,
      receiveBufferBytes: true,
      warnings: true,
      dispatcher: true,
      agent: true,
    });
    expect([...column(options, 'option')].sort()).toEqual(names);
  });

  it('have the defaults of the library', () => {
    const { baseUrl: _, apiKey: __, ...defaults } = resolveOptions() as TradeFeedOptions;
    const special: Readonly<Record<string, string>> = {
      baseUrl: 'environment `TRADE_FEED_BASE_URL`',
      apiKey: 'environment `TRADE_FEED_API_KEY`',
      backoff: 'see below',
      // The resolved options leave it undefined, which means the main thread.
      receiveIn: "'main'",
      receiveBufferBytes: '268 435 456',
      // The resolved options leave it undefined, which means that warnings are on.
      warnings: 'true',
    };
    for (const { option = '', default: shown } of options) {
      const value = (defaults as Readonly<Record<string, unknown>>)[option];
      expect([option, shown]).toEqual([option, special[option] ?? textOf(value)]);
    }
  });

  it('of the reconnect policy are those of the type, with the defaults of the library', () => {
    const names = namesOf<keyof BackoffPolicy>({
      initialDelayMs: true,
      maxDelayMs: true,
      factor: true,
      jitter: true,
      stableAfterMs: true,
      maxAttempts: true,
      random: true,
      scheduler: true,
    });
    expect([...column(policy, 'field')].sort()).toEqual(names);
    for (const { field = '', default: shown } of policy) {
      expect([field, shown]).toEqual([field, textOf(defaultBackoff[field as keyof BackoffPolicy])]);
    }
  });
});

describe('a relay', () => {
  it('has exactly its failures in docs/failures, with their codes and verdicts', () => {
    const rows = failuresUnder('Between a relay and its pages');
    const known = [...relayMeanings, ...Object.values(relayReports)];
    const inLibrary = known.map((row) => [observationOf(row), row.code, row.verdict].join(' | '));
    expect(rows.map((row) => [row['seen'], row['code'], row['verdict']].join(' | ')).sort()).toEqual(inLibrary.sort());
    expect(new Set(column(rows, 'code'))).toEqual(
      new Set(
        namesOf<RelayFailureCode>({
          'relay-unreachable': true,
          'relay-headers-failed': true,
          'relay-refused': true,
          'relay-full': true,
          'relay-failed': true,
          'invalid-relay': true,
          'relay-lost': true,
          'relay-closing': true,
          'relay-session-ended': true,
          'relay-stalled': true,
          'invalid-relay-data': true,
          'relay-behind': true,
          'relay-source-failed': true,
        }),
      ),
    );
  });

  it('has its options in docs/relay.md, with the defaults of the library', () => {
    const [rows = []] = tablesUnder('docs/relay.md', 'On the server');
    const defaults = Object.entries(resolveRelayOptions()).map(([name, value]) => [name, textOf(value)]);
    expect(rows.map((row) => [row['option'], row['default']])).toEqual(defaults);
  });
});

it('the events of docs/events.md are those of the type', () => {
  const types = namesOf<(FeedEvent | OwnerChanged)['type']>({
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

it('the exit codes of docs/command-line.md are those of the commands', () => {
  const [codes = []] = tablesUnder('docs/command-line.md', 'Exit codes');
  const ofCommands = Object.values(commands).flatMap(({ exitCodes }) => Object.keys(exitCodes));
  expect([...new Set(column(codes, 'exit code'))].sort()).toEqual([...new Set(ofCommands)].sort());
});

it('docs/operators.md names every operator', () => {
  const [groups = []] = tablesUnder('docs/operators.md', 'Operators');
  const [emitted = []] = tablesUnder('docs/operators.md', 'What each emits');
  const inGroups = column(groups, 'operators').flatMap((cell) => [...cell.matchAll(/[\w$]+/g)].map(([name]) => name));
  const names = column(emitted, 'operator').map((name) => name.replace('()', ''));
  expect([...names].sort()).toEqual([...new Set(operatorNames)].sort());
  for (const name of names) expect(inGroups).toContain(name);
});

it('the limits of docs/testing.md are those of the service, with the defaults of the library', () => {
  const [limits = []] = tablesUnder('docs/testing.md', 'Its limits');
  const shown = limits.map((row) => [row['limits'], Number(row['default']?.replaceAll(' ', ''))]);
  expect(shown).toEqual(Object.entries(serviceDefaults.limits));
});

it('docs/architecture.md names existing files only, and every file of the client', () => {
  const text = read('docs/architecture.md');
  const named = [...text.matchAll(/`((?:src|test|examples|docs)\/[^`]*\.\w+)`/g)].map(([, path]) => path as string);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const client = ['protocol', 'transport', 'reconnect'].flatMap((folder) => filesIn(`src/${folder}`, '.ts'));
  expect(client.filter((path) => !named.includes(path))).toEqual([]);
});
