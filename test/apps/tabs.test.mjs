// Tabs of Chromium that share one stream of a relay: what each of them gets, and how many streams the relay has, whatever happens to a tab.
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import { chromium as chromiumDriver } from 'playwright-core';
import { Subject } from 'rxjs';
import { Frame, createTradeFeedError } from 'rx-trade-feed';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { chromium, chromiumArgs } from './support.mjs';

/** A page that keeps what it gets. */
const program = `
  import { relayFeed$ } from 'rx-trade-feed/browser';

  globalThis.seen = { numbers: [], types: [], missed: 0, gaps: 0, streams: 0, error: undefined };
  const { fetch } = globalThis;
  globalThis.fetch = (...args) => {
    seen.streams += 1;
    return fetch(...args);
  };
  const options = JSON.parse(decodeURIComponent(location.search.slice(1)));
  const resumeIn = options.resume ? sessionStorage : undefined;
  delete options.resume;
  globalThis.feed = relayFeed$('/feed', { tabs: 'share', resumeIn, ...options }).subscribe({
    next: (event) => {
      if (event.type === 'frame') seen.numbers.push(event.json());
      else if (event.type === 'disconnected') seen.types.push(event.failure.code);
      else if (event.type !== 'watermark') seen.types.push(event.type);
      if (event.type === 'gap') [seen.gaps, seen.missed] = [seen.gaps + 1, seen.missed + event.missed];
    },
    error: ({ code }) => (seen.error = code),
  });`;

let files;
let browser;
before(async () => {
  const { outputFiles } = await build({
    ...{ stdin: { contents: program, resolveDir: process.cwd() }, bundle: true, write: false, outdir: '/' },
    ...{ format: 'esm', splitting: true, platform: 'browser', target: 'es2022', logLevel: 'silent' },
  });
  files = new Map(outputFiles.map(({ path, text }) => [path.slice(1), text]));
  browser = await chromiumDriver.launch({ executablePath: chromium(), args: chromiumArgs });
});
after(() => browser?.close());

let source;
let relay;
let server;
let context;
let sent;
let pump;
beforeEach(async () => {
  sent = 0;
  source = new Subject();
  relay = createRelay(source);
  const feed = relayHandler(relay, { authorize: () => true });
  server = createServer((request, response) => {
    const name = request.url.slice(1).split('?')[0];
    if (name === 'feed') feed(request, response);
    else if (files.has(name)) response.setHeader('content-type', 'text/javascript').end(files.get(name));
    else
      response
        .setHeader('content-type', 'text/html')
        .end('<!doctype html><title>tab</title><script type="module" src="/stdin.js"></script>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context = await browser.newContext();
});
afterEach(async () => {
  clearInterval(pump);
  await context.close();
  relay.close();
  server.close();
  server.closeAllConnections();
});

const streams = () => relay.status().clients.length;

/** Waits for a condition of this process or of a page. */
const eventually = async (what, holds) => {
  const deadline = performance.now() + 20_000;
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `in time: ${what}`);
    await delay(20);
  }
};

const send = () => source.next(new Frame('market', Buffer.from(String((sent += 1))), false, Date.now(), 1));
const open = () => source.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
const seen = (page) => page.evaluate(() => globalThis.seen);
const hasAll = async (page) => (await seen(page)).numbers.at(-1) === sent;
/** Whether a page gets the frames of this moment. */
const isThere = async (page) => (await seen(page)).numbers.at(-1) > sent - 50;

const openTab = async (options = {}) => {
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/?${encodeURIComponent(JSON.stringify(options))}`);
  return page;
};

/** Opens tabs that all have the state of the feed, and lets frames come from then on. */
const openTabs = async (count, options) => {
  const pages = [await openTab(options)];
  await eventually('a stream', () => streams() === 1);
  open();
  while (pages.length < count) pages.push(await openTab(options));
  for (const page of pages) await eventually('the state', async () => (await seen(page)).types.includes('opened'));
  pump = setInterval(send, 5);
  return pages;
};

/** Stops the frames, waits until all tabs have the last one, and gives what each has seen. */
const finish = async (pages) => {
  clearInterval(pump);
  send();
  for (const page of pages) await eventually('the last frame', () => hasAll(page));
  return Promise.all(pages.map(seen));
};

const inOrder = (from) => Array.from({ length: sent - from + 1 }, (_, n) => from + n);

/** The tab that has the stream: the one that asked for it last. */
const leaderOf = async (pages) => {
  const all = await Promise.all(pages.map(seen));
  const leaders = pages.filter((_, n) => all[n].streams > 0);
  assert.equal(leaders.length, 1);
  return leaders[0];
};

/** What a browser fires before it freezes a page and when it goes on: a driver's pages are visible, and are never frozen. */
const fire = (page, type) => page.evaluate((name) => document.dispatchEvent(new Event(name)), type);

const after100Frames = () => {
  const from = sent;
  return eventually('100 frames', () => sent >= from + 100);
};

describe('ten tabs', { timeout: 120_000 }, () => {
  test('have one stream, and each gets every frame in order, once', async () => {
    const pages = await openTabs(10);
    await after100Frames();
    assert.equal(streams(), 1);
    for (const { numbers, types } of await finish(pages)) {
      assert.deepEqual(numbers, inOrder(1));
      assert.deepEqual(types, ['opened']);
    }
    const counts = (await Promise.all(pages.map(seen))).map((each) => each.streams);
    assert.equal(
      counts.reduce((sum, each) => sum + each),
      1,
      'one tab has asked the relay',
    );
    assert.ok(
      [...files.keys()].some((name) => /^shared-feed-/.test(name)),
      'sharing is loaded as a file of its own',
    );
  });

  const losses = {
    'is closed': (leader) => leader.close(),
    unsubscribes: (leader) => leader.evaluate(() => globalThis.feed.unsubscribe()),
    'goes to another page': (leader) => leader.goto('about:blank'),
    crashes: async (leader) => {
      const crashed = leader.waitForEvent('crash');
      const session = await context.newCDPSession(leader);
      session.send('Page.crash').catch(() => undefined);
      await crashed;
    },
  };
  for (const [what, lose] of Object.entries(losses))
    test(`go on in one of the others when the leader ${what}: no frame is missing or comes twice`, async () => {
      const pages = await openTabs(10);
      await after100Frames();
      const leader = await leaderOf(pages);
      const others = pages.filter((page) => page !== leader);
      await lose(leader);
      await eventually('a new leader', async () => {
        const all = await Promise.all(others.map(seen));
        return all.every(({ types }) => types.filter((type) => type === 'opened').length === 2);
      });
      await after100Frames();
      assert.equal(streams(), 1);
      for (const { numbers, types } of await finish(others)) {
        assert.deepEqual(numbers, inOrder(1));
        assert.deepEqual(types, ['opened', 'relay-lost', 'reconnecting', 'opened']);
      }
    });

  test('all end with the error of the leader', async () => {
    const pages = await openTabs(10, { maxFeedStops: 1 });
    await after100Frames();
    clearInterval(pump);
    source.error(createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }));
    for (const page of pages)
      await eventually('the error', async () => (await seen(page)).error === 'connection-replaced');
    for (const { numbers } of await Promise.all(pages.map(seen))) assert.deepEqual(numbers, inOrder(1));
    await eventually('no lock', () => pages[0].evaluate(async () => (await navigator.locks.query()).held.length === 0));
  });
});

describe('a tab', { timeout: 120_000 }, () => {
  test('takes over from a leader that is held up, which follows afterwards', async () => {
    const pages = await openTabs(3, { idleTimeoutMs: 2_000 });
    await after100Frames();
    const leader = await leaderOf(pages);
    const others = pages.filter((page) => page !== leader);
    const held = leader.evaluate(() => {
      const until = performance.now() + 7_000;
      while (performance.now() < until);
    });
    await eventually(
      'the theft',
      async () => (await seen(others[0])).types.at(-1) === 'opened' && (await seen(others[0])).types.length > 1,
    );
    await held;
    await eventually('one stream', async () => streams() === 1 && (await isThere(leader)));
    for (const { numbers, types } of await finish(others)) {
      assert.deepEqual(numbers, inOrder(1));
      assert.deepEqual(types, ['opened', 'relay-stalled', 'reconnecting', 'opened']);
    }
    await eventually('the last frame', () => hasAll(leader));
    const { numbers, missed, types } = await seen(leader);
    assert.equal(numbers.length + missed, sent, 'what it missed it was told of');
    assert.equal(new Set(numbers).size, numbers.length);
    assert.ok(types.includes('relay-lost'), 'its connection is that of another tab');
    assert.equal(streams(), 1);
  });

  test('leaves when the browser freezes it, leader or follower, and says what it missed when it is back', async () => {
    const pages = await openTabs(3);
    const leader = await leaderOf(pages);
    const [follower, other] = pages.filter((page) => page !== leader);
    for (const [page, rest] of [
      [follower, [leader, other]],
      [leader, [other, follower]],
    ]) {
      await after100Frames();
      await fire(page, 'freeze');
      await after100Frames();
      for (const each of rest) await eventually('the frames', () => isThere(each));
      await fire(page, 'resume');
      await eventually('the frames', () => isThere(page));
      assert.equal(streams(), 1);
    }
    const [ofOther, ...ofBoth] = await finish([other, leader, follower]);
    assert.deepEqual(ofOther.numbers, inOrder(1));
    for (const { numbers, missed } of ofBoth) {
      assert.equal(numbers.length + missed, sent);
      assert.ok(missed >= 50);
      assert.equal(new Set(numbers).size, numbers.length);
    }
  });

  test('in the background gets every frame', async () => {
    const pages = await openTabs(3);
    await pages[1].bringToFront();
    await after100Frames();
    await pages[2].bringToFront();
    await after100Frames();
    for (const { numbers } of await finish(pages)) assert.deepEqual(numbers, inOrder(1));
  });

  test('that is loaded again says what it missed, and has it all when it is the only one', async () => {
    const pages = await openTabs(2, { resume: true });
    await after100Frames();
    for (const page of pages) {
      const last = (await seen(page)).numbers.at(-1);
      await page.reload();
      await eventually('frames', async () => (await seen(page)).numbers.length > 50);
      const { numbers, missed, gaps } = await seen(page);
      assert.ok(numbers[0] - 1 - missed >= last, 'no frame comes again');
      assert.equal(gaps, missed === 0 ? 0 : 1);
    }
    const [first, second] = pages;
    await first.close();
    const place = await second.evaluate(() => [globalThis.seen.numbers.at(-1), globalThis.feed.unsubscribe()][0]);
    await second.reload();
    await eventually('frames', async () => (await seen(second)).numbers.length > 50);
    const { numbers, gaps } = await seen(second);
    assert.deepEqual([numbers[0], gaps], [place + 1, 0]);
  });
});
