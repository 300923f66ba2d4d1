/** @lane processes */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { build, type BuildOptions, type Metafile } from 'esbuild';
import { builtinModules } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { Frame } from '../../src/protocol/frame.js';
import { lost, opened } from '../operators/stream.js';
import { frame, type Web } from '../relay/support.js';
import { withoutNewerApis } from '../support/newer-apis.js';
import { connectAgain, hello, message, startSteps, stream } from './support.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bundles the sources for browsers. */
const bundle = async (options: BuildOptions): Promise<{ readonly text: string; readonly metafile: Metafile }> => {
  const { outputFiles, metafile } = await build({
    ...{ absWorkingDir: root, bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
    ...options,
    ...{ write: false, metafile: true, logLevel: 'silent' },
  });
  return { text: outputFiles[0]!.text, metafile: metafile };
};

const importsOf = ({ outputs }: Metafile): string[] => [
  ...new Set(Object.values(outputs).flatMap(({ imports }) => imports.map(({ path }) => path))),
];

const inputsOf = ({ inputs }: Metafile): string[] => Object.keys(inputs);

const line = (each: Frame): string => writeFrame(each);

const gzipped = (text: string): number => gzipSync(text, { level: 9 }).length;

const expectLess = (bytes: number, limit: number, files: readonly string[]): void => {
  if (bytes >= limit) throw new Error(`${bytes} bytes gzipped, ${limit} are too many: ${files.join(', ')}`);
};

const rxjs = { external: ['rxjs', 'rxjs/*'] };
const built = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));

describe('the bundle of rx-trade-feed/browser', () => {
  it('imports only rxjs and eventsource-parser, and has less than 8,850 bytes with gzip', async () => {
    const { text, metafile } = await bundle({
      ...{ entryPoints: ['src/browser/index.ts'], external: [...rxjs.external, './tabs/shared-feed.js'] },
    });
    // Pages with `tabs: 'share'` load a separate file.
    expect(importsOf(metafile).sort()).toEqual(['./tabs/shared-feed.js', 'rxjs', 'rxjs/fetch']);
    expect(inputsOf(metafile).filter((path) => path.includes('node_modules'))).toEqual([
      'node_modules/eventsource-parser/dist/index.js',
    ]);
    expectLess(gzipped(text), 8_850, inputsOf(metafile));
  });

  it('has a file for shared tabs, and a page that loads it stays below 15,050 bytes with gzip', async () => {
    const { outputFiles, metafile } = await build({
      ...{ absWorkingDir: root, entryPoints: ['src/browser/index.ts'], ...rxjs, outdir: 'out', splitting: true },
      ...{ bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022', logLevel: 'silent' },
      ...{ write: false, metafile: true },
    });
    const sizes = Object.fromEntries(outputFiles.map(({ path, text }) => [basename(path), gzipped(text)]));
    const tabs = Object.entries(sizes).filter(([name]) => name.startsWith('shared-feed'));
    expect(tabs).toHaveLength(1);
    expectLess(tabs[0]![1], 3_500, Object.keys(sizes));
    expectLess(
      Object.values(sizes).reduce((sum, size) => sum + size, 0),
      15_050,
      Object.keys(metafile.inputs),
    );
  });

  it('uses no global of Node', async () => {
    const { text } = await bundle({ entryPoints: ['src/browser/index.ts'], ...rxjs });
    expect(text).not.toMatch(/\b(Buffer|process|require|global|setImmediate|__dirname)\b/);
  });
});

describe('the bundle of rx-trade-feed/operators', () => {
  it('contains no built-in of Node', async () => {
    const { text, metafile } = await bundle({ entryPoints: ['src/operators/index.ts'], ...rxjs });
    expect(importsOf(metafile).filter((path) => built.has(path))).toEqual([]);
    expect(importsOf(metafile).filter((path) => !path.startsWith('rxjs'))).toEqual([]);
    expect(inputsOf(metafile).filter((path) => /(^|\/)(node|transport|testing|relay|cli)\//.test(path))).toEqual([]);
    // `logEvents` checks whether it's in Node, and `shareFeed` asks for its async contexts; they use nothing else of it.
    const own = text.replace('"process"in globalThis', '').replace(/\{process:\w+\}=globalThis/, '');
    expect(own).not.toMatch(/\b(Buffer|process|require|__dirname)\b/);
  });
});

describe('both in a browser, where there is no Buffer', () => {
  const program = `
    import { firstValueFrom, from, lastValueFrom, Subject, toArray } from 'rxjs';
    import { Frame, relayFeed$, TradeFeedError } from './src/browser/index.ts';
    import * as operators from './src/operators/index.ts';
    import * as t from 'io-ts';

    const { conflate, connectionStatus, decodeWith, decodeEither, distinctRecent, feedStats, frames, gaps } = operators;
    const { countWindow, mergeMapBounded, shareFeed, slidingWindow, toAsyncIterable, tumblingWindow, whereBytes } = operators;
    const { filterValues, mapValues, whereField } = operators;
    const all = (source) => lastValueFrom(source.pipe(toArray()), { defaultValue: [] });

    globalThis.result = (async () => {
      const events = [];
      let error;
      const feed$ = relayFeed$(globalThis.url, { backoff: { initialDelayMs: 1, maxDelayMs: 2 }, maxFeedStops: 2 });
      await new Promise((done) => feed$.subscribe({ next: (event) => events.push(event), error: (e) => { error = e; done(); }, complete: done }));
      const feed = () => from(events);
      const framesSeen = await all(feed().pipe(frames()));
      const held = [];
      for await (const frame of toAsyncIterable({ capacity: 10 })(feed().pipe(frames()))) held.push(frame);
      return {
        types: events.map(({ type }) => type),
        isFrame: framesSeen.every((frame) => frame instanceof Frame && frame.data instanceof Uint8Array),
        texts: framesSeen.map((frame) => frame.text()),
        bytes: framesSeen.map((frame) => [...frame.data]),
        json: framesSeen[0].json(),
        stop: { code: error?.code, isOne: error instanceof TradeFeedError, advice: typeof error?.advice },
        states: (await all(feed().pipe(connectionStatus()))).map(({ state }) => state),
        gaps: (await all(feed().pipe(gaps()))).map(({ missed }) => missed),
        stats: await (async () => {
          const hot = new Subject();
          const stats = firstValueFrom(hot.pipe(feedStats({ everyMs: 1 })));
          for (const event of events) hot.next(event);
          const { frames, bytes, dropped } = await stats;
          return { frames, bytes, dropped };
        })(),
        windows: (await all(feed().pipe(tumblingWindow({ lengthMs: 3_600_000 })))).map(({ count }) => count),
        sliding: (await all(feed().pipe(slidingWindow({ lengthMs: 1_000, everyMs: 500 })))).length > 0,
        counted: (await all(feed().pipe(countWindow(2)))).map(({ count }) => count),
        conflated: (await all(feed().pipe(frames(), conflate((frame) => frame.feed, 1)))).length,
        merged: await all(feed().pipe(frames(), mergeMapBounded(async (frame) => frame.text().length, { concurrency: 2, capacity: 10 }))),
        distinct: (await all(feed().pipe(frames(), distinctRecent((frame) => frame.text(), { max: 10 })))).length,
        decoded: (await all(feed().pipe(frames(), decodeWith(t.type({ n: t.number }))))).map(({ value }) => value.n),
        either: (await all(feed().pipe(frames(), decodeEither(t.type({ n: t.number }))))).map(({ _tag }) => _tag),
        matching: (await all(feed().pipe(frames(), whereBytes('"n":2', new Uint8Array([0, 1]))))).length,
        many: (await all(feed().pipe(frames(), whereBytes('"n":2', '"n":3', '"n":1}')))).length,
        inField: (await all(feed().pipe(frames(), whereField('n', [2, 'ü'])))).length,
        mapped: await all(feed().pipe(mapValues((frame) => frame.byteLength), filterValues((bytes) => bytes > 3), frames())),
        shared: (await all(feed().pipe(frames(), shareFeed()))).length,
        held: held.length,
        newer: globalThis.newer(),
        missing: ['Buffer', 'process', 'require', 'setImmediate'].filter((name) => name in globalThis),
      };
    })();`;

  const at = Date.now();
  const gap = { type: 'gap', from: at, to: at, durationMs: 0, failure: lost(at), missed: 4 };
  const raw = new Frame('raw', Buffer.of(0xff, 0, 1), true, at, 1);
  const lines = [
    opened(at),
    line(frame('{"n":1}', at)),
    line(frame('{"n":2}', at)),
    line(raw),
    gap,
    line(frame('', at)),
  ];
  const replaced = lost(at, { closeCode: 4001, reason: 'connection replaced' });
  let web: Web;
  let text = '';

  beforeAll(async () => {
    web = await startSteps(
      (...args) =>
        stream(hello() + message('e.5.4.1', ...lines, { type: 'watermark', at }) + connectAgain(replaced))(...args),
      (...args) => stream(hello() + connectAgain(replaced))(...args),
    );
    ({ text } = await bundle({ stdin: { contents: program, resolveDir: root, loader: 'ts' }, format: 'iife' }));
  }, 120_000);

  afterAll(async () => {
    await web[Symbol.asyncDispose]();
  });

  it('receive and process a feed without any API that the oldest browser lacks', async () => {
    // Globals that Node and browsers share.
    const { fetch, AbortController, TextDecoder, TextEncoder, URL, atob, Headers, Response } = globalThis;
    const { setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, performance, Error, TypeError } =
      globalThis;
    const webGlobals = {
      ...{ fetch, AbortController, TextDecoder, TextEncoder, URL, atob, Headers, Response, performance, console },
      ...{ setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, Error, TypeError, Uint8Array },
    };
    // Subclasses, so that only their static methods are removed.
    class PageUrl extends URL {}
    class PageAbortSignal extends AbortSignal {}
    for (const [name, base] of [
      ['canParse', PageUrl],
      ['parse', PageUrl],
      ['any', PageAbortSignal],
    ] as const)
      Object.defineProperty(base, name, { value: undefined });
    const context = createContext({ ...webGlobals, URL: PageUrl, AbortSignal: PageAbortSignal, url: web.url });
    runInContext(`globalThis.newer = ${String(withoutNewerApis)}; globalThis.newer();`, context);
    runInContext(text, context);
    const result = (await (context as unknown as { result: Promise<unknown> }).result) as object;
    expect(JSON.parse(JSON.stringify(result))).toEqual({
      types: [
        'opened',
        'frame',
        'frame',
        'frame',
        'gap',
        'frame',
        'watermark',
        'disconnected',
        'reconnecting',
        'stopped',
      ],
      isFrame: true,
      texts: ['{"n":1}', '{"n":2}', '\ufffd\0\u0001', ''],
      bytes: [[...Buffer.from('{"n":1}')], [...Buffer.from('{"n":2}')], [255, 0, 1], []],
      json: { n: 1 },
      stop: { code: 'connection-replaced', isOne: true, advice: 'string' },
      states: ['live', 'reconnecting', 'stopped'],
      gaps: [4],
      stats: { frames: 4, bytes: 17, dropped: 4 },
      windows: [4],
      sliding: true,
      counted: [2, 2],
      conflated: 2,
      merged: [7, 7, 3, 0],
      distinct: 4,
      decoded: [1, 2],
      either: ['Right', 'Right', 'Left', 'Left'],
      matching: 2,
      many: 2,
      inField: 1,
      mapped: [7, 7],
      shared: 4,
      held: 4,
      newer: [],
      missing: [],
    });
  });
});
