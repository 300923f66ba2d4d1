import { afterEach, describe, expect, it } from '@jest/globals';
import { access } from 'node:fs/promises';
import { from, of } from 'rxjs';
import { run } from '../../../src/cli/run.js';
import { Frame, recordTo } from '../../../src/index.js';
import { certificateFor } from '../../support/certificate.js';
import { type FakeContext, fakeContext } from '../support/fake-context.js';
import { startNode } from '../support/scripted-node.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const contexts: FakeContext[] = [];
afterEach(() => {
  for (const { interrupt$ } of contexts.splice(0)) interrupt$.next('SIGTERM');
});

const start = (
  line: string,
  env: Readonly<Record<string, string>> = {},
): { context: FakeContext; exit: Promise<number> } => {
  const context = fakeContext({ env });
  contexts.push(context);
  return { context, exit: run(line.split(' '), context) };
};

interface Served {
  readonly context: FakeContext;
  readonly exit: Promise<number>;
  readonly env: { readonly TRADE_FEED_BASE_URL: string; readonly TRADE_FEED_API_KEY: string };
}

/** Starts a service and reads the printed instructions. */
const serve = async (options: string): Promise<Served> => {
  const served = start(`serve ${options}`.trim());
  await served.context.stdout.until(/npx rx-trade-feed listen/);
  const exported = (name: string): string =>
    new RegExp(`^ {2}export ${name}=(\\S+)$`, 'm').exec(served.context.stdout.text)?.[1] ?? '';
  const env = {
    TRADE_FEED_BASE_URL: exported('TRADE_FEED_BASE_URL'),
    TRADE_FEED_API_KEY: exported('TRADE_FEED_API_KEY'),
  };
  return { ...served, env };
};

describe('serve', () => {
  it('serves the feeds that it prints, logs its events, and ends with 1001', async () => {
    const { context, exit, env } = await serve('--plan developer --rate 500 --seed 7');
    expect(context.stdout.text).toMatch(/developer plan.*\n.*generated payloads, 500 a second \(seed 7\)/);
    const listener = start('listen raw', env);
    await listener.context.stdout.until(/"hash":"0x[^]*\n/);
    await context.stderr.until(/Z ticket issued: account-1, raw\n\S+Z connection 1 is open: account-1, raw\n/);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stderr.text).toMatch(/connection 1 closed by the service: 1001 "server shutdown", \d+ frames?\n$/);
    await listener.context.stderr.until(/disconnected: The service shut down/);
    listener.context.interrupt$.next('SIGINT');
    expect(await listener.exit).toBe(0);
  });

  it('sends the lines of a file to the first client, from the first line', async () => {
    const file = await folder.file('frames', '{"n":1}\n{"n":2}\n{"n":3}\n');
    const { context, exit, env } = await serve(`--source ${file} --rate 1000 --plan developer`);
    const listener = start('listen --count 3', env);
    expect(await listener.exit).toBe(0);
    expect(listener.context.stdout.text).toBe('{"n":1}\n{"n":2}\n{"n":3}\n');
    await context.stderr.until(/the source of market has ended; the service continues to run/);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('sends the lines of stdin as they arrive to the feed of --feed', async () => {
    const { context, exit, env } = await serve('--source - --feed raw --plan developer');
    expect(context.stdout.text).toMatch(/raw {6}the lines of stdin, as they arrive[^]*listen raw\n/);
    const listener = start('listen raw --count 2', env);
    await listener.context.stderr.until(/connection 1 is open/);
    context.stdin.write('one\n');
    await listener.context.stdout.until(/^one\n$/);
    context.stdin.write('two\n');
    expect(await listener.exit).toBe(0);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stdin.destroyed).toBe(true);
  });

  it('sends the recorded frames of each feed with their intervals, from its first client on', async () => {
    const file = folder.path('recording');
    const frame = (feed: 'market' | 'raw', ms: number, text: string, isBinary = false) =>
      new Frame(feed, Buffer.from(text), isBinary, ms, 1);
    const frames = [frame('raw', 0, 'r0'), frame('market', 200, 'm1'), frame('raw', 400, 'r2', true)];
    from(frames).pipe(recordTo(file)).subscribe();
    const { context, exit, env } = await serve(`--replay ${file} --speed 2 --plan developer`);
    expect(context.stdout.text).toMatch(
      /raw {6}its frames in .*recording, 2 times as fast, from when the first client connects[^]*listen raw\n/,
    );
    const startedAt = Date.now();
    const raw = start('listen raw --json --count 2', env);
    expect(await raw.exit).toBe(0);
    const frameLines = raw.context.stdout.text.split('\n').filter((line) => line.includes('"frame"'));
    const [first, second] = frameLines.map((line) => JSON.parse(line) as { data: string; receivedAt: number });
    expect([first?.data, second?.data]).toEqual(['r0', 'cjI=']);
    // Not since the first frame was received: that may be late.
    expect((second?.receivedAt ?? 0) - startedAt).toBeGreaterThanOrEqual(200);
    await context.stderr.until(/the source of raw has ended; the service continues to run/);
    const market = start('listen market --count 1', env);
    expect(await market.exit).toBe(0);
    expect(market.context.stdout.text).toBe('m1\n');
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('serves a recording to listen as replay writes it', async () => {
    const file = folder.path('of-twelve');
    from(Array.from({ length: 12 }, (_, n) => new Frame('market', Buffer.from(`{"n":${n}}`), false, n, 1)))
      .pipe(recordTo(file))
      .subscribe();
    const { context, exit, env } = await serve(`--replay ${file} --plan developer`);
    const [replayed, listened] = [start(`replay ${file} --count 10 -q`), start('listen --count 10 -q', env)];
    expect(await Promise.all([replayed.exit, listened.exit])).toEqual([0, 0]);
    expect(replayed.context.stdout.text.split('\n')).toHaveLength(11);
    expect(listened.context.stdout.text).toBe(replayed.context.stdout.text);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
  });

  it('replays the payloads that listen has written', async () => {
    const first = await serve('--rate 1000 --plan developer');
    const recorder = start('listen raw --count 20 -q', first.env);
    expect(await recorder.exit).toBe(0);
    const file = await folder.file('payloads', recorder.context.stdout.text);
    const second = await serve(`--source ${file} --rate 1000 --plan developer`);
    const listener = start('listen --count 20 -q', second.env);
    expect(await listener.exit).toBe(0);
    expect(listener.context.stdout.text).toBe(recorder.context.stdout.text);
    await second.context.stderr.until(/the source of market has ended/);
    for (const { context, exit } of [first, second]) {
      context.interrupt$.next('SIGINT');
      expect(await exit).toBe(0);
    }
  });

  it.each([
    ['1', 'as recorded'],
    ['max', 'as fast as possible'],
  ])('describes the speed of a recording at --speed %s', async (speed, words) => {
    const file = folder.path(`recording-${speed}`);
    of(new Frame('market', Buffer.from('x'), false, 1, 1))
      .pipe(recordTo(file))
      .subscribe();
    const { context, exit } = await serve(`--replay ${file} --speed ${speed}`);
    expect(context.stdout.text).toContain(`recording-${speed}, ${words}, from when`);
    expect(context.stdout.text).toMatch(/ raw {6}nothing: .* contains no frame of this feed\n/);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('begins a feed with its first frame, even if it was recorded late', async () => {
    const file = folder.path('late');
    const at = (feed: 'market' | 'raw', ms: number) => new Frame(feed, Buffer.from(`${feed} ${ms}`), false, ms, 1);
    from([at('raw', 0), at('market', 3_600_000), at('raw', 3_600_010), at('market', 3_600_100)])
      .pipe(recordTo(file))
      .subscribe();
    const { context, exit, env } = await serve(`--replay ${file} --plan developer`);
    const market = start('listen market --count 2', env);
    expect(await market.exit).toBe(0);
    expect(market.context.stdout.text).toBe('market 3600000\nmarket 3600100\n');
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('does not report a feed as empty when it has not searched the whole recording', async () => {
    const file = folder.path('long');
    const [long, short] = [Buffer.alloc(17_000_000, 'x'), Buffer.from('x')];
    from([new Frame('market', long, false, 0, 1), new Frame('raw', short, false, 1, 1)])
      .pipe(recordTo(file))
      .subscribe();
    const { context, exit } = await serve(`--replay ${file}`);
    expect(context.stdout.text).toMatch(/ raw {6}its frames in /);
    context.interrupt$.next('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('explains why it cannot replay a file', async () => {
    const missing = start(`serve --replay ${folder.path('missing')}`);
    expect(await missing.exit).toBe(8);
    expect(missing.context.stderr.text).toMatch(
      /Cannot read the recording .*missing: there is no such file or folder\.\n$/,
    );
    const empty = start(`serve --replay ${await folder.file('empty', '')}`);
    expect(await empty.exit).toBe(8);
    expect(empty.context.stderr.text).toContain('The recording of --replay contains no frame.');
  });

  it('serves over TLS, with instructions for the client', async () => {
    const { context, exit, env } = await serve('--tls --plan developer');
    expect(env.TRADE_FEED_BASE_URL).toMatch(/^https:/);
    const [, caFile = ''] = /export NODE_EXTRA_CA_CERTS=(\S+) .*--ca \1$/m.exec(context.stdout.text) ?? [];
    expect(await start(`listen --count 1 --ca ${caFile}`, env).exit).toBe(0);
    const untrusting = start('listen --count 1', env);
    expect(await untrusting.exit).toBe(6);
    expect(untrusting.context.stderr.text).toContain('Use --ca FILE for the CA of a private service');
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    await expect(access(caFile)).rejects.toThrow();
  });

  it('serves with the certificate of --cert and --key', async () => {
    const { cert, key } = await certificateFor();
    const [certFile, keyFile] = [await folder.file('cert.pem', cert), await folder.file('key.pem', key)];
    const { context, exit, env } = await serve(`--cert ${certFile} --key ${keyFile}`);
    expect(await start(`listen --count 1 --ca ${certFile}`, env).exit).toBe(0);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
  });

  it('sends the transactions of a node to raw, and batches of them to market', async () => {
    await using node = await startNode();
    const { context, exit, env } = await serve(`--upstream ${node.url}/planted-secret --plan developer`);
    expect(context.stdout.text).toMatch(
      /raw {6}pending transactions of the node at 127\.0\.0\.1:\d+, as it sends them/,
    );
    await context.stderr.until(/Z the node at 127\.0\.0\.1:\d+ sends transactions\n/);
    const raw = start('listen raw --count 2', env);
    await raw.context.stderr.until(/connection 1 is open/);
    node.send({ hash: '0x1', from: '0xa' });
    node.send({ hash: '0x2' });
    expect(await raw.exit).toBe(0);
    expect(raw.context.stdout.text).toBe('{"hash":"0x1","from":"0xa"}\n{"hash":"0x2"}\n');
    const market = start('listen --count 1', env);
    await market.context.stderr.until(/connection 1 is open/);
    node.send({ hash: '0x3' });
    expect(await market.exit).toBe(0);
    expect(market.context.stdout.text).toMatch(/^\{"batch":\d+,"transactions":\[(\{"hash":"0x\d".*\},?)+\]\}\n$/);
    expect(node.requests).toHaveLength(1);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
    expect(context.stdout.text + context.stderr.text).not.toContain('planted');
  });

  it('connects to the node again, and shows why', async () => {
    const node = await startNode();
    const { context, exit } = await serve(`--upstream ${node.url}`);
    await context.stderr.until(/sends transactions/);
    for (const socket of node.sockets) socket.terminate();
    await context.stderr.until(/Z no connection to the node at \S+: closed with 1006; connecting again in \d+ ms\n/);
    await context.stderr.until(/sends transactions[^]*sends transactions/);
    await node[Symbol.asyncDispose]();
    await context.stderr.until(/ECONNREFUSED/);
    await using again = await startNode(undefined, { port: node.port });
    await context.stderr.until(/(sends transactions[^]*){3}/);
    expect(again.sockets.size).toBe(1);
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
  });

  it('explains that a node is not suitable, and continues to run', async () => {
    await using node = await startNode({ error: { message: 'method not found' } });
    const { context, exit } = await serve(`--upstream ${node.url}`);
    for (const feed of ['market', 'raw'])
      await context.stderr.until(new RegExp(`the source of ${feed} failed: The node refuses .*method not found`));
    context.interrupt$.next('SIGINT');
    expect(await exit).toBe(0);
  });

  it('reports a port that is in use', async () => {
    const first = await serve('');
    const { port } = new URL(first.env.TRADE_FEED_BASE_URL);
    const second = start(`serve --port ${port}`);
    expect(await second.exit).toBe(8);
    expect(second.context.stderr.text).toBe(
      `rx-trade-feed: Cannot listen on port ${port} of 127.0.0.1: the port is in use. Use another port with --port, or omit --port.\n`,
    );
    first.context.interrupt$.next('SIGINT');
    expect(await first.exit).toBe(0);
  });

  it('explains options that cannot be combined', async () => {
    const feed = start('serve --feed raw');
    expect(await feed.exit).toBe(2);
    expect(feed.context.stderr.text).toContain('--feed is the feed of --source: use both.');
    const pairs = [
      ['--speed 2', '--speed is the speed of --replay: use both.'],
      ['--replay f --source g', '--replay and --source cannot be combined: use one of them.'],
      ['--replay f --rate 5', '--rate and --seed do not apply to --replay; use --speed.'],
      ['--upstream ws://a --source g', '--upstream cannot be combined with --source, --replay, --rate or --seed.'],
      ['--upstream ws://a --seed 5', '--upstream cannot be combined'],
      ['--replay f --seed 5', '--rate and --seed do not apply to --replay; use --speed.'],
    ] as const;
    for (const [options, words] of pairs) {
      const { context, exit } = start(`serve ${options}`);
      expect(await exit).toBe(2);
      expect(context.stderr.text).toContain(words);
    }
    const [cert, key] = [await folder.file('no-cert', 'x'), await folder.file('no-key', 'y')];
    const pem = start(`serve --cert ${cert} --key ${key}`);
    expect(await pem.exit).toBe(2);
    expect(pem.context.stderr.text).toContain('--cert and --key must contain a PEM certificate and its key.');
  });
});
