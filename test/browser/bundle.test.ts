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
const bundle = async (options: BuildOptions) => {
  const { outputFiles, metafile } = await build({
    ...{ absWorkingDir: root, bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
    ...options,
    ...{ write: false, metafile: true, logLevel: 'silent' },
  });
  return { text: outputFiles[0]!.text, outputFiles, metafile };
};

const importsOf = ({ outputs }: Metafile): string[] => [
  ...new Set(Object.values(outputs).flatMap(({ imports }) => imports.map(({ path }) => path))),
];

const inputsOf = ({ inputs }: Metafile): string[] => Object.keys(inputs);

const line = (each: Frame): string => writeFrame(each);

const gzipped = (text: string): number => gzipSync(text, { level: 9 }).length;

const rxjs = { external: ['rxjs', 'rxjs/*'] };
const built = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));

// test/e2e/built-package.test.ts has the limits of a page without shared tabs.
describe('the bundle of rx-trade-feed/browser', () => {
  it('has a file for shared tabs, and a page that loads it stays below 15,050 bytes with gzip', async () => {
    const { outputFiles, metafile } = await bundle({
      ...{ entryPoints: ['src/browser/index.ts'], ...rxjs, outdir: 'out', splitting: true },
    });
    const sizes = outputFiles.map(({ path, text }) => ({ name: basename(path), bytes: gzipped(text) }));
    const tabs = sizes.filter(({ name }) => name.startsWith('shared-feed'));
    expect(tabs).toHaveLength(1);
    const files = inputsOf(metafile).join(', ');
    expect([tabs[0]!.bytes < 3_500, files]).toEqual([true, files]);
    expect([sizes.reduce((sum, { bytes }) => sum + bytes, 0) < 15_050, files]).toEqual([true, files]);
    expect(outputFiles.map(({ text }) => text).join()).not.toMatch(
      /\b(Buffer|process|require|global|setImmediate|__dirname)\b/,
    );
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

    const { frames } = operators;
    const all = (source) => lastValueFrom(source.pipe(toArray()), { defaultValue: [] });
    const codec = t.type({ n: t.number });
    const ofEvents = {
      connectionStatus: [],
      gaps: [],
      tumblingWindow: [{ lengthMs: 3_600_000 }],
      countWindow: [2],
      mapValues: [(frame) => frame.byteLength],
      filterValues: [(frame) => frame.byteLength > 3],
    };
    const ofFrames = {
      conflate: [(frame) => frame.feed, 1],
      mergeMapBounded: [async (frame) => frame.text().length, { concurrency: 2, capacity: 10 }],
      distinctRecent: [(frame) => frame.text(), { max: 10 }],
      decodeWith: [codec],
      decodeEither: [codec],
      whereBytes: ['"n":2', '"n":3', '"n":1}', new Uint8Array([0, 1])],
      whereField: ['n', [2, 'ü']],
      shareFeed: [],
    };

    globalThis.result = (async () => {
      const events = [];
      let error;
      const feed$ = relayFeed$(globalThis.url, { backoff: { initialDelayMs: 1, maxDelayMs: 2 }, maxFeedStops: 2 });
      await new Promise((done) => feed$.subscribe({ next: (event) => events.push(event), error: (e) => { error = e; done(); }, complete: done }));
      const counts = {};
      const count = async (source$, of) => {
        for (const [name, args] of Object.entries(of)) counts[name] = (await all(source$.pipe(operators[name](...args)))).length;
      };
      await count(from(events), ofEvents);
      await count(from(events).pipe(frames()), ofFrames);
      const sliding = await all(from(events).pipe(operators.slidingWindow({ lengthMs: 1_000, everyMs: 500 })));
      counts.toAsyncIterable = 0;
      for await (const _ of operators.toAsyncIterable({ capacity: 10 })(from(events).pipe(frames()))) counts.toAsyncIterable += 1;
      const hot = new Subject();
      const stats = firstValueFrom(hot.pipe(operators.feedStats({ everyMs: 1 })));
      for (const event of events) hot.next(event);
      const { bytes, dropped } = await stats;
      const framesSeen = await all(from(events).pipe(frames()));
      return {
        types: events.map(({ type }) => type).join(' '),
        isFrame: framesSeen.every((frame) => frame instanceof Frame && frame.data instanceof Uint8Array),
        texts: framesSeen.map((frame) => frame.text()),
        bytes: framesSeen.map((frame) => [...frame.data]),
        json: framesSeen[0].json(),
        stop: { code: error?.code, isOne: error instanceof TradeFeedError, advice: typeof error?.advice },
        counts,
        stats: { bytes, dropped },
        sliding: sliding.length > 0,
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
      types: 'opened frame frame frame gap frame watermark disconnected reconnecting stopped',
      isFrame: true,
      texts: ['{"n":1}', '{"n":2}', '\ufffd\0\u0001', ''],
      bytes: [[...Buffer.from('{"n":1}')], [...Buffer.from('{"n":2}')], [255, 0, 1], []],
      json: { n: 1 },
      stop: { code: 'connection-replaced', isOne: true, advice: 'string' },
      counts: {
        ...{
          connectionStatus: 3,
          gaps: 1,
          tumblingWindow: 1,
          countWindow: 2,
          mapValues: 10,
          filterValues: 8,
        },
        ...{ conflate: 2, mergeMapBounded: 4, distinctRecent: 4, decodeWith: 2, decodeEither: 4, whereBytes: 3 },
        ...{ whereField: 1, shareFeed: 4, toAsyncIterable: 4 },
      },
      stats: { bytes: 17, dropped: 4 },
      sliding: true,
      newer: [],
      missing: [],
    });
  });
});
