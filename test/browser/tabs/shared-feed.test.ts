import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { RelayFeedOptions, ResumeStore } from '../../../src/browser/index.js';
import { from } from 'rxjs';
import type { Locks } from '../../../src/browser/tabs/tab-lock.js';
import { fromPosted, type TabMessage, toPosted } from '../../../src/browser/tabs/tab-message.js';
import { type AnyFrame, Frame } from '../../../src/protocol/frame.js';
import { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import type { FeedWindow } from '../../../src/operators/window/feed-window.js';
import { tumblingWindow } from '../../../src/operators/tumbling-window.js';
import { createRelay, relayHandler, type RelayOptions } from '../../../src/relay/index.js';
import { lost, opened } from '../../operators/stream.js';
import { Clock, essence, frame, range, Source, Web } from '../../relay/support.js';
import { Receiver, startSteps, status } from '../support.js';
import { FakeBrowser, FakeLocks } from './fake-browser.js';
import { waitFor } from '../../support/wait-for.js';

const closing: (() => unknown)[] = [];
let locks: FakeLocks;
let browser: FakeBrowser;
beforeEach(() => {
  locks = new FakeLocks();
  browser = new FakeBrowser(locks);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  browser.remove();
});

const serveRelay = async (options: RelayOptions = {}) => {
  const source = new Source();
  const relay = createRelay(source.events$, { batchMs: 0, ...options });
  const web = await Web.start(relayHandler(relay, { authorize: () => true }));
  closing.push(
    () => web[Symbol.asyncDispose](),
    () => relay.close(),
  );
  const clients = () => relay.status().clients.length;
  return { source, relay, web, clients };
};

/** Each subscription counts as a tab. */
const openTab = (url: string, options: RelayFeedOptions = {}): Receiver => {
  const tab = new Receiver(url, { tabs: 'share', maxFeedStops: 1, ...options });
  closing.push(() => tab.subscription.unsubscribe());
  return tab;
};

const isIn = (tab: Receiver): boolean => tab.types.includes('opened');

/** Opens tabs, and waits until they have the state of the feed. */
const openTabs = async (url: string, source: Source, count: number): Promise<readonly Receiver[]> => {
  const tabs = range(1, count).map(() => openTab(url));
  await waitFor(() => source.active === 1);
  source.emit(opened(Date.now()));
  await waitFor(() => tabs.every(isIn));
  return tabs;
};

/** Joins the channel of the tabs: posts messages, and records those of the tabs. */
const openChannel = (url: string) => {
  const channel = new BroadcastChannel(`rx-trade-feed/tabs-2:${url}`);
  closing.push(() => channel.close());
  const received: TabMessage[] = [];
  channel.onmessage = (event) => received.push(fromPosted((event as { data: unknown }).data));
  return { post: (message: TabMessage) => channel.postMessage(toPosted(message)), received };
};

const texts = (from: number, to: number) => range(from, to).map(String);
const gapsOf = (tab: Receiver) => tab.lifecycle.filter(({ type }) => type === 'gap');

class Store implements ResumeStore {
  readonly items = new Map<string, string>();
  getItem = (key: string) => this.items.get(key) ?? null;
  setItem = (key: string, value: string) => void this.items.set(key, value);
}

describe('relayFeed$ with tabs: share', () => {
  it('has one stream for ten tabs: each receives all events once, in order', async () => {
    const { source, relay, web, clients } = await serveRelay();
    const tabs = await openTabs(web.url, source, 10);
    const raw = new Frame('raw', Buffer.of(0xff, 0, 1), true, 5, 1);
    source.frames(...range(1, 500));
    source.emit(raw, { type: 'gap', from: 5, to: 6, durationMs: 1, failure: lost(5), missed: 2 });
    await waitFor(() => tabs.every((tab) => gapsOf(tab).length === 1));
    for (const tab of tabs) {
      expect(tab.texts.slice(0, -1)).toEqual(texts(1, 500));
      expect(tab.frames.every((each) => each instanceof Frame && each.data instanceof Uint8Array)).toBe(true);
      expect(essence(tab.frames.at(-1)!)).toEqual(essence(raw));
      expect(tab.types).toEqual(['opened', 'gap']);
      expect(tab.watermarks.length).toBeGreaterThan(0);
      const [gap] = gapsOf(tab) as { failure: TradeFeedError; missed: number }[];
      expect(gap!.failure).toBeInstanceOf(TradeFeedError);
      expect([gap!.failure.code, gap!.missed]).toEqual(['connection-lost', 2]);
    }
    expect([clients(), web.requests.length]).toEqual([1, 1]);
    expect(relay.status().clients[0]!.sent).toBe(501);
  });

  it('continues in the next tab when the leader unsubscribes: each frame arrives once', async () => {
    const { source, web, clients } = await serveRelay();
    const tabs = await openTabs(web.url, source, 10);
    let sent = 0;
    const send = (count: number) => source.frames(...range(sent + 1, (sent += count)));
    for (const [n, leader] of tabs.slice(0, 9).entries()) {
      send(50);
      // At different times: with frames on the way to the leader, to the other tabs, and to none.
      if (n % 3 > 0) await waitFor(() => leader.frames.length >= sent - 25 * (n % 3));
      leader.subscription.unsubscribe();
      send(50);
      await waitFor(() => tabs.slice(n + 1).every((tab) => tab.frames.length === sent));
      await waitFor(() => clients() === 1);
    }
    const last = tabs.at(-1)!;
    expect(last.texts).toEqual(texts(1, sent));
    expect(new Set(last.types)).toEqual(new Set(['opened', 'relay-lost', 'reconnecting']));
    expect(web.requests).toHaveLength(10);
  });

  it('reports a change of the leader as the end of a connection to the relay, not as an outage', async () => {
    const { source, web } = await serveRelay();
    const [first, second] = (await openTabs(web.url, source, 2)) as [Receiver, Receiver];
    source.frames(1);
    await second.until(({ frames }) => frames.length === 1);
    first.subscription.unsubscribe();
    await second.until(({ types }) => types.filter((type) => type === 'opened').length === 2);
    source.frames(2);
    await second.until(({ frames }) => frames.length === 2);
    expect(second.types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened']);
    expect(second.lifecycle.find(({ type }) => type === 'disconnected')).toMatchObject({
      failure: { code: 'relay-lost', stage: 'stream', framesReceived: 1 },
    });
    expect(second.lifecycle.find(({ type }) => type === 'reconnecting')).toMatchObject({ delayMs: 0, attempt: 1 });
  });

  it('allows a tab to join at any time: it receives the state of the feed, then all events', async () => {
    const { source, web, clients } = await serveRelay();
    const [first] = (await openTabs(web.url, source, 1)) as [Receiver];
    source.frames(1, 2);
    await first.until(({ frames }) => frames.length === 2);
    const second = await openTab(web.url).until(isIn);
    source.frames(3);
    await second.until(({ frames }) => frames.length === 1);
    expect([second.types, second.texts, clients()]).toEqual([['opened'], ['3'], 1]);
    expect(second.watermarks.length).toBeGreaterThan(0);
    source.emit({ type: 'disconnected', at: 5, failure: lost(5) });
    source.emit({ type: 'reconnecting', at: 5, delayMs: 9, attempt: 1, verdict: 'backoff' });
    await second.until(({ types }) => types.length === 3);
    const third = await openTab(web.url).until(({ types }) => types.length === 2);
    expect(third.types).toEqual(['connection-lost', 'reconnecting']);
    expect(third.lifecycle[0]).toMatchObject({ failure: expect.any(TradeFeedError) });
  });

  it('ends all tabs with the error of the leader; a later subscription starts again', async () => {
    const { source, web } = await serveRelay();
    const tabs = await openTabs(web.url, source, 5);
    source.frames(1);
    const stop = lost(7, { closeCode: 4001, reason: 'connection replaced' });
    source.subject.error(stop);
    await Promise.all(tabs.map((tab) => tab.over()));
    for (const tab of tabs) {
      expect(tab.error).toBeInstanceOf(TradeFeedError);
      expect(tab.error!.toJSON()).toEqual(tabs[0]!.error!.toJSON());
      expect([tab.error!.code, tab.texts, tab.types]).toEqual(['connection-replaced', ['1'], ['opened', 'stopped']]);
    }
    await waitFor(() => locks.held + locks.waiting === 0);
    expect(web.requests).toHaveLength(1);
    await openTab(web.url).over();
    expect(web.requests).toHaveLength(2);
  });

  it('ends all tabs when the relay refuses, after one request', async () => {
    const web = await startSteps(status(403));
    closing.push(() => web[Symbol.asyncDispose]());
    const tabs = range(1, 5).map(() => openTab(web.url));
    await Promise.all(tabs.map((tab) => tab.over()));
    expect(tabs.map(({ error }) => error!.code)).toEqual(Array(5).fill('relay-refused'));
    expect(web.requests).toHaveLength(1);
  });

  it('completes in all tabs', async () => {
    const { source, web } = await serveRelay();
    const tabs = await openTabs(web.url, source, 3);
    source.frames(1);
    source.subject.complete();
    await Promise.all(tabs.map((tab) => tab.over()));
    expect(tabs.map(({ isComplete, texts: seen }) => [isComplete, seen])).toEqual(Array(3).fill([true, ['1']]));
  });

  it('forwards the events of the connection of the leader to the relay', async () => {
    const { source, web } = await serveRelay();
    const tabs = await openTabs(web.url, source, 3);
    web.reset();
    source.frames(1);
    await waitFor(() => tabs.every(({ texts: seen }) => seen.length === 1));
    for (const { types } of tabs) expect(types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened']);
  });

  it('has no gap and no incomplete window at a change of the leader', async () => {
    const { source, web } = await serveRelay();
    const [first, second] = (await openTabs(web.url, source, 2)) as [Receiver, Receiver];
    source.frames(1);
    await second.until(({ frames }) => frames.length === 1);
    first.subscription.unsubscribe();
    source.frames(2);
    await second.until(({ frames }) => frames.length === 2);
    const windows: FeedWindow<AnyFrame>[] = [];
    from(second.events)
      .pipe(tumblingWindow({ lengthMs: 3_600_000 }))
      .subscribe((window) => windows.push(window));
    expect(windows.flatMap(({ gaps }) => gaps)).toEqual([]);
    expect(windows.reduce((sum, { count }) => sum + count, 0)).toBe(2);
  });
});

describe('a follower', () => {
  const url = 'http://127.0.0.1:9/feed';

  /** A leader that the test controls: it holds the lock, and posts messages. */
  const lead = (at: string, term = 1) => {
    const channel = openChannel(at);
    const lock = `rx-trade-feed/tabs-2:${at}`;
    let release = (): void => undefined;
    let isStolen = false;
    const held = new Promise<void>((resolve) => (release = resolve));
    closing.push(() => release());
    locks.request(lock, { steal: true }, () => held).catch(() => (isStolen = true));
    const welcome = async (count: number) => {
      await waitFor(() => channel.received.filter(({ type }) => type === 'join').length >= count);
      for (const message of channel.received)
        if (message.type === 'join')
          channel.post({
            ...{ type: 'welcome', term, tab: message.tab, id: 'run.1.0.5', shiftMs: 0, watermark: undefined },
            snapshot: [opened(5)],
          });
    };
    const batch = (from: number, to: number) =>
      channel.post({
        ...{ type: 'batch', term, from: `run.${from}.${from}.5`, to: `run.${to}.${to}.5`, shiftMs: 0 },
        events: range(from + 1, to).map((n) => frame(n)),
      });
    return { ...channel, welcome, batch, release, isStolen: () => isStolen };
  };

  it('pings a silent leader, and steals its lock when it does not answer', async () => {
    const { source, relay, web } = await serveRelay();
    const other = lead(web.url);
    const clock = new Clock(Date.now());
    const tab = openTab(web.url, { scheduler: clock.scheduler, idleTimeoutMs: 40_000 });
    await other.welcome(1);
    await tab.until(isIn);
    const pings = () => other.received.filter(({ type }) => type === 'ping').length;
    for (let n = 1; n <= 3; n += 1) {
      clock.pass(20_000);
      await waitFor(() => pings() === n);
      clock.pass(19_000);
      other.batch(n, n + 1);
      await tab.until(({ frames }) => frames.length === n);
    }
    expect(tab.types).toEqual(['opened']);
    const lastMessageAt = clock.now;
    clock.pass(20_000);
    expect(other.isStolen()).toBe(false);
    clock.pass(23_000);
    await waitFor(other.isStolen);
    await waitFor(() => source.active === 1);
    await tab.until(({ types }) => types.length === 3);
    expect(tab.types).toEqual(['opened', 'relay-stalled', 'reconnecting']);
    expect(tab.lifecycle[1]).toMatchObject({ failure: { endedAt: lastMessageAt, framesReceived: 3 } });
    expect(web.requests[0]!.headers['last-event-id']).toBe('run.4.4.5');
    expect(relay.status().clients).toHaveLength(1);
  });

  it('steals the lock of a leader that never answers, after connectTimeoutMs', async () => {
    const { source, web } = await serveRelay();
    const other = lead(web.url);
    const clock = new Clock(Date.now());
    const tab = openTab(web.url, { scheduler: clock.scheduler, connectTimeoutMs: 10_000 });
    await waitFor(() => other.received.some(({ type }) => type === 'join'));
    clock.pass(5_000);
    clock.pass(4_999);
    expect(other.isStolen()).toBe(false);
    clock.pass(1_000);
    await waitFor(() => other.isStolen() && source.active === 1);
    source.emit(opened(5));
    expect((await tab.until(isIn)).types).toEqual(['opened']);
  });

  it('is the new role of a leader whose lock is stolen: it closes its stream, and continues', async () => {
    const { source, web, clients } = await serveRelay();
    const [tab] = (await openTabs(web.url, source, 1)) as [Receiver];
    const other = lead(web.url, Date.now() + 1_000);
    await other.welcome(1);
    await waitFor(() => clients() === 0);
    await tab.until(({ types }) => types.includes('gap'));
    other.batch(1, 3);
    await tab.until(({ frames }) => frames.length === 2);
    expect(tab.types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened', 'gap']);
    expect(tab.texts).toEqual(['2', '3']);
  });

  it('ignores late messages of an earlier leader', async () => {
    const other = lead(url, 7);
    const tab = openTab(url);
    await other.welcome(1);
    await tab.until(isIn);
    other.post({ type: 'ended', term: 6, failure: lost(5) });
    other.post({
      ...{ type: 'batch', term: 6, from: 'run.1.0.5', to: 'run.2.1.5', shiftMs: 0 },
      events: [frame('late')],
    });
    other.batch(1, 2);
    await tab.until(({ frames }) => frames.length === 1);
    expect([tab.texts, tab.isOver]).toEqual([['2'], false]);
  });

  it('leaves before the browser freezes the page, and joins again after that', async () => {
    const other = lead(url);
    const tab = openTab(url);
    await other.welcome(1);
    await tab.until(isIn);
    expect(locks.waiting).toBe(1);
    browser.fire('freeze');
    await waitFor(() => locks.waiting === 0);
    other.batch(1, 2);
    browser.fire('resume');
    await waitFor(() => other.received.filter(({ type }) => type === 'join').length === 2);
    await other.welcome(2);
    await tab.until(({ types }) => types.filter((type) => type === 'opened').length === 2);
    expect([tab.types, tab.texts]).toEqual([['opened', 'relay-lost', 'reconnecting', 'opened'], []]);
    browser.fire('pagehide');
    await waitFor(() => locks.waiting === 0);
    browser.fire('pageshow');
    await waitFor(() => locks.waiting === 1);
  });
});

describe('a tab that is loaded again with resumeIn', () => {
  const loadAgain = (tab: Receiver, url: string, resumeIn: ResumeStore) => {
    tab.subscription.unsubscribe();
    return openTab(url, { resumeIn });
  };

  it('receives a gap with the number of frames when another tab leads', async () => {
    const { source, web, clients } = await serveRelay();
    await openTabs(web.url, source, 1);
    const store = new Store();
    const tab = await openTab(web.url, { resumeIn: store }).until(isIn);
    source.frames(1, 2);
    await tab.until(({ frames }) => frames.length === 2);
    tab.subscription.unsubscribe();
    source.frames(3, 4, 5);
    const third = await openTab(web.url).until(isIn);
    source.frames(6);
    await third.until(({ texts: seen }) => seen.includes('6'));
    const again = await loadAgain(tab, web.url, store).until(isIn);
    source.frames(7);
    await again.until(({ frames }) => frames.length > 0);
    expect(again.types).toEqual(['opened', 'gap']);
    expect(gapsOf(again)[0]).toMatchObject({ missed: 4, failure: { code: 'relay-behind' } });
    expect([again.texts, clients()]).toEqual([['7'], 1]);
  });

  it('resumes when it is the only tab', async () => {
    const { source, web, clients } = await serveRelay();
    const store = new Store();
    const tab = openTab(web.url, { resumeIn: store });
    await waitFor(() => clients() === 1);
    source.emit(opened(Date.now()), frame(1));
    await tab.until(({ frames }) => frames.length === 1);
    tab.subscription.unsubscribe();
    source.frames(2, 3);
    const again = await loadAgain(tab, web.url, store).until(({ frames }) => frames.length === 2);
    expect([again.texts, gapsOf(again)]).toEqual([['2', '3'], []]);
  });
});

describe('a page that cannot share', () => {
  it.each<[string, () => void]>([
    ['has no secure context', () => browser.set('isSecureContext', false)],
    ['has no navigator', () => browser.set('navigator', undefined)],
    ['has no locks', () => browser.set('navigator', {})],
    [
      'is refused locks by the browser',
      () => {
        const refuse: Locks['request'] = () => Promise.reject(new DOMException('Denied.', 'SecurityError'));
        browser.set('navigator', { locks: { request: refuse } });
      },
    ],
  ])('has a separate stream: one that %s', async (_what, change) => {
    change();
    const { source, web, clients } = await serveRelay();
    const tabs = [openTab(web.url), openTab(web.url)];
    await waitFor(() => clients() === 2);
    source.frames(1);
    await waitFor(() => tabs.every(({ texts: seen }) => seen.length === 1));
  });

  it('does not share with a page of another address, nor with one that selects `separate`', async () => {
    const { web, clients } = await serveRelay();
    for (const url of [web.url, `${web.url}#user-1`, `${web.url}#user-2`]) openTab(url);
    openTab(web.url, { tabs: 'separate' });
    openTab(web.url, { tabs: undefined });
    await waitFor(() => clients() === 5);
  });
});
