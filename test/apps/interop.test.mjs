// Runs the pins of test/interop/pins.mjs with RxJS 9 in Node and with the Observable of Chromium, and the programs of docs/interop.md as a newcomer does.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { defer } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { marketBatches$, startTradeFeedService } from 'rx-trade-feed/testing';
import { testPins } from '../interop/in-node.mjs';
import { bridged, cold, native } from '../interop/pins.mjs';
import {
  fencesOf,
  launchChromium,
  newPage,
  installPackages,
  patienceMs,
  root,
  run,
  serve,
  tarball,
  temporaryFolder,
} from './support.mjs';

const packages = ['rxjs@7.8.2', 'rxjs-9@npm:rxjs@9.0.0-beta.0', 'effect@4.1.0', 'react@19.3.1', 'react-dom@19.3.1'];
const project = temporaryFolder('rx-trade-feed-interop-');
writeFileSync(join(project, 'package.json'), '{"type":"module"}');
await installPackages(project, [await tarball(), 'typescript@6', ...packages]);
const browser = await launchChromium();
const service = await startTradeFeedService({ sources: { market: marketBatches$({ rate: 100 }) } });
after(async () => {
  await browser.close();
  await service.shutdown();
});

const rx9 = () => import(pathToFileURL(createRequire(join(project, 'index.js')).resolve('rxjs-9')));

describe('Node, RxJS 9', () => testPins(test, { ...bridged, ...cold }, rx9));
describe('Node, RxJS 9, received in a worker', () => testPins(test, bridged, rx9, { receiveIn: 'worker' }));

/** Bundles the script of a page. */
const bundle = async (script, from) => {
  const settings = { stdin: { contents: script, resolveDir: from, loader: 'jsx' }, jsx: 'automatic' };
  const { outputFiles } = await build({
    ...{ ...settings, bundle: true, write: false, format: 'esm', platform: 'browser', logLevel: 'silent' },
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0].text;
};
/** The bundles so far, by script: many tests open the same page. */
const bundles = new Map();

/** Opens a page with a script and a relay. `streams` counts the feed's requests. */
const open = async (t, script, from = root) => {
  if (!bundles.has(script)) bundles.set(script, await bundle(script, from));
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  const relay = createRelay(defer(() => tradeFeedEvents$('market', { baseUrl: service.baseUrl, apiKey })));
  const state = { isAllowed: true, streams: 0 };
  const feed = relayHandler(relay, { authorize: () => state.isAllowed && { id: 'page' } });
  const server = await serve((request, response) => {
    if (request.url.startsWith('/feed')) {
      state.streams += 1;
      return void feed(request, response);
    }
    if (request.url === '/stop' || request.url === '/allow') {
      state.isAllowed = request.url === '/allow';
      if (!state.isAllowed) relay.disconnect('page');
      return void response.end();
    }
    const isScript = request.url === '/page.js';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    response.end(
      isScript
        ? bundles.get(script)
        : '<!doctype html><title>interop</title><link rel="icon" href="data:,"><main></main><script type="module" src="/page.js"></script>',
    );
  });
  const { page, errors, close } = await newPage(browser);
  t.after(async () => {
    await close();
    await relay.close();
    server.close();
  });
  await page.goto(server.url);
  return { page, errors, state };
};

const pinsOfPage = { ...bridged, ...native };
const pageOfPins = `
  import { relayFeed$ } from 'rx-trade-feed/browser';
  import { frames } from 'rx-trade-feed/operators';
  import { bridged, native } from './test/interop/pins.mjs';
  const pins = { ...bridged, ...native };
  const reported = () => new Promise((done) => {
    addEventListener('error', (event) => {
      event.preventDefault();
      done(event.error.name);
    }, { once: true });
  });
  globalThis.runPin = async (title) => {
    const feed$ = relayFeed$('/feed').pipe(frames());
    await pins[title]({
      ...{ Kind: globalThis.Observable, feed$, reported },
      stop: () => fetch('/stop'),
      allow: () => fetch('/allow'),
    });
  };`;

describe('Chromium, its own Observable, over a relay', () => {
  for (const title of Object.keys(pinsOfPage)) {
    test(title, { timeout: patienceMs }, async (t) => {
      const { page } = await open(t, pageOfPins);
      await page.waitForFunction(() => globalThis.runPin !== undefined);
      const nativeCode = await page.evaluate(() => String(globalThis.Observable));
      assert.match(nativeCode, /\[native code\]/);
      await page.evaluate((each) => globalThis.runPin(each), title);
    });
  }
});

const fences = fencesOf('docs/interop.md');
const programWith = (text) => fences.find(({ code }) => code.includes(text)).code;

/** Runs a program of the page in the project, and returns what it printed. */
const printed = async (code) => {
  const file = join(project, 'program.mjs');
  writeFileSync(file, code);
  const apiKey = service.createAccount().createApiKey();
  const env = { PATH: process.env.PATH, TRADE_FEED_BASE_URL: service.baseUrl, TRADE_FEED_API_KEY: apiKey };
  // The feed warns if a connection takes 5 s, as it can on a busy machine.
  const args = ['--disable-warning=TradeFeedWarning', file];
  return run(process.execPath, args, { cwd: project, env, timeout: patienceMs });
};

describe('docs/interop.md', () => {
  test('RxJS 9: the program prints three frames for each of two subscribers', async () => {
    assert.equal((await printed(programWith("'rxjs-9'"))).trim().split('\n').length, 6);
  });

  test('Effect: the program prints three frames and ends', async () => {
    assert.match(await printed(programWith("'effect'")), /^(\{"batch":.+\}\n){3}$/);
  });

  for (const [title, text, shown] of [
    ['shows three frames of its own Observable', 'toPlatform(Observable)(relayFeed$', '3 frames'],
    ['reads a web stream of frames', 'new ReadableStream', '{"batch":'],
  ])
    test(`a browser ${title}`, async (t) => {
      const { page, errors } = await open(t, programWith(text), project);
      await page.waitForFunction((start) => document.title.startsWith(start), shown);
      assert.deepEqual(errors, []);
    });

  test('React renders the number of frames', async (t) => {
    const { page, errors, state } = await open(t, programWith('useSyncExternalStore'), project);
    await page.getByText(/^[1-9]\d* frames$/).waitFor();
    assert.equal(state.streams, 1);
    assert.deepEqual(errors, []);
  });
});

test('an error of toStore reaches the error boundary of React, and its reset subscribes again', async (t) => {
  const program = `
    import { Component, useSyncExternalStore } from 'react';
    import { createRoot } from 'react-dom/client';
    import { Observable } from 'rxjs';
    import { toStore } from 'rx-trade-feed/interop';
    globalThis.subscriptions = 0;
    const store = toStore(0)(new Observable((subscriber) => {
      globalThis.subscriptions += 1;
      globalThis.source = subscriber;
    }));
    const Value = () => <p>value {useSyncExternalStore(store.subscribe, store.getSnapshot)}</p>;
    class Boundary extends Component {
      state = {};
      static getDerivedStateFromError = ({ message }) => ({ message });
      render() {
        if (!this.state.message) return this.props.children;
        return <button onClick={() => this.setState({ message: undefined })}>{this.state.message}</button>;
      }
    }
    createRoot(document.querySelector('main')).render(<Boundary><Value /></Boundary>);`;
  const { page } = await open(t, program, project);
  await page.waitForFunction(() => globalThis.source !== undefined);
  await page.evaluate(() => {
    globalThis.source.next(7);
    globalThis.source.error(new Error('stopped'));
  });
  await page.getByRole('button', { name: 'stopped' }).click();
  await page.getByText('value 7').waitFor();
  await page.waitForFunction(() => globalThis.subscriptions === 2);
  await page.evaluate(() => globalThis.source.next(8));
  await page.getByText('value 8').waitFor();
});

test('the types: toPlatform returns the Observable of RxJS 9 with the type of its values', async () => {
  const program = `
    import { ColdObservable } from 'rxjs-9';
    import type { Frame } from 'rx-trade-feed';
    import { tradeFeed$ } from 'rx-trade-feed';
    import { fromPlatform, toPlatform } from 'rx-trade-feed/interop';
    const shared: Observable<Frame> = toPlatform(Observable)(tradeFeed$('market'));
    const cold: ColdObservable<Frame> = toPlatform(ColdObservable)(tradeFeed$('market'));
    shared.map((frame) => frame.text()).subscribe((text: string) => console.log(text));
    fromPlatform(cold).subscribe((frame) => console.log(frame.text()));
    // @ts-expect-error: a text isn't a frame
    const wrong: Observable<string> = toPlatform(Observable)(tradeFeed$('market'));`;
  writeFileSync(join(project, 'types.ts'), program);
  const settings = '--ignoreConfig --noEmit --strict --skipLibCheck --target es2022 --lib es2022,dom --module nodenext';
  await run(process.execPath, ['node_modules/typescript/bin/tsc', ...settings.split(' '), 'types.ts'], {
    cwd: project,
  });
});
