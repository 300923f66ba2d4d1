/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { access } from 'node:fs/promises';
import { PassThrough, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { from, lastValueFrom, NEVER, type Observable, Subject, toArray } from 'rxjs';
import { certificateFor as servedCertificate, serviceEventWords } from '../../../src/cli/commands/serve.js';
import { linesOf, openLines, pacedAt } from '../../../src/cli/payloads.js';
import { Frame } from '../../../src/index.js';
import { feedLog } from '../../../src/log/index.js';
import type { ServiceEvent } from '../../../src/testing/index.js';
import { certificateFor } from '../../support/certificate.js';
import { commandRunner, type Running } from '../support/fakes.js';
import { tempFolder } from '../support/temp-folder.js';

const folder = tempFolder();
const command = commandRunner();

/** Starts a service and reads the printed instructions. */
const serve = async (options = ''): Promise<Running & { settings: Record<string, string> }> => {
  const served = command(`serve ${options}`);
  await served.stdout.until(/npx rx-trade-feed listen/);
  const exports = served.stdout.text.matchAll(/^ {2}export (\w+)=(\S+)/gm);
  return { ...served, settings: Object.fromEntries([...exports].map(([, name = '', value = '']) => [name, value])) };
};

const listen = (args: string, { settings: env }: { settings: Record<string, string> }) =>
  command(`listen ${args}`, { env });

const frame = (feed: 'market' | 'raw', ms: number, text: string | Buffer, isBinary = false) =>
  new Frame(feed, Buffer.from(text), isBinary, ms, 1);
const logged = (name: string, frames: readonly Frame[]): string => {
  from(frames)
    .pipe(feedLog(folder.path(name)).append())
    .subscribe();
  return folder.path(name);
};

describe('serve', () => {
  it('serves the feeds that it prints, logs its events, and ends with 1001', async () => {
    const service = await serve('--plan developer --rate 500 --seed 7');
    expect(service.stdout.text).toMatch(/developer plan.*\n.*generated payloads, 500 a second \(seed 7\)/);
    const listener = listen('raw', service);
    await listener.stdout.until(/"hash":"0x[^]*\n/);
    await service.stderr.until(/Z ticket issued: account-1, raw\n\S+Z connection 1 is open: account-1, raw\n/);
    expect(await service.end()).toBe(0);
    expect(service.stderr.text).toMatch(/connection 1 closed by the service: 1001 "server shutdown", \d+ frames?\n$/);
    await listener.stderr.until(/Disconnected, server-shutdown: The service shut down/);
    expect(await listener.end()).toBe(0);
  });

  it('sends the lines of stdin to the feed of --feed as they arrive', async () => {
    const service = await serve('--source - --feed raw --plan developer');
    expect(service.stdout.text).toMatch(/raw {6}the lines of stdin, as they arrive[^]*listen raw\n/);
    const listener = listen('raw --count 2', service);
    await listener.stderr.until(/\(connection 1\)/);
    service.stdin.write('one\n');
    await listener.stdout.until(/^one\n$/);
    service.stdin.write('two\n');
    expect(await listener.exit).toBe(0);
    expect(await service.end()).toBe(0);
    expect(service.stdin.destroyed).toBe(true);
  });

  it('plays back the recorded frames of each feed at their intervals, from its first client on', async () => {
    const file = logged('both', [frame('raw', 0, 'r0'), frame('raw', 400, 'r2', true), frame('market', 600, 'm1')]);
    const service = await serve(`--replay ${file} --speed 2 --plan developer`);
    expect(service.stdout.text).toMatch(
      /raw {6}its frames in .*both, 2 times as fast, from when the first client connects[^]*listen raw\n/,
    );
    expect(service.stdout.text).toMatch(/ market +its frames in /);
    const startedAt = Date.now();
    const raw = listen('raw --json --count 2', service);
    expect(await raw.exit).toBe(0);
    const frameLines = raw.stdout.text.split('\n').filter((line) => line.includes('"frame"'));
    const [first, second] = frameLines.map((line) => JSON.parse(line) as { data: string; receivedAt: number });
    expect([first?.data, second?.data]).toEqual(['r0', 'cjI=']);
    // Doesn't measure from the first frame, which may arrive late.
    expect((second?.receivedAt ?? 0) - startedAt).toBeGreaterThanOrEqual(200);
    await service.stderr.until(/the source of raw has ended; the service continues to run/);
    const market = listen('market --count 1', service);
    expect(await market.exit).toBe(0);
    expect(market.stdout.text).toBe('m1\n');
  });

  it('reports at once that a log contains no frame of the feed', async () => {
    const service = await serve(`--replay ${logged('one', [frame('market', 1, 'x')])} --speed max`);
    expect(service.stdout.text).toContain('one, as fast as possible, from when');
    const listener = listen('raw', service);
    await service.stderr.until(/the source of raw has ended; the service continues to run/);
    expect(await listener.end()).toBe(0);
  });

  it('starts a feed at its first frame, even if that was recorded late', async () => {
    const [day, later] = [3_600_000, 3_600_100];
    const [one, two] = [frame('market', day, 'one'), frame('market', later, 'two')];
    const file = logged('late', [frame('raw', 0, 'r'), one, frame('raw', day + 10, 'r'), two]);
    const service = await serve(`--replay ${file} --plan developer`);
    expect(service.stdout.text).toContain('late, as recorded, from when');
    const market = listen('market --count 2', service);
    expect(await market.exit).toBe(0);
    expect(market.stdout.text).toBe('one\ntwo\n');
  });

  it('serves over TLS, with instructions for the client, or with the certificate of --cert and --key', async () => {
    const service = await serve('--tls --plan developer');
    expect(service.settings['TRADE_FEED_BASE_URL']).toMatch(/^https:/);
    const caFile = service.settings['NODE_EXTRA_CA_CERTS'] ?? '';
    expect(service.stdout.text).toContain(`CA       ${caFile} (only for this run; `);
    expect(await listen(`--count 1 --ca ${caFile}`, service).exit).toBe(0);
    const untrusting = listen('--count 1', service);
    expect(await untrusting.exit).toBe(5);
    expect(untrusting.stderr.text).toContain('pass its CA with --ca FILE');
    expect(await service.end()).toBe(0);
    await expect(access(caFile)).rejects.toThrow();
    const { cert, key } = await certificateFor();
    const [certFile, keyFile] = [await folder.file('cert.pem', cert), await folder.file('key.pem', key)];
    const own = await serve(`--cert ${certFile} --key ${keyFile}`);
    expect(await listen(`--count 1 --ca ${certFile}`, own).exit).toBe(0);
  });

  it('creates a certificate for this machine if the package for it is installed', async () => {
    const { tls, close } = await servedCertificate({ tls: true });
    const certificate = new X509Certificate(tls?.cert ?? '');
    expect([certificate.checkIP('127.0.0.1'), certificate.checkHost('localhost')]).toEqual(['127.0.0.1', 'localhost']);
    await close();
    const missing = () => Promise.reject(new Error("Cannot find package 'selfsigned'"));
    const words = expect.stringContaining('npm install --save-dev selfsigned');
    await expect(servedCertificate({ tls: true }, missing)).rejects.toMatchObject({ exitCode: 1, message: words });
  });

  it.each([
    ['--feed raw', 2, '--feed is the feed of --source: use both.'],
    ['--speed 2', 2, '--speed is the speed of --replay: use both.'],
    ['--replay f --source g', 2, "--replay and --source can't be combined: use one of them."],
    ['--replay f --rate 5', 2, "--rate and --seed don't apply to --replay. Use --speed."],
    ['--replay f --seed 5', 2, "--rate and --seed don't apply to --replay. Use --speed."],
    ['--cert x', 2, '--cert needs --key, and --key needs --cert: use both.'],
    ['--tls --key x', 2, 'use both.'],
    ['--cert TEXT --key TEXT', 2, '--cert and --key must contain a PEM certificate and its key.'],
    ['--cert missing --key x', 1, "Can't read the file of --cert: there is no such file."],
    ['--replay missing', 1, 'there is no such file or folder.'],
    ['--replay EMPTY', 1, 'contains no frame. Use one that does.'],
    ['--source missing', 1, "Can't read the file of --source: there is no such file."],
    ['--source .', 1, "Can't read the file of --source: the path is a directory."],
  ])('refuses `%s`', async (options, code, words) => {
    const [text, empty] = [await folder.file('text', 'x'), await folder.file('empty', '')];
    const { stderr, exit } = command(`serve ${options.replaceAll('TEXT', text).replace('EMPTY', empty)}`);
    expect(await exit).toBe(code);
    expect(stderr.text).toContain(words);
  });

  it('reports a port that is in use', async () => {
    const { port } = new URL((await serve()).settings['TRADE_FEED_BASE_URL'] ?? '');
    const { stderr, exit } = command(`serve --port ${port}`);
    expect(await exit).toBe(1);
    expect(stderr.text).toBe(
      `rx-trade-feed: Can't listen on port ${port} of 127.0.0.1: the port is in use. Use another port with --port, or omit --port.\n`,
    );
  });

  it.each<[string, ServiceEvent]>([
    [
      'ticket refused: a, 429 rate-limited, retry after 60 s',
      { at: 0, account: 'a', type: 'ticket-refused', status: 429, code: 'rate-limited', retryAfterSeconds: 60 },
    ],
    [
      'handshake refused: 401 ticket-missing',
      { at: 0, type: 'handshake-refused', status: 401, code: 'ticket-missing', account: undefined, feed: undefined },
    ],
    [
      'connection 3 closed by the service: 4001 "a␛", 1 frame',
      {
        ...{ at: 0, type: 'connection-closed', account: 'a', feed: 'market', connection: 3, code: 4001 },
        ...{ reason: 'a\x1b', by: 'service', frames: 1 },
      },
    ],
    [
      'contract violation: client-message, a, connection 3',
      { at: 0, type: 'violation', rule: 'client-message', account: 'a', connection: 3 },
    ],
    ['handshake cut off by a test', { at: 0, type: 'fault', endpoint: 'handshake', status: undefined }],
    [
      'the source of market failed: no␊more',
      { at: 0, type: 'source-ended', feed: 'market', error: new Error('no\nmore') },
    ],
  ])('reports `%s`', (words, event) => {
    expect(serviceEventWords(event)).toBe(words);
  });
});

const all = async <T>(values: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
};

describe('the lines of a source', () => {
  const listOf = <T>(lines$: Observable<T>): Promise<T[]> => lastValueFrom(lines$.pipe(toArray()));

  it('end only at newlines, whatever the size of the chunks, and leave out empty ones', async () => {
    const text = Buffer.from('{"名":"🚀"}\n\r\n\na\u2028b\rc\r\nlast');
    const lines = ['{"名":"🚀"}', 'a\u2028b\rc', 'last'];
    for (const chunks of [[...text].map((byte) => Buffer.of(byte)), [text]])
      expect(await all(linesOf(Readable.from(chunks)))).toStrictEqual(lines);
    expect(await all(linesOf(Readable.from([])))).toStrictEqual([]);
  });

  it('end the source with an error above 16 MiB, before any more is read', async () => {
    const pieceBytes = 64 * 1024;
    let pieces = 0;
    const endless = new Readable({ read: () => void endless.push(Buffer.alloc(pieceBytes, ++pieces === 1 ? 10 : 97)) });
    await expect(all(linesOf(endless))).rejects.toThrow(/a line has more than 16 MiB.+newline/);
    // One for the first line, 256 up to the limit, and at most those that the stream reads ahead.
    expect(pieces).toBeLessThan(1 + 256 + 5);
    expect(endless.destroyed).toBe(true);
    const large = [...Array<Buffer>(256).fill(Buffer.alloc(pieceBytes, 97)), Buffer.from('\nb\n')];
    expect((await all(linesOf(Readable.from(large)))).map((line) => line.length)).toEqual([256 * pieceBytes, 1]);
  });

  it('start when the first client connects if they are from a file or have a rate', async () => {
    const file = await folder.file('three', 'one\ntwo\nthree\n');
    const stdin = Readable.from([Buffer.from('one\ntwo\nthree\n')]);
    for (const [source, name] of Object.entries({ [file]: file, '-': 'stdin' })) {
      const firstClient$ = new Subject<void>();
      const { payloads$: lines$, description } = await openLines(source, 1_000, stdin, firstClient$);
      expect(description).toBe(`the lines of ${name}, 1000 a second from when the first client connects`);
      const lines = listOf(lines$);
      firstClient$.next();
      firstClient$.next();
      expect(await lines).toStrictEqual(['one', 'two', 'three']);
    }
    expect((await openLines(file, undefined, stdin, NEVER)).description).toContain('20 a second');
  });

  it('arrive from a named pipe even without a client', async () => {
    const pipe = folder.path('pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const { payloads$: lines$, description } = await openLines(pipe, undefined, new PassThrough(), NEVER);
    expect(description).toBe(`the lines of ${pipe}, as they arrive`);
    const lines = listOf(lines$);
    await folder.file('pipe', 'one\ntwo\n');
    expect(await lines).toStrictEqual(['one', 'two']);
  });

  it.each([
    [100, 6],
    [10_000, 600],
  ])('never exceed the rate %d', async (rate, count) => {
    const startedAt = performance.now();
    expect(await all(pacedAt(rate, Readable.from(Array(count).keys())))).toHaveLength(count);
    expect(performance.now() - startedAt).toBeGreaterThan(45);
  });
});
