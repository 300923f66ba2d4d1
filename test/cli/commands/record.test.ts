import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { filter, firstValueFrom } from 'rxjs';
import { startTradeFeedService, type TradeFeedService } from '../../../src/testing/index.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { commandRunner, envOf, type fakeContext, FakeOutput } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService();
});
afterAll(() => service.shutdown());

const command = commandRunner();
const record = (args: string, given: Parameters<typeof fakeContext>[0] = {}) => {
  const account = service.createAccount({ plan: 'developer' });
  return { ...command(`record ${args}`, { ...given, env: { ...envOf(service, account), ...given.env } }), account };
};

let count = 0;
const fresh = (): string => folder.path(`recording-${(count += 1)}`);
const recordsOf = (path: string): unknown[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

const linkToItself = (): string => {
  const path = fresh();
  symlinkSync(path, path);
  return path;
};

const opened = /\(connection 1\)/;

describe('record', () => {
  it('writes frames and gaps, prints a summary, and appends to an existing recording', async () => {
    const path = fresh();
    const first = record(`--output ${path} --count 2`);
    await first.stderr.until(opened);
    for (const payload of ['one', Buffer.of(0, 255), 'too many']) service.push('market', payload);
    expect(await first.exit).toBe(0);
    const frame = { type: 'frame', feed: 'market', connection: 1 };
    expect(recordsOf(path)).toMatchObject([
      { ...frame, isBinary: false, encoding: 'utf8', data: 'one' },
      { ...frame, isBinary: true, encoding: 'base64', data: 'AP8=' },
    ]);
    expect(first.stdout.text).toBe('');
    expect(first.stderr.text).toMatch(
      new RegExp(`Z 2 frames, 5 B in .*; gaps: none; reconnects: none; recording: \\d+ B in ${path}\n$`),
    );
    const second = record(`-o ${path} --count 2`);
    await second.stderr.until(opened);
    service.push('market', 'three');
    second.account.expireAccess();
    await second.stderr.until(/\(connection 2\)/);
    service.push('market', 'four');
    expect(await second.exit).toBe(0);
    expect(recordsOf(path).slice(2)).toMatchObject([
      { type: 'gap', failure: { code: 'connection-closed' } },
      { data: 'three' },
      { type: 'gap', failure: { code: 'access-expired' } },
      { data: 'four', connection: 2 },
    ]);
  });

  it('continues in another file when one is full', async () => {
    const path = fresh();
    const { stderr, exit } = record(`raw -o ${path} --max-file-size 0.2kB --count 3`);
    await stderr.until(opened);
    for (const payload of ['one', 'two', 'three']) service.push('raw', payload);
    expect(await exit).toBe(0);
    expect(recordsOf(`${path}.2`)).toMatchObject([{ feed: 'raw', data: 'three' }]);
    expect(stderr.text).toMatch(/; recording: \d+ B in 3 files\n$/);
  });

  it('shows a status line on a terminal, with the size of the file', async () => {
    const path = fresh();
    const { stderr, end } = record(`-o ${path}`, { stderr: new FakeOutput({ columns: 400, rows: 10 }) });
    await stderr.until(/live: market/);
    service.push('market', 'one');
    await stderr.until(new RegExp(` · 1 frame .* · [1-9]\\d* B in ${path}`));
    expect(await end()).toBe(0);
    expect(stderr.text).toMatch(new RegExp(` {2}frames {6}1, [^]* {2}recording {3}\\d+ B in ${path}\n$`));
    expect(recordsOf(path)).toHaveLength(1);
  });

  it('writes the status to a log every 10 s', async () => {
    using _timers = fakeTimers();
    const path = fresh();
    const { stderr, end } = record(`-o ${path}`);
    await stderr.until(opened);
    jest.advanceTimersByTime(9_500);
    expect(stderr.text).not.toContain('●');
    jest.advanceTimersByTime(1_000);
    expect(stderr.text).toMatch(new RegExp(`Z ● live: market, .* · 0 frames · no gaps · 0 B in ${path}\n$`));
    expect(await end()).toBe(0);
  });

  it('prints nothing with -q, and leaves no file without a frame', async () => {
    const path = fresh();
    const connected = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'handshake-accepted')));
    const { stderr, end } = record(`-q -o ${path}`);
    await connected;
    expect(await end()).toBe(0);
    expect(stderr.text).toBe('');
    const refused = record(`-o ${path}`, { env: { TRADE_FEED_API_KEY: 'planted-key' } });
    expect(await refused.exit).toBe(3);
    expect(refused.stderr.text).toMatch(/Z 0 frames, .*; recording: nothing was written\n/);
    expect(existsSync(path)).toBe(false);
  });

  it('refuses a file that is not a recording before it connects', async () => {
    const path = await folder.file('mine', 'mine');
    const { stderr, exit } = record(`--output ${path}`);
    expect(await exit).toBe(8);
    expect(stderr.text).toBe(
      `rx-trade-feed: The file ${path} already exists and isn't a recording. Nothing was written to it. Use another path.\n`,
    );
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  it.each([
    ['', 'Missing file. Use --output FILE.'],
    ['-o -', 'record writes to a file. To write to stdout, use listen --json.'],
  ])('needs a file: %s', async (args, words) => {
    const { stderr, exit } = record(args);
    expect(await exit).toBe(2);
    expect(stderr.text).toBe(`rx-trade-feed: ${words}\nTry rx-trade-feed record --help.\n`);
  });

  it.each([
    ['a name that is too long', () => folder.path('x'.repeat(300)), 'the name or the path is too long'],
    ['a link to itself', linkToItself, 'the symbolic links form a loop'],
    ['a part that is not a folder', () => `${linkToItself()}/feed`, 'the symbolic links form a loop'],
  ])('explains the problem with %s, and prints nothing else', async (_what, path, words) => {
    const file = path();
    const { stderr, exit } = record(`-o ${file}`);
    expect(await exit).toBe(8);
    expect(stderr.text).toBe(`rx-trade-feed: Can't write the recording ${file}: ${words}.\n`);
  });

  it('reports that another recorder uses the file, and a full disk', async () => {
    const path = fresh();
    const first = record(`-o ${path}`);
    await first.stderr.until(opened);
    const second = record(`-o ${path}`);
    expect(await second.exit).toBe(8);
    expect(second.stderr.text).toMatch(/^rx-trade-feed: .*: another recorder, .* is writing to it\. .*\n$/);
    expect(await first.end()).toBe(0);
    const full = record('--output /dev/full');
    await full.stderr.until(opened);
    service.push('market', 'one');
    expect(await full.exit).toBe(8);
    expect(full.stderr.text).toMatch(
      /Z 1 frame, .*; recording: .*\nrx-trade-feed: Can't write the recording \/dev\/full: no space is left on the disk\.\n$/,
    );
  });
});
