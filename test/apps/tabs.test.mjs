// Checks Chromium tabs that share a relay's stream: each tab's events and the number of streams as tabs change and fail.
import { after, afterEach, beforeEach, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { build } from 'esbuild';
import { Subject } from 'rxjs';
import { Frame, createTradeFeedError } from 'rx-trade-feed';
import { createRelay, relayHandler } from 'rx-trade-feed/relay';
import { launchChromium, patienceMs, serve, waitUntil as until } from './support.mjs';

/** A page that records its events. */
const program = `
  import { relayFeed$ } from 'rx-trade-feed/browser';
  import { connectionStatus } from 'rx-trade-feed/operators';
  import { share } from 'rxjs';

  globalThis.received = { numbers: [], times: [], types: [], states: [], missed: 0, gaps: 0, streams: 0, error: undefined };
  const { fetch } = globalThis;
  globalThis.fetch = (...args) => {
    received.streams += 1;
    return fetch(...args);
  };
  const options = JSON.parse(decodeURIComponent(location.search.slice(1)));
  const resumeIn = options.resume ? sessionStorage : undefined;
  delete options.resume;
  const feed$ = relayFeed$('/feed', { tabs: 'share', resumeIn, ...options }).pipe(share());
  const status = feed$.pipe(connectionStatus()).subscribe({
    next: ({ state }) => received.states.push({ state, at: Date.now() }),
    error: () => undefined,
  });
  globalThis.feed = feed$.subscribe({
    next: (event) => {
      if (event.type === 'frame') {
        received.numbers.push(event.json());
        received.times.push(Date.now());
      }
      else if (event.type === 'disconnected') received.types.push(event.failure.code);
      else if (event.type !== 'watermark') received.types.push(event.type);
      if (event.type === 'gap') [received.gaps, received.missed] = [received.gaps + 1, received.missed + event.missed];
    },
    error: ({ code }) => (received.error = code),
  });
  feed.add(status);`;

const { outputFiles } = await build({
  ...{ stdin: { contents: program, resolveDir: process.cwd() }, bundle: true, write: false, outdir: '/' },
  ...{ format: 'esm', splitting: true, platform: 'browser', target: 'es2022', logLevel: 'silent' },
});
const files = new Map(outputFiles.map(({ path, text }) => [path.slice(1), text]));
const browser = await launchChromium();
after(() => browser.close());

let source;
let relay;
let server;
let context;
let sent;
let pump;
let unblock;
beforeEach(async () => {
  sent = 0;
  source = new Subject();
  relay = createRelay(source);
  const feed = relayHandler(relay, { authorize: () => true });
  server = await serve((request, response) => {
    const name = request.url.slice(1).split('?')[0];
    if (name === 'feed') feed(request, response);
    else if (name === 'block') unblock = () => response.end();
    else if (files.has(name)) response.setHeader('content-type', 'text/javascript').end(files.get(name));
    else
      response
        .setHeader('content-type', 'text/html')
        .end('<!doctype html><title>tab</title><script type="module" src="/stdin.js"></script>');
  });
  context = await browser.newContext();
  context.setDefaultTimeout(patienceMs);
});
afterEach(async () => {
  clearInterval(pump);
  await context.close();
  relay.close();
  server.close();
});

/** Waits for a condition of this process or of a page. */
const waitUntil = (what, isMet) => until(isMet, what);

const streams = () => relay.status().clients.length;

const send = () => source.next(new Frame('market', Buffer.from(String((sent += 1))), false, Date.now(), 1));
const open = () => source.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
const receivedBy = (page) => page.evaluate(() => globalThis.received);
const hasAll = async (page) => (await receivedBy(page)).numbers.at(-1) === sent;

/** Waits until a page has received a frame that was sent after this call. */
const receives = (page) => {
  const from = sent;
  return waitUntil('new frames', async () => (await receivedBy(page)).numbers.at(-1) > from);
};

const openTab = async (options = {}) => {
  const page = await context.newPage();
  await page.goto(`${server.url}/?${encodeURIComponent(JSON.stringify(options))}`);
  return page;
};

/** Opens tabs, waits until all have emitted `opened`, and starts sending frames. */
const openTabs = async (count, options) => {
  const pages = [await openTab(options)];
  await waitUntil('a stream', () => streams() === 1);
  open();
  while (pages.length < count) pages.push(await openTab(options));
  for (const page of pages) await waitUntil('the state', async () => (await receivedBy(page)).types.includes('opened'));
  pump = setInterval(send, 5);
  return pages;
};

/** Stops sending, waits until all tabs have the last frame, and returns what each tab received. */
const finish = async (pages) => {
  clearInterval(pump);
  send();
  for (const page of pages) await waitUntil('the last frame', () => hasAll(page));
  return Promise.all(pages.map(receivedBy));
};

const inOrder = (from) => Array.from({ length: sent - from + 1 }, (_, n) => from + n);

/** Returns the tab that opened the stream. */
const leaderOf = async (pages) => {
  const all = await Promise.all(pages.map(receivedBy));
  const leaders = pages.filter((_, n) => all[n].streams > 0);
  assert.equal(leaders.length, 1);
  return leaders[0];
};

/** Dispatches what a browser does before it freezes or after it resumes a page. It never freezes a driver's pages. */
const fire = (page, type) => page.evaluate((name) => document.dispatchEvent(new Event(name)), type);

const after100Frames = () => {
  const from = sent;
  return waitUntil('100 frames', () => sent >= from + 100);
};

describe('tabs', () => {
  test('share one stream, ten of them, and each receives every frame once, in order', async () => {
    const pages = await openTabs(10);
    await after100Frames();
    await waitUntil('one stream', () => streams() === 1);
    for (const { numbers, types } of await finish(pages)) {
      assert.deepEqual(numbers, inOrder(1));
      assert.deepEqual(types, ['opened']);
    }
    const all = await Promise.all(pages.map(receivedBy));
    const requests = all.reduce((sum, each) => sum + each.streams, 0);
    assert.equal(requests, 1, 'one tab has sent a request to the relay');
    const isSeparate = [...files.keys()].some((name) => /^shared-feed-/.test(name));
    assert.ok(isSeparate, 'the code for sharing is a separate file');
  });

  const losses = {
    'is closed': (leader) => leader.close(),
    unsubscribes: (leader) => leader.evaluate(() => globalThis.feed.unsubscribe()),
    'navigates to another page': (leader) => leader.goto('about:blank'),
    crashes: async (leader) => {
      const crashed = leader.waitForEvent('crash');
      const session = await context.newCDPSession(leader);
      session.send('Page.crash').catch(() => undefined);
      await crashed;
    },
  };
  for (const [event, lose] of Object.entries(losses))
    test(`continue with another leader when the leader ${event}, without missing or duplicate frames`, async () => {
      const pages = await openTabs(4);
      await after100Frames();
      const leader = await leaderOf(pages);
      const others = pages.filter((page) => page !== leader);
      await lose(leader);
      await waitUntil('a new leader', async () => {
        const all = await Promise.all(others.map(receivedBy));
        return all.every(({ types }) => types.filter((type) => type === 'opened').length === 2);
      });
      await after100Frames();
      await waitUntil('one stream', () => streams() === 1);
      for (const { numbers, types } of await finish(others)) {
        assert.deepEqual(numbers, inOrder(1));
        assert.deepEqual(types, ['opened', 'relay-lost', 'reconnecting', 'opened']);
      }
    });

  test('all error with the error of the leader', async () => {
    const pages = await openTabs(4, { maxFeedStops: 1 });
    await after100Frames();
    clearInterval(pump);
    source.error(createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' }));
    for (const page of pages)
      await waitUntil('the error', async () => (await receivedBy(page)).error === 'connection-replaced');
    for (const { numbers } of await Promise.all(pages.map(receivedBy))) assert.deepEqual(numbers, inOrder(1));
    await waitUntil('no lock', () => pages[0].evaluate(async () => (await navigator.locks.query()).held.length === 0));
  });
});

describe('a tab', () => {
  /** What blocks a page. Each returns what ends that, or nothing if it ends by itself. */
  const blocks = {
    // Without using the CPU, until the server answers.
    'by a synchronous request': (page) => {
      const blocked = page.evaluate(() => {
        const request = new XMLHttpRequest();
        request.open('GET', '/block', false);
        request.send();
      });
      return () => unblock() && blocked;
    },
    'by a busy loop of 8 s': (page) => {
      const blocked = page.evaluate(() => {
        const end = performance.now() + 8_000;
        while (performance.now() < end);
      });
      return () => blocked;
    },
    'by a dialog': (page) => {
      const dialog = page.waitForEvent('dialog');
      page.evaluate(() => setTimeout(() => alert('a dialog')));
      return async () => (await dialog).accept();
    },
  };
  for (const [how, block] of Object.entries(blocks))
    test(`takes over from a leader that is blocked ${how}, which follows afterwards`, async () => {
      const pages = await openTabs(3);
      await after100Frames();
      const leader = await leaderOf(pages);
      const others = pages.filter((page) => page !== leader);
      const blockedAt = Date.now();
      const release = block(leader);
      for (const page of others)
        await waitUntil('a new leader', async () => {
          const { types } = await receivedBy(page);
          return types.length > 1 && types.at(-1) === 'opened';
        });
      for (const page of others) await receives(page);
      await release();
      await receives(leader);
      await waitUntil('one stream', () => streams() === 1);
      // The others wait just as long, but only one takes over, so none of them misses a frame.
      const results = await finish(others);
      for (const { numbers, types, times, states } of results) {
        assert.deepEqual(numbers, inOrder(1));
        // On a slow machine the new stream can stall before it opens.
        assert.match(types.join(), /^opened(,relay-(stalled|lost),reconnecting)+,opened$/);
        const silentMs = Math.max(...times.slice(1).map((at, n) => at - times[n]));
        const down = states.find(({ state }) => state === 'reconnecting');
        const downMs = down.at - blockedAt;
        assert.ok(downMs < 5_000 && silentMs < 7_000, `not live after ${downMs} ms, frames again after ${silentMs} ms`);
      }
      assert.equal(results.filter((each) => each.streams > 0).length, 1, 'one tab took over');
      await waitUntil('the last frame', () => hasAll(leader));
      const { numbers, missed, types } = await receivedBy(leader);
      assert.equal(numbers.length + missed, sent, 'a gap reports all missing frames');
      const inOrderAndOnce = [...new Set(numbers)].toSorted((one, other) => one - other);
      assert.deepEqual(numbers, inOrderAndOnce);
      assert.ok(types.includes('relay-lost'), 'it uses the stream of another tab');
      await waitUntil('one stream', () => streams() === 1);
    });

  test('leaves when the browser freezes it, leader or follower, and reports the missed frames afterwards', async () => {
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
      for (const each of rest) await receives(each);
      await fire(page, 'resume');
      await receives(page);
      await waitUntil('one stream', () => streams() === 1);
    }
    const [ofOther, ...ofBoth] = await finish([other, leader, follower]);
    assert.deepEqual(ofOther.numbers, inOrder(1));
    for (const { numbers, missed } of ofBoth) {
      assert.equal(numbers.length + missed, sent);
      assert.ok(missed >= 50);
      assert.equal(new Set(numbers).size, numbers.length);
    }
  });

  test('in the background receives every frame', async () => {
    const pages = await openTabs(3);
    await pages[1].bringToFront();
    await after100Frames();
    await pages[2].bringToFront();
    await after100Frames();
    for (const { numbers } of await finish(pages)) assert.deepEqual(numbers, inOrder(1));
  });

  test('reports missed frames after a reload, and misses none when it is the only tab', async () => {
    const pages = await openTabs(2, { resume: true });
    await after100Frames();
    for (const page of pages) {
      const last = (await receivedBy(page)).numbers.at(-1);
      await page.reload();
      await waitUntil('frames', async () => (await receivedBy(page)).numbers.length > 50);
      const { numbers, missed, gaps } = await receivedBy(page);
      assert.ok(numbers[0] - 1 - missed >= last, 'no frame is sent again');
      assert.equal(gaps, missed === 0 ? 0 : 1);
    }
    const [first, second] = pages;
    await first.close();
    const last = await second.evaluate(() => [globalThis.received.numbers.at(-1), globalThis.feed.unsubscribe()][0]);
    await second.reload();
    await waitUntil('frames', async () => (await receivedBy(second)).numbers.length > 50);
    const { numbers, gaps } = await receivedBy(second);
    assert.deepEqual([numbers[0], gaps], [last + 1, 0]);
  });
});
