import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { from, lastValueFrom } from 'rxjs';
import { act } from '../../src/cli/commands/cluster.js';
import { commandNames, loadCommands } from '../../src/cli/program.js';
import { printed, widthOf, wrapped } from '../../src/cli/text.js';
import { memoryEngine } from '../../src/cluster/index.js';
import { writeKey } from '../../src/cluster/election/cluster-key.js';
import { subjectsOf } from '../../src/cluster/control.js';
import { feedLog } from '../../src/log/index.js';
import { marketBatches$, startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { seededRandom } from '../../src/testing/sources.js';
import { frameAt, opening } from './support/events.js';
import { commandRunner, envOf, fakeContext, FakeOutput } from './support/fakes.js';
import { tempFolder } from './support/temp-folder.js';

// Everything that a person reads fits the terminal, and no line ends within a word.
const folder = tempFolder();
const command = commandRunner();
let service: TradeFeedService;
let log: string;
beforeAll(async () => {
  service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 200 }) } });
  log = folder.path('a-log-with-a-long-name');
  const frames = Array.from({ length: 40 }, (_, n) => frameAt(n, `{"n":${n}}`));
  await lastValueFrom(from([...opening(0, 1), ...frames]).pipe(feedLog(log, { segmentBytes: 3_000 }).append()));
  mkdirSync(join(log, 'cursors'));
  writeFileSync(join(log, 'cursors/a-damaged-consumer.json'), '{}');
  writeFileSync(join(log, '0000000000000000.ndjson'), 'not a line of a log\n', { flag: 'a' });
});
afterAll(() => service.shutdown());

const terminal = (columns: number): FakeOutput => new FakeOutput({ columns, rows: 40 });
/** Splits what a terminal got into lines, without moves of the cursor. */
const linesOf = ({ text }: FakeOutput): readonly string[] =>
  stripVTControlCharacters(text.replaceAll(/\x1b7[^]*?\x1b8/g, '').replaceAll('\x1b[H', '\n')).split(/\r?\n/);
/** An address, a path or a code may be longer than a line, and stays whole. */
const tooWide = (lines: readonly string[], columns: number): readonly string[] =>
  lines.filter((line) => widthOf(line) > columns && /\s/.test(line.trim()));
const wordsOf = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean);

describe('a wrapped text', () => {
  const random = seededRandom(1);
  const pick = (most: number): number => random() % most;
  const word = (): string => ['a', 'Ctrl-C', '→', '価格', '/tmp/some/path', 'x'.repeat(pick(60))][pick(6)] as string;
  const line = (): string =>
    ' '.repeat(pick(12)) + Array.from({ length: pick(40) }, () => word() + ' '.repeat(1 + pick(3))).join('');

  it('has the same words in the same order, in lines that fit unless a word is longer than a line', () => {
    for (let round = 0; round < 500; round += 1) {
      const [text, columns] = [Array.from({ length: 3 }, line).join('\n'), 40 + pick(100)];
      const shown = wrapped(text, columns);
      expect(wordsOf(shown)).toEqual(wordsOf(text));
      expect(tooWide(shown.split('\n'), columns)).toEqual([]);
    }
  });

  it('goes on below the last column of its line, or where the line begins', () => {
    expect(wrapped('name  one two three', 14)).toBe('name  one two\n      three');
    expect(wrapped('  one two three', 11)).toBe('  one two\n  three');
    expect(wrapped('2026-01-01T00:00:00.000Z one', 26)).toBe('2026-01-01T00:00:00.000Z\n  one');
    expect(wrapped('\x1b[31mname  \x1b[39mone two', 10)).toBe('\x1b[31mname  \x1b[39mone\ntwo');
  });
});

it('a line that is shortened ends after a word, unless the word is longer than the line', () => {
  expect(printed([['●'], [' live · ticket-endpoint-unreachable']], 30)).toBe('● live · …');
  expect(printed([['  '], ['x'.repeat(30)]], 20)).toBe(`  ${'x'.repeat(17)}…`);
});

describe.each([80, 120])('in a terminal of %d columns', (columns) => {
  const refused = [
    ...[
      '',
      'lisen',
      'listen',
      'listen --api-key x',
      'listen --count 0',
      'listen --cluster http://a',
      'record',
      'replay',
    ],
    ...['replay missing --from yesterday', 'replay missing', 'cluster status', 'log verify x', 'demo --ca x'],
    ...['serve --cert x', 'serve --source missing', 'record -o LOG --max-size 1'],
    ...['cluster status --cluster nats://127.0.0.1:1', 'listen --key-file missing --base-url http://127.0.0.1:1'],
  ];
  const texts = [
    ...['--help', 'help exit-codes', '--version', ...commandNames.map((name) => `${name} --help`)],
    ...[...refused, 'log status LOG', 'log status LOG --verify'],
  ];
  it.each(texts)('fits, with the words of a pipe: `%s`', async (line) => {
    const [stdout, stderr] = [terminal(columns), terminal(columns)];
    const shown = command(line.replace('LOG', log), { stdout, stderr, env: { NO_COLOR: '1' } });
    const plain = command(line.replace('LOG', log));
    expect(await shown.exit).toBe(await plain.exit);
    expect(tooWide([...linesOf(stdout), ...linesOf(stderr)], columns)).toEqual([]);
    if (!stdout.text.includes(' ago')) expect(wordsOf(linesOf(stdout).join('\n'))).toEqual(wordsOf(plain.stdout.text));
    expect(wordsOf(linesOf(stderr).join('\n'))).toEqual(wordsOf(plain.stderr.text));
  });

  it('shows each example of the help on one line, so that it can be copied', async () => {
    for (const [name, { examples }] of Object.entries(await loadCommands())) {
      const stdout = terminal(columns);
      await command(`${name} --help`, { stdout }).exit;
      for (const [line] of examples) expect(linesOf(stdout)).toContain(`  ${line}`);
    }
  });

  const env = { NO_COLOR: '1' };
  it.each<[string, RegExp, string]>([
    ['serve --plan developer', /listen market/, 'stdout'],
    ['serve --tls', /listen market/, 'stdout'],
    ['listen --no-status', /\(connection 1\)/, 'stderr'],
    ['listen --retries 1 --base-url http://127.0.0.1:9', /gave up/, 'stderr'],
    ['record -o NEW --no-status', /\(connection 1\)/, 'stderr'],
    ['demo', /"batch"/, 'stdout'],
    ['doctor --connect', /handshake/, 'stdout'],
    ['doctor --base-url https://127.0.0.1:9', /failed/, 'stdout'],
    ['replay LOG --follow', /\{"n":39\}/, 'stdout'],
  ])('fits from its start to its summary: `%s`', async (line, until, where) => {
    const [stdout, stderr] = [terminal(columns), terminal(columns)];
    const settings = line === 'demo' ? env : { ...envOf(service), ...env };
    const given = line.replace('NEW', folder.path(`new-${columns}`)).replace('LOG', log);
    const { end } = command(given, { stdout, stderr, env: settings });
    await (where === 'stdout' ? stdout : stderr).until(until);
    await end();
    const people = line.startsWith('listen') ? [] : linesOf(stdout);
    expect(tooWide([...people, ...linesOf(stderr)], columns)).toEqual([]);
  });

  it('fits for cluster status', async () => {
    const engine = memoryEngine();
    const names = Array.from({ length: 9 }, (_, n) => `app-${n}-0f52c1aa93be`);
    const changes = names.map((owner, gen) => ({ gen, owner, since: 1_000, cause: 'silence' as const }));
    const key = { v: 1, source: 'raw from a#1', gen: 9, owner: '', phase: 'stopped', since: 1_000, changes } as const;
    const stored = writeKey({ ...key, stop: { by: 'a', at: 0 }, credits: [], evictions: [] });
    await engine.compareAndSet(subjectsOf('main').key, stored, undefined);
    const context = fakeContext({ stdout: terminal(columns) });
    const connect = () => Promise.resolve({ engine, close: () => Promise.resolve() });
    expect(await act('status', { cluster: 'nats://a' }, context, connect)).toBe(0);
    expect(context.stdout.text).toContain('cluster resume');
    expect(tooWide(linesOf(context.stdout), columns)).toEqual([]);
  });
});
