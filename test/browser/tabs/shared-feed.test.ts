import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RelayFeedOptions } from '../../../src/browser/index.js';
import type { Locks } from '../../../src/browser/page-globals.js';
import { applyUpdate, joins, type TabMessage, type Update } from '../../../src/browser/tabs/tab-state.js';
import { timeOf } from '../../../src/operators/items/item.js';
import { type Received, writeEventLine } from '../../../src/protocol/event-line.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import { formatPlace } from '../../../src/protocol/place.js';
import type { RelayOptions } from '../../../src/relay/index.js';
import { atEnd, frameLineOf, receive, type Receiver, serveRelay } from '../support.js';
import { disconnected, gapOf, joined, lost, opened, reconnecting } from '../../operators/stream.js';
import { Clock, essence, frame, range } from '../../relay/support.js';
import { waitFor } from '../../support/wait-for.js';
import { FakeBrowser, FakeLocks } from './fake-browser.js';

let locks: FakeLocks;
let browser: FakeBrowser;
beforeEach(() => {
  locks = new FakeLocks();
  browser = new FakeBrowser(locks);
});
afterEach(() => browser.remove());

/** Each subscription counts as a tab. */
const openTab = (url: string, options: RelayFeedOptions = {}): Receiver =>
  receive(url, { tabs: 'share', maxFeedStops: 1, ...options });

const isIn = (tab: Receiver): boolean => tab.types.includes('opened');

/** Serves a relay, opens tabs, and waits until they have the state of the feed. */
const serveTabs = async (count: number, options?: RelayOptions) => {
  const served = await serveRelay(options);
  const { source, web } = served;
  const tabs = range(1, count).map(() => openTab(web.url));
  await waitFor(() => source.active === 1);
  source.emit(opened(Date.now()));
  await waitFor(() => tabs.every(isIn));
  return { ...served, tabs, first: tabs[0]!, second: tabs[1]! };
};

/** Joins the tabs' channel: posts messages, and records theirs. */
const openChannel = (url: string) => {
  const channel = new BroadcastChannel(`rx-trade-feed/tabs-5:${url}`);
  atEnd(() => channel.close());
  const received: TabMessage[] = [];
  channel.onmessage = (event) => received.push((event as { data: TabMessage }).data);
  return { post: (message: TabMessage) => channel.postMessage(message), received };
};

/** Waits until a tab has received this number of frames. */
const hasFrames = (tab: Receiver, count: number) => tab.until(({ frames }) => frames.length === count);
/** Waits until the feed has opened this often in a tab: once for each leader. */
const hasOpened = (tab: Receiver, count: number) =>
  tab.until(({ types }) => types.filter((type) => type === 'opened').length === count);

const texts = (from: number, to: number) => range(from, to).map(String);
const gapsOf = (tab: Receiver) => tab.lifecycle.filter(({ type }) => type === 'gap');

describe('relayFeed$ with tabs: share', () => {
  it('has one stream for ten tabs: each receives all events once, in order, and their end', async () => {
    const { source, relay, web, clients, tabs } = await serveTabs(10);
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
    source.subject.complete();
    await Promise.all(tabs.map((tab) => tab.over()));
    expect(tabs.every(({ isComplete }) => isComplete)).toBe(true);
  });

  it('reports a change of the leader as the end of a connection to the relay, not as an outage', async () => {
    const { source, first, second } = await serveTabs(2);
    source.frames(1);
    await hasFrames(second, 1);
    first.subscription.unsubscribe();
    await hasOpened(second, 2);
    expect(second.types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened']);
    expect(second.lifecycle[1]).toMatchObject({ failure: { stage: 'stream', framesReceived: 1 } });
  });

  it('allows a tab to join at any time: it receives the state of the feed, then all events', async () => {
    const { source, web, clients, first } = await serveTabs(1);
    source.frames(1, 2);
    await hasFrames(first, 2);
    const second = await openTab(web.url).until(isIn);
    source.frames(3);
    await hasFrames(second, 1);
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
    const { source, web, tabs } = await serveTabs(5);
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
});

it('tabs have a leader that begins a later term when a tab knows one: the clock was set back since', async () => {
  const { source, web } = await serveTabs(1);
  const channel = openChannel(web.url);
  const term = Date.now() + 3_600_000;
  channel.post({ type: 'ask', term });
  await waitFor(() => channel.received.some(({ type }) => type === 'welcome'));
  source.frames(1);
  await waitFor(() => channel.received.some(({ type }) => type === 'batch'));
  for (const message of channel.received)
    if (message.type === 'welcome' || message.type === 'batch') expect(message.term).toBe(term + 1);
});

describe('a follower', () => {
  const url = 'http://127.0.0.1:9/feed';

  /** A leader controlled by the test: it holds the lock, and posts messages. */
  const lead = (at: string, term = 1) => {
    const channel = openChannel(at);
    const lock = `rx-trade-feed/tabs-5:${at}`;
    let release = (): void => undefined;
    let isStolen = false;
    const held = new Promise<void>((resolve) => (release = resolve));
    atEnd(() => release());
    locks.request(lock, { steal: true }, () => held).catch(() => (isStolen = true));
    const questions = () => channel.received.filter(({ type }) => type === 'ask').length;
    const welcome = async (count: number) => {
      await waitFor(() => questions() >= count);
      for (const message of channel.received)
        if (message.type === 'ask')
          channel.post({
            ...{ type: 'welcome', term, from: 'lrun-0.1.0.5', to: 'lrun-0.1.0.5', shiftMs: 0, aheadMs: 0 },
            lines: [JSON.stringify(opened(5))],
          });
    };
    const batch = (from: number, to: number) =>
      channel.post({
        ...{
          type: 'batch',
          term,
          from: `lrun-0.${from}.${from}.5`,
          to: `lrun-0.${to}.${to}.5`,
          shiftMs: 0,
          aheadMs: 0,
        },
        lines: range(from + 1, to).map((n) => frameLineOf(n)),
      });
    return { ...channel, questions, welcome, batch, release, isStolen: () => isStolen };
  };

  /** Opens a tab that follows such a leader. */
  const follow = async (at = url, term = 1, options: RelayFeedOptions = {}) => {
    const other = lead(at, term);
    const tab = openTab(at, options);
    await other.welcome(1);
    await tab.until(isIn);
    return { other, tab };
  };

  /** Lets a tab ask a leader that's silent, and doubt it: 3 s after its last message. */
  const doubt = async (clock: Clock, { questions }: ReturnType<typeof lead>, ...tabs: readonly Receiver[]) => {
    const asked = questions() + tabs.length;
    clock.pass(1_999);
    clock.pass(1);
    await waitFor(() => questions() === asked);
    clock.pass(999);
    for (const tab of tabs) expect(tab.types.at(-1)).toBe('opened');
    clock.pass(1);
    for (const tab of tabs) expect(tab.types.slice(-2)).toEqual(['relay-stalled', 'reconnecting']);
  };

  it('asks a leader that is silent for 2 s, is not live after 3 s, and steals its lock after 4 s', async () => {
    const { source, relay, web } = await serveRelay();
    const clock = new Clock(Date.now());
    const { other, tab } = await follow(web.url, 1, { scheduler: clock.scheduler });
    for (let n = 1; n <= 3; n += 1) {
      clock.pass(2_000);
      await waitFor(() => other.questions() === 1 + n);
      clock.pass(999);
      other.batch(n, n + 1);
      await hasFrames(tab, n);
    }
    expect(tab.types).toEqual(['opened']);
    const lastMessageAt = clock.now;
    await doubt(clock, other, tab);
    clock.pass(999);
    expect(other.isStolen()).toBe(false);
    clock.pass(1);
    await waitFor(other.isStolen);
    await waitFor(() => source.active === 1);
    expect(tab.types).toEqual(['opened', 'relay-stalled', 'reconnecting']);
    expect(tab.lifecycle[1]).toMatchObject({ failure: { endedAt: lastMessageAt, framesReceived: 3 } });
    expect(web.requests[0]!.headers['last-event-id']).toBe('lrun-0.4.4.5');
    expect(relay.status().clients).toHaveLength(1);
  });

  it.each<[string, (other: ReturnType<typeof lead>) => unknown]>([
    ['an answer', async (other) => other.welcome(2)],
    ['frames', (other) => other.batch(1, 3)],
  ])('is live again, without a loss or a steal, when a leader sends %s after 3 s', async (_what, answer) => {
    // The frames are later.
    const clock = new Clock(900_000);
    const { other, tab } = await follow(url, 1, { scheduler: clock.scheduler });
    await doubt(clock, other, tab);
    clock.pass(900);
    await answer(other);
    await hasOpened(tab, 2);
    if (tab.frames.length === 0) other.batch(1, 3);
    await hasFrames(tab, 2);
    clock.pass(1_900);
    expect([tab.types, tab.texts]).toEqual([
      ['opened', 'relay-stalled', 'reconnecting', 'opened'],
      ['2', '3'],
    ]);
    expect(other.isStolen()).toBe(false);
    for (const [n, event] of tab.events.slice(1).entries())
      expect(timeOf(event)!).toBeGreaterThanOrEqual(timeOf(tab.events[n]!)!);
  });

  it('has a stream 1.5 s after it asks a leader that never answers, and keeps it when it steals the lock', async () => {
    const { source, web, clients } = await serveRelay();
    const other = lead(web.url);
    const clock = new Clock(Date.now());
    const tab = openTab(web.url, { scheduler: clock.scheduler });
    await waitFor(() => other.questions() > 0);
    clock.pass(1_499);
    expect(clients()).toBe(0);
    clock.pass(1);
    await waitFor(() => source.active === 1);
    source.emit(opened(5), frame('1'));
    await hasFrames(tab, 1);
    clock.pass(2_499);
    expect(other.isStolen()).toBe(false);
    clock.pass(1);
    await waitFor(() => other.received.some(({ type }) => type === 'leads'));
    source.frames(2);
    await hasFrames(tab, 2);
    expect([tab.types, tab.texts, web.requests.length]).toEqual([['opened'], ['1', '2'], 1]);
  });

  it.each<[string, Partial<Locks>]>([
    ['does not answer who leads', { query: () => new Promise(() => undefined) }],
    ['refuses to say who leads', { query: () => Promise.reject(new DOMException('No.', 'InvalidStateError')) }],
    ['cannot say who leads', { query: undefined as never }],
    ['never grants a stolen lock', { request: () => new Promise(() => undefined) }],
    ['cannot steal locks', { request: () => Promise.reject(new TypeError('steal')) }],
  ])('has a separate stream after 5.5 s of a silent leader: in a browser that %s', async (_what, change) => {
    const { web, clients, hasClients } = await serveRelay();
    const clock = new Clock(Date.now());
    const { other, tab } = await follow(web.url, 1, { scheduler: clock.scheduler });
    Object.assign(locks, change);
    await doubt(clock, other, tab);
    clock.pass(1_000);
    await waitFor(() => 'query' in change || other.received.some(({ type }) => type === 'mark'));
    clock.pass(1_499);
    expect(clients()).toBe(0);
    clock.pass(1);
    await hasClients(1);
    expect([tab.types, other.isStolen()]).toEqual([['opened', 'relay-stalled', 'reconnecting'], false]);
  });

  describe('takes over from a silent leader', () => {
    /** Opens followers of a silent leader that stop waiting at the same moment. */
    const openFollowers = async () => {
      const { source, web } = await serveRelay();
      const other = lead(web.url);
      const clock = new Clock(Date.now());
      const options = { scheduler: clock.scheduler, backoff: { random: () => 0.5 } };
      const tabs = range(1, 5).map(() => openTab(web.url, options));
      await waitFor(() => other.questions() === 5);
      await other.welcome(5);
      await waitFor(() => tabs.every(isIn));
      other.batch(1, 2);
      await waitFor(() => tabs.every(({ frames }) => frames.length === 1));
      /** Lets the tabs ask the leader, and then stop waiting for its answer. */
      const stopWaiting = async () => {
        await doubt(clock, other, ...tabs);
        clock.pass(1_000);
      };
      const expectOneLeader = async () => {
        await waitFor(() => source.active === 1);
        source.emit(opened(5), frame('2'));
        await waitFor(() => tabs.every(({ frames }) => frames.length === 2));
        for (const tab of tabs) {
          expect(tab.types).toEqual(['opened', 'relay-stalled', 'reconnecting', 'opened', 'gap']);
          expect(tab.texts).toEqual(['2', '2']);
        }
        expect([locks.stolen, web.requests.length]).toEqual([1, 1]);
      };
      const lockOfTakeover = `rx-trade-feed/tabs-5:${web.url} takeover 1`;
      return { other, clock, web, lockOfTakeover, stopWaiting, expectOneLeader };
    };

    it('once, even if several followers stop waiting at the same moment', async () => {
      const { stopWaiting, expectOneLeader } = await openFollowers();
      await stopWaiting();
      await expectOneLeader();
    });

    it('but not from a new leader that has posted nothing yet', async () => {
      const { web, lockOfTakeover, stopWaiting } = await openFollowers();
      let release = (): void => undefined;
      const isDecided = new Promise<void>((resolve) => (release = resolve));
      void locks.request(lockOfTakeover, new AbortController(), () => isDecided);
      await stopWaiting();
      await waitFor(() => locks.waiting === 10);
      lead(web.url);
      release();
      await waitFor(() => locks.waiting === 5);
      expect(locks.stolen).toBe(1);
    });

    it('even if the tab that decides is blocked', async () => {
      const { other, clock, lockOfTakeover, stopWaiting, expectOneLeader } = await openFollowers();
      void locks.request(lockOfTakeover, new AbortController(), () => new Promise(() => undefined));
      await stopWaiting();
      await waitFor(() => locks.waiting === 10);
      expect(other.isStolen()).toBe(false);
      clock.pass(1_000);
      await expectOneLeader();
    });
  });

  it('is the new role of a leader whose lock is stolen: it closes its stream, and continues', async () => {
    const { web, hasClients, first: tab } = await serveTabs(1);
    const other = lead(web.url, Date.now() + 1_000);
    await other.welcome(1);
    await hasClients(0);
    await tab.until(({ types }) => types.includes('gap'));
    other.batch(1, 3);
    await hasFrames(tab, 2);
    expect(tab.types).toEqual(['opened', 'relay-lost', 'reconnecting', 'opened', 'gap']);
    expect(tab.texts).toEqual(['2', '3']);
  });

  it.each([
    [true, ['opened']],
    [false, ['opened', 'relay-lost', 'reconnecting', 'opened']],
  ])('is interrupted by a new leader unless the stream of that leader already runs: %s', async (isOpen, types) => {
    const { other, tab } = await follow();
    other.post({ type: 'leads', term: 1, isOpen });
    other.batch(1, 2);
    await hasFrames(tab, 1);
    expect([tab.types, tab.texts]).toEqual([types, ['2']]);
  });

  it('leaves before the browser freezes the page, and joins again after that', async () => {
    const { other, tab } = await follow();
    expect(locks.waiting).toBe(1);
    browser.fire('freeze');
    await waitFor(() => locks.waiting === 0);
    other.batch(1, 2);
    browser.fire('resume');
    await waitFor(() => other.questions() === 2);
    await other.welcome(2);
    await hasOpened(tab, 2);
    expect([tab.types, tab.texts]).toEqual([['opened', 'relay-lost', 'reconnecting', 'opened'], []]);
    browser.fire('pagehide');
    await waitFor(() => locks.waiting === 0);
    browser.fire('pageshow');
    await waitFor(() => locks.waiting === 1);
  });
});

describe('a page that cannot share', () => {
  let isConnected = false;
  beforeEach(() => void (isConnected = false));
  /** Its messages reach nobody until `isConnected`. */
  class MutedChannel extends BroadcastChannel {
    override postMessage(message: unknown): void {
      if (isConnected) super.postMessage(message);
    }
  }
  /** How many timers end within 2 s. Those of connections and of imports are longer. */
  const timers = (clock: Clock) => clock.scheduler.actions.filter(({ delay }) => delay <= clock.now + 2_000).length;
  const refusal = new DOMException('No.', 'SecurityError');
  const refuse = (): never => {
    throw refusal;
  };
  const pending = () => new Promise(() => undefined);
  const withLocks = (request: () => unknown) => ({ navigator: { locks: { request, query: pending } } });

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['without a secure context', { isSecureContext: false }],
    ['without a navigator', { navigator: undefined }],
    ['without locks', { navigator: {} }],
    ['that throws when asked for locks', { navigator: Object.create({}, { locks: { get: refuse } }) as unknown }],
    ['whose locks are refused', withLocks(() => Promise.reject(refusal))],
    ['whose locks reject without a DOMException', withLocks(() => Promise.reject(new Error('No.')))],
    ['whose locks throw', withLocks(refuse)],
    ['whose locks are never granted', withLocks(pending)],
    ['whose locks return nothing', withLocks(() => undefined)],
    ['without channels', { BroadcastChannel: undefined }],
    ['whose channels throw', { BroadcastChannel: refuse }],
    ['whose channels reach nobody', { BroadcastChannel: MutedChannel }],
    ['without events of the page', { addEventListener: undefined }],
  ])('has a separate stream within 2 s: in a browser %s', async (_what, globals) => {
    for (const [name, value] of Object.entries(globals)) browser.set(name, value);
    const { source, web, clients, hasClients } = await serveRelay();
    const clock = new Clock();
    const tabs = range(1, 3).map(() => openTab(web.url, { scheduler: clock.scheduler }));
    await waitFor(() => clients() + timers(clock) >= 3);
    clock.pass(2_000);
    await hasClients(3);
    source.emit(opened(clock.now));
    for (let n = 1; n <= 10; n += 1) {
      source.frames(n);
      await waitFor(() => tabs.every(({ frames }) => frames.length === n));
      clock.pass(1_000);
    }
    for (const tab of tabs) expect([tab.types, tab.texts]).toEqual([['opened'], texts(1, 10)]);
    expect([locks.stolen, clients()]).toEqual([0, 3]);
  });

  it('requests a bounded number of locks that are never granted', async () => {
    let requests = 0;
    const request = () => new Promise(() => (requests += 1));
    browser.set('navigator', { locks: { request, query: () => Promise.resolve({ held: [] }) } });
    const { web, clients, hasClients } = await serveRelay();
    const clock = new Clock();
    openTab(web.url, { scheduler: clock.scheduler, idleTimeoutMs: 600_000 });
    await waitFor(() => clients() + timers(clock) >= 1);
    clock.pass(4_000);
    await hasClients(1);
    await waitFor(() => requests === 2);
    clock.pass(60_000);
    expect(requests).toBe(6);
  });

  it('follows as soon as it hears the leader: its stream ends without a loss', async () => {
    browser.set('BroadcastChannel', MutedChannel);
    const { source, web, hasClients } = await serveRelay();
    const clock = new Clock();
    const tabs = range(1, 3).map(() => openTab(web.url, { scheduler: clock.scheduler }));
    // One has the lock, and waits a second for what the leader before it has posted.
    await waitFor(() => locks.waiting === 2 && timers(clock) === 4);
    clock.pass(2_000);
    await hasClients(3);
    source.emit(opened(clock.now));
    source.frames(1, 2);
    await waitFor(() => tabs.every(({ frames }) => frames.length === 2));
    isConnected = true;
    source.frames(3, 4);
    await hasClients(1);
    source.frames(5, 6);
    await waitFor(() => tabs.every(({ frames }) => frames.length === 6));
    for (const tab of tabs) expect([tab.types, tab.texts]).toEqual([['opened'], texts(1, 6)]);
    expect(web.requests).toHaveLength(3);
  });

  it('does not share with a page of another address, nor with one that selects `separate`', async () => {
    const { web, hasClients } = await serveRelay();
    for (const url of [web.url, `${web.url}#user-1`, `${web.url}#user-2`]) openTab(url);
    openTab(web.url, { tabs: 'separate' });
    openTab(web.url, { tabs: undefined });
    await hasClients(5);
  });
});

describe('joins', () => {
  const [never, before, own] = [
    { isOpen: false, wasOpen: false },
    { isOpen: false, wasOpen: true },
    { isOpen: true, wasOpen: false },
  ];
  const at = (n: number) => formatPlace({ line: 'run', gen: 0, offset: n, frames: n, at: n * 10, complete: n * 10 });
  const update = (type: Update['type'], from?: string, to = from): Update => {
    return { type, from, to, lines: [], shiftMs: 0, aheadMs: 0 };
  };

  it.each<[string, boolean, typeof never, Id, Update]>([
    ['the answer of a leader', true, never, undefined, update('welcome', at(9))],
    ['the answer of a leader after an interruption', true, before, at(5), update('welcome', at(9))],
    ['the answer of a leader while its own stream is open', false, own, at(9), update('welcome', at(9))],
    ['a batch without knowing the state', false, never, at(9), update('batch', at(9), at(10))],
    ['a batch that continues', true, before, at(9), update('batch', at(9), at(10))],
    ['a batch that it has', true, before, at(12), update('batch', at(9), at(10))],
    ['a batch after a loss', false, before, at(8), update('batch', at(9), at(10))],
    ['a batch of another log', false, before, 'lx-0.8.8.80', update('batch', at(9), at(10))],
    ['a batch that continues its own stream', true, own, at(9), update('batch', at(9), at(10))],
    ['a batch that is ahead of its own stream', false, own, at(8), update('batch', at(9), at(10))],
    ['events of the leader itself while its own stream is open', false, own, at(9), update('batch', at(9))],
    ['a batch while its own stream has no id yet', false, own, undefined, update('batch', at(9), at(10))],
  ])('decides whether a tab can follow from %s: %s', (_what, expected, state, id, message) => {
    expect(joins({ id, ...state }, message)).toBe(expected);
  });
});

describe('applyUpdate', () => {
  /** The id after `offset` events, as a relay writes it: first `opened`, then frames. */
  const id = (offset: number, line = 'run_-1') =>
    formatPlace({
      ...{ line, gen: 0, offset, frames: Math.max(0, offset - 1), at: offset * 10, complete: offset * 10 },
    });
  /** An id of a cluster: its owner counts `opened` as an event. */
  const at = (gen: number, offset: number, frames = offset) =>
    formatPlace({ line: '5', gen, offset, frames, at: 10, complete: 10 });

  const mark: RelayedEvent = { type: 'watermark', at: 60 };
  const frames = (first: number, last: number) => range(first, last).map((n) => frame(n));
  const gap = gapOf(1, 2);

  const applied = (type: Update['type'], own: Id, from: Id, to: Id, events: readonly RelayedEvent[]) => {
    const lines = events.map((event) => (event.type === 'frame' ? frameLineOf(event.text()) : writeEventLine(event)));
    return applyUpdate(own, { type, from, to, lines, shiftMs: 1_000, aheadMs: 0 }, 70);
  };
  const inShort = (events: readonly Received[]) =>
    events.map((event) => (event.type === 'frame' ? event.text() : event.type)).join(' ');

  const [skipped, ofLeader] = [
    [opened(9), gap],
    [disconnected(9), reconnecting(9, 5)],
  ];
  // A change of the owner adds an `opened` and a gap, which no id counts.
  const change = [opened(9), gap, ...frames(10, 11), mark];

  it.each<[string, Id, readonly [Id, Id, readonly RelayedEvent[]], string, Id]>([
    ['all events at the same id', id(5), [id(5), id(8), [...frames(6, 8), mark]], '6 7 8 watermark', id(8)],
    ['all events without an id', undefined, [undefined, id(8), [...frames(6, 8), mark]], '6 7 8 watermark', id(8)],
    ['all events at the same position', id(5), [id(5).replace('.50', '.51'), id(8), frames(6, 8)], '6 7 8', id(8)],
    ['the new events at a later id', id(6), [id(5), id(8), [...frames(6, 8), mark]], '7 8 watermark', id(8)],
    ['the last event', id(7), [id(5), id(8), [...frames(6, 8), mark]], '8 watermark', id(8)],
    ['no event that it has', id(8), [id(5), id(8), [...frames(6, 8), mark]], '', id(8)],
    ['no event after which it is', id(9), [id(5), id(8), frames(6, 8)], '', id(9)],
    ['events of the leader itself at any id', id(9), [id(5), id(5), ofLeader], 'disconnected reconnecting', id(9)],
    ['a gap of the relay', id(7), [id(5), id(100), skipped], 'opened gap', id(100)],
    ['the frames that follow a gap', id(99), [id(5), id(100), [...skipped, frame(99), frame(100)]], '100', id(100)],
    ['a gap and all events at an earlier id', id(5), [id(8), id(9), frames(9, 9)], 'gap 9', id(9)],
    ['a gap and all events of another log', id(500, 'x'), [id(8), id(9), frames(9, 9)], 'gap 9', id(9)],
    ['a gap and all events at no valid id', 'no-id', [id(8), id(9), frames(9, 9)], 'gap 9', id(9)],
    ['all events that end in another log', id(7), [id(5), id(3, 'x'), frames(1, 3)], '1 2 3', id(3, 'x')],
    [
      'all events after the owner changed',
      at(1, 9),
      [at(1, 9), at(2, 3, 2), change],
      'opened gap 10 11 watermark',
      at(2, 3, 2),
    ],
    [
      'the frames that it lacks of a new owner',
      at(2, 2, 1),
      [at(1, 9), at(2, 3, 2), change],
      '11 watermark',
      at(2, 3, 2),
    ],
    ['no frame that it has of a new owner', at(2, 3, 2), [at(1, 9), at(2, 3, 2), change], '', at(2, 3, 2)],
    ['no event of an earlier generation', at(3, 1, 0), [at(1, 9), at(2, 3, 2), change], '', at(3, 1, 0)],
    ['a gap of a later generation', at(1, 9), [at(2, 1, 0), at(2, 2, 1), frames(10, 10)], 'gap 10', at(2, 2, 1)],
  ])('returns for a batch %s', (_what, own, [from, to, events], expected, reached) => {
    const result = applied('batch', own, from, to, events);
    expect([inShort(result.events), result.id]).toEqual([expected, reached]);
  });

  it('counts the frames of a gap in the same log only', () => {
    const [first] = applied('batch', id(5), id(8), id(9), frames(9, 9)).events;
    expect(first).toMatchObject({ from: 1_050, to: 1_080, missed: 3, failure: { code: 'relay-behind' } });
    expect(applied('batch', id(500, 'x'), id(8), id(9), frames(9, 9)).events[0]).not.toHaveProperty('missed');
  });

  const missed = expect.objectContaining({ type: 'gap', from: 1_050, to: 1_080, missed: 3 });
  it.each<[string, Id, Id, readonly RelayedEvent[], readonly unknown[], Id]>([
    ['at the time that the leader has reached', undefined, id(5), [opened(5)], [joined(1_050)], id(5)],
    ['with its watermark', undefined, id(5), [opened(5), mark], [joined(1_050), mark], id(5)],
    ['with a gap after `opened` at an earlier id', id(5), id(8), [opened(5)], [joined(1_080), missed], id(8)],
    ['without a gap at the same id', id(8), id(8), [opened(5)], [opened(1_080)], id(8)],
    ['without a gap at a later id', id(9), id(8), [opened(5)], [opened(1_080)], id(9)],
    ['and keeps the id of the tab if the leader has none', id(5), undefined, [], [], id(5)],
  ])('returns the state of the feed for a tab that joins %s', (_what, own, to, events, expected, reached) => {
    expect(applied('welcome', own, to, to, events)).toEqual({ events: expected, id: reached });
  });
});

type Id = string | undefined;

it('a tab has a separate stream after connectTimeoutMs if the code for sharing never loads', async () => {
  jest.unstable_mockModule('../../../src/browser/tabs/shared-feed.js', () => new Promise(() => undefined));
  jest.resetModules();
  const { relayFeed$ } = await import('../../../src/browser/relay-feed.js');
  const { web, clients, hasClients } = await serveRelay();
  const clock = new Clock();
  const options = { tabs: 'share', scheduler: clock.scheduler, connectTimeoutMs: 3_000 } as const;
  const subscription = relayFeed$(web.url, options).subscribe();
  atEnd(() => subscription.unsubscribe());
  clock.pass(2_999);
  expect([clients(), web.requests]).toEqual([0, []]);
  clock.pass(1);
  await hasClients(1);
});
