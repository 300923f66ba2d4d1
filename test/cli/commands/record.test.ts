import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { clientRunner } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService();
});
afterAll(() => service.shutdown());

const record = clientRunner('record', () => service);

let count = 0;
const fresh = (): string => folder.path(`log-${(count += 1)}`);
const segmentsOf = (path: string) =>
  readdirSync(path)
    .filter((name) => name.endsWith('.ndjson'))
    .sort();

/** Returns the frames and gaps of a log. */
const recordsOf = (path: string): unknown[] =>
  segmentsOf(path)
    .flatMap((name) => readFileSync(join(path, name), 'utf8').trimEnd().split('\n'))
    .map((line) => JSON.parse(line) as { type: string })
    .filter(({ type }) => type === 'frame' || type === 'gap');

const opened = /\(connection 1\)/;

describe('record', () => {
  it('writes frames and gaps, prints a summary, and continues an existing log', async () => {
    const path = fresh();
    const first = record(`--output ${path} --count 2 --max-file-size 0.2kB`);
    await first.stderr.until(opened);
    for (const payload of ['one', Buffer.of(0, 255), 'too many']) service.push('market', payload);
    expect(await first.exit).toBe(0);
    const frame = { type: 'frame', feed: 'market', connection: 1 };
    expect(recordsOf(path)).toMatchObject([
      { ...frame, isBinary: false, encoding: 'utf8', data: 'one' },
      { ...frame, isBinary: true, encoding: 'base64', data: 'AP8=' },
    ]);
    expect(first.stdout.text).toBe('');
    expect(segmentsOf(path).length).toBeGreaterThan(1);
    expect(first.stderr.text).toMatch(
      new RegExp(`Z 2 frames, 5 B in .*; gaps: none; reconnects: none; log: ${path}\n$`),
    );
    const second = record(`-o ${path} --count 2`);
    await second.stderr.until(opened);
    service.push('market', 'three');
    second.account.expireAccess();
    await second.stderr.until(/\(connection 2\)/);
    service.push('market', 'four');
    expect(await second.exit).toBe(0);
    expect(recordsOf(path).slice(2)).toMatchObject([
      { type: 'gap', failure: { code: 'log-paused' } },
      { data: 'three' },
      { type: 'gap', failure: { code: 'access-expired' } },
      { data: 'four', connection: 2 },
    ]);
  });

  it('logs the status every 10 s when stderr is not a terminal', async () => {
    using _timers = fakeTimers();
    const path = fresh();
    const { stderr, end } = record(`-o ${path}`);
    await stderr.until(opened);
    jest.advanceTimersByTime(9_500);
    expect(stderr.text).not.toContain('●');
    jest.advanceTimersByTime(1_000);
    expect(stderr.text).toMatch(new RegExp(`Z ● live: market, .* · 0 frames · no gaps · ${path}\n$`));
    expect(await end()).toBe(0);
  });

  it('refuses a file before connecting, and leaves it unchanged', async () => {
    const path = await folder.file('mine', 'mine');
    const { stderr, exit } = record(`--output ${path}`);
    expect(await exit).toBe(1);
    expect(stderr.text).toMatch(/^rx-trade-feed: .*mine/);
    expect(stderr.text).not.toContain('Connect');
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  it.each([
    ['', 'Missing folder. Use --output FOLDER.'],
    ['-o -', 'record writes to a folder. To write to stdout, use listen --json.'],
  ])('needs a folder: %s', async (args, words) => {
    const { stderr, exit } = record(args);
    expect(await exit).toBe(2);
    expect(stderr.text).toBe(`rx-trade-feed: ${words}\nTry rx-trade-feed record --help.\n`);
  });

  it('reports that another process is writing the log', async () => {
    const path = fresh();
    mkdirSync(path);
    const first = record(`-o ${path}`);
    await first.stderr.until(opened);
    const second = record(`-o ${path}`);
    expect(await second.exit).toBe(1);
    expect(second.stderr.text).toMatch(/^rx-trade-feed: The log .* has a writer already.*\n$/);
    expect(await first.end()).toBe(0);
  });
});
