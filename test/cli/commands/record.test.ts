import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { filter, firstValueFrom } from 'rxjs';
import { run } from '../../../src/cli/run.js';
import { startTradeFeedService, type TradeFeedAccount, type TradeFeedService } from '../../../src/testing/index.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
let service: TradeFeedService;
beforeAll(async () => {
  service = await startTradeFeedService();
});
afterAll(() => service.shutdown());

const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

interface Recorder {
  readonly context: FakeContext;
  readonly account: TradeFeedAccount;
  readonly exit: Promise<number>;
}

const record = (args: string, given: Parameters<typeof fakeContext>[0] = {}): Recorder => {
  const account = service.createAccount({ plan: 'developer' });
  const env = { TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: account.createApiKey(), ...given.env };
  const context = fakeContext({ ...given, env });
  contexts.push(context);
  return { context, account, exit: run(['record', ...args.split(' ').filter(Boolean)], context) };
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

const opened = /connection 1 is open/;

describe('record', () => {
  it('writes frames and gaps, prints a summary, and appends to an existing recording', async () => {
    const path = fresh();
    const first = record(`--output ${path} --count 2`);
    await first.context.stderr.until(opened);
    service.push('market', 'one');
    service.push('market', Buffer.of(0, 255));
    service.push('market', 'too many');
    expect(await first.exit).toBe(0);
    const frame = { type: 'frame', feed: 'market', connection: 1 };
    expect(recordsOf(path)).toMatchObject([
      { ...frame, isBinary: false, encoding: 'utf8', data: 'one' },
      { ...frame, isBinary: true, encoding: 'base64', data: 'AP8=' },
    ]);
    expect(first.context.stdout.text).toBe('');
    expect(first.context.stderr.text).toMatch(
      new RegExp(`Z 2 frames, 5 B in .*; gaps: none; reconnects: none; recording: \\d+ B in ${path}\n$`),
    );

    const second = record(`-o ${path} --count 2`);
    await second.context.stderr.until(opened);
    service.push('market', 'three');
    second.account.expireAccess();
    await second.context.stderr.until(/connection 2 is open/);
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
    const { context, exit } = record(`raw -o ${path} --max-file-size 0.2kB --count 3`);
    await context.stderr.until(opened);
    for (const payload of ['one', 'two', 'three']) service.push('raw', payload);
    expect(await exit).toBe(0);
    expect(recordsOf(`${path}.2`)).toMatchObject([{ feed: 'raw', data: 'three' }]);
    expect(context.stderr.text).toMatch(/; recording: \d+ B in 3 files\n$/);
  });

  it('shows a status line on a terminal, with the size of the file', async () => {
    const path = fresh();
    const { context, exit } = record(`-o ${path}`, { stderr: new FakeOutput({ columns: 400, rows: 10 }) });
    await context.stderr.until(/live: market/);
    service.push('market', 'one');
    await context.stderr.until(new RegExp(` · 1 frame .* · [1-9]\\d* B in ${path}`));
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).toMatch(new RegExp(` {2}frames {6}1, [^]* {2}recording {3}\\d+ B in ${path}\n$`));
    expect(recordsOf(path)).toHaveLength(1);
  });

  it('prints nothing with -q', async () => {
    const path = fresh();
    const connected = firstValueFrom(service.events$.pipe(filter(({ type }) => type === 'handshake-accepted')));
    const { context, exit } = record(`-q -o ${path}`);
    await connected;
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).toBe('');
    expect(existsSync(path)).toBe(false);
  });

  it('requires a file, and refuses a file that is not a recording before it connects', async () => {
    const nowhere = record('');
    expect(await nowhere.exit).toBe(2);
    expect(nowhere.context.stderr.text).toBe(
      'rx-trade-feed: The file is missing. Use --output FILE.\nTry rx-trade-feed record --help.\n',
    );
    const path = fresh();
    writeFileSync(path, 'mine');
    const { context, exit } = record(`--output ${path}`);
    expect(await exit).toBe(8);
    expect(context.stderr.text).toBe(
      `rx-trade-feed: The file ${path} already exists and is not a recording. Nothing was written to it. Use another path.\n`,
    );
    expect(readFileSync(path, 'utf8')).toBe('mine');
  });

  it('does not accept - for stdout', async () => {
    const { context, exit } = record('-o -');
    expect(await exit).toBe(2);
    expect(context.stderr.text).toContain(
      'rx-trade-feed: record writes to a file. To write to stdout, use listen --json.\nTry rx-trade-feed record --help.\n',
    );
  });

  it.each([
    ['a name that is too long', () => folder.path('x'.repeat(300)), 'the name or the path is too long'],
    ['a link to itself', linkToItself, 'the symbolic links form a loop'],
    ['a part that is not a folder', () => `${linkToItself()}/feed`, 'the symbolic links form a loop'],
  ])('explains the problem with %s, and prints nothing else', async (_what, path, words) => {
    const file = path();
    const { context, exit } = record(`-o ${file}`);
    expect(await exit).toBe(8);
    expect(context.stderr.text).toBe(`rx-trade-feed: Cannot write the recording ${file}: ${words}.\n`);
  });

  it('reports that another recorder uses the file', async () => {
    const path = fresh();
    const first = record(`-o ${path}`);
    await first.context.stderr.until(opened);
    const { context, exit } = record(`-o ${path}`);
    expect(await exit).toBe(8);
    expect(context.stderr.text).toBe(
      `rx-trade-feed: Cannot write the recording ${path}: another recorder, in this process or another one, is writing to it. Use another path, or stop that recorder.\n`,
    );
    first.context.interrupt$.next('SIGINT');
    expect(await first.exit).toBe(0);
  });

  it('reports a full disk', async () => {
    const { context, exit } = record('--output /dev/full');
    await context.stderr.until(opened);
    service.push('market', 'one');
    expect(await exit).toBe(8);
    expect(context.stderr.text).toMatch(
      /Z 1 frame, .*; recording: .*\nrx-trade-feed: Cannot write the recording \/dev\/full: no space is left on the disk\.\n$/,
    );
  });

  it('explains why the feed stopped, and leaves no empty file', async () => {
    const path = fresh();
    const { context, exit } = record(`-o ${path}`, { env: { TRADE_FEED_API_KEY: 'planted-key' } });
    expect(await exit).toBe(3);
    expect(context.stderr.text).toMatch(/Z 0 frames, .*; recording: nothing was written\n/);
    expect(existsSync(path)).toBe(false);
  });
});
