/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { build, type BuildOptions } from 'esbuild';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { Frame } from '../../src/protocol/frame.js';
import { lost, opened } from '../operators/stream.js';
import { withoutNewerApis } from '../support/newer-apis.js';
import { connectAgain, frameLineOf, hello, message, serve, stream } from './support.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Bundles the sources for browsers. */
const bundle = async (options: BuildOptions) => {
  const { outputFiles, metafile } = await build({
    ...{ absWorkingDir: root, bundle: true, minify: true, format: 'esm', platform: 'browser', target: 'es2022' },
    ...options,
    ...{ write: false, metafile: true, logLevel: 'silent' },
  });
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path));
  return { text: outputFiles[0]!.text, outputFiles, imports, inputs: Object.keys(metafile.inputs) };
};

const rxjs = { external: ['rxjs', 'rxjs/*'] };

// test/e2e/built-package.test.ts has the limits of a page without shared tabs.
it('the bundle of rx-trade-feed/browser has a file for shared tabs, and a page that loads it stays below 15,100 bytes with gzip', async () => {
  const { outputFiles, inputs } = await bundle({
    ...{ entryPoints: ['src/browser/index.ts'], ...rxjs, outdir: 'out', splitting: true },
  });
  const bytesOf = (files: typeof outputFiles) =>
    files.reduce((sum, { text }) => sum + gzipSync(text, { level: 9 }).length, 0);
  const tabs = outputFiles.filter(({ path }) => basename(path).startsWith('shared-feed'));
  expect(tabs).toHaveLength(1);
  // With the files that are in the bundle, for a bundle that is too large.
  expect([bytesOf(tabs) < 3_500, bytesOf(outputFiles) < 15_100, inputs]).toEqual([true, true, inputs]);
  expect(outputFiles.map(({ text }) => text).join()).not.toMatch(
    /\b(Buffer|process|require|global|setImmediate|__dirname)\b/,
  );
});

it('the bundle of rx-trade-feed/operators contains no built-in of Node', async () => {
  const { text, imports, inputs } = await bundle({ entryPoints: ['src/operators/index.ts'], ...rxjs });
  expect(imports.filter((path) => !path.startsWith('rxjs'))).toEqual([]);
  expect(inputs.filter((path) => /(^|\/)(node|transport|testing|relay|cli)\//.test(path))).toEqual([]);
  // `logEvents` checks whether it's in Node, and `shareFeed` asks for its async contexts; they use nothing else of it.
  const own = text.replace('"process"in globalThis', '').replace(/\{process:\w+\}=globalThis/, '');
  expect(own).not.toMatch(/\b(Buffer|process|require|__dirname)\b/);
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
      const framesSeen = await all(from(events).pipe(frames()));
      for await (const _ of operators.toAsyncIterable({ capacity: 10 })(from(framesSeen))) counts.toAsyncIterable += 1;
      const hot = new Subject();
      const stats = firstValueFrom(hot.pipe(operators.feedStats({ everyMs: 1 })));
      for (const event of events) hot.next(event);
      const { bytes, dropped } = await stats;
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
  const [one, two, empty] = ['{"n":1}', '{"n":2}', ''].map((text) => frameLineOf(text, at));
  const lines = [opened(at), one, two, writeFrame(raw), gap, empty];
  const replaced = lost(at, { closeCode: 4001, reason: 'connection replaced' });
  it('receive and process a feed without any API that the oldest browser lacks', async () => {
    const [first, next] = [message('le-0.5.4.1', ...lines, { type: 'watermark', at }), ''];
    const web = await serve(...[first, next].map((text) => stream(hello() + text + connectAgain(replaced))));
    const { text } = await bundle({ stdin: { contents: program, resolveDir: root, loader: 'ts' }, format: 'iife' });
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
        ...{ connectionStatus: 3, gaps: 1, tumblingWindow: 1, countWindow: 2, mapValues: 10, filterValues: 8 },
        ...{ conflate: 2, mergeMapBounded: 4, distinctRecent: 4, decodeWith: 2, decodeEither: 4, whereBytes: 3 },
        ...{ whereField: 1, shareFeed: 4, toAsyncIterable: 4 },
      },
      stats: { bytes: 17, dropped: 4 },
      sliding: true,
      newer: [],
      missing: [],
    });
  }, 120_000);
});
