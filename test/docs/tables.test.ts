import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { BackoffPolicy, FeedEvent, RelayFailureCode, TradeFeedOptions, Verdict } from 'rx-trade-feed';
import { asapScheduler, asyncScheduler } from 'rxjs';
import { serviceDefaults } from 'rx-trade-feed/testing';
import { exitCodeMeanings } from '../../src/cli/exit-code.js';
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

describe('the failure table of the README', () => {
  const headings = {
    ticket: 'At the ticket request',
    handshake: 'At the handshake',
    stream: 'On the open stream',
    any: 'At any time',
  };
  const rows = Object.entries(headings).flatMap(([stage, heading]) =>
    (tablesUnder('README.md', heading)[0] as readonly Row[]).map((row): Row => ({ ...row, stage })),
  );

  it('has exactly the rows of the library, with their codes and verdicts', () => {
    const inLibrary = serviceMeanings.map((row) =>
      [row.stage ?? 'any', observationOf(row), row.code, row.verdict].join(' | '),
    );
    const inReadme = rows.map(({ stage, seen, code, verdict }) => [stage, seen, code, verdict].join(' | '));
    expect([...inReadme].sort()).toEqual([...inLibrary].sort());
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
    const [explained = []] = tablesUnder('README.md', 'When something fails');
    expect([...column(explained, 'verdict')].sort()).toEqual(verdicts);
  });
});

describe('the options of the README', () => {
  const [options = [], policy = []] = tablesUnder('README.md', 'Options');

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

describe('docs/relay.md', () => {
  it('has exactly the failures of a relay connection, with their codes and verdicts', () => {
    const [rows = []] = tablesUnder('docs/relay.md', 'When the connection to the relay fails');
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

  it('has the options of a relay with the defaults of the library', () => {
    const [rows = []] = tablesUnder('docs/relay.md', 'On the server');
    const defaults = Object.entries(resolveRelayOptions()).map(([name, value]) => [name, textOf(value)]);
    expect(rows.map((row) => [row['option'], row['default']])).toEqual(defaults);
  });
});

it('the events of the README are those of the type', () => {
  const types = namesOf<FeedEvent['type']>({
    'ticket-requested': true,
    'ticket-issued': true,
    opened: true,
    frame: true,
    disconnected: true,
    reconnecting: true,
    gap: true,
    stopped: true,
    watermark: true,
  });
  const [events = []] = tablesUnder('README.md', 'Events and gaps');
  expect([...column(events, 'type')].sort()).toEqual(types);
});

it('the exit codes of the README are those of the command', () => {
  const [codes = []] = tablesUnder('README.md', 'The command line');
  expect([...column(codes, 'exit code')].sort()).toEqual(Object.keys(exitCodeMeanings).sort());
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
