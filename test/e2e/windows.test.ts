import { afterEach, describe, expect, it } from '@jest/globals';
import { defer, filter, finalize, type Observable, share, take, takeWhile, tap } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  type FeedWindow,
  tradeFeedEvents$,
  type TradeFeedOptions,
  tumblingWindow,
  type WindowKey,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import type { FeedEvent, RelayedEvent } from '../../src/protocol/event.js';
import type { AnyFrame } from '../../src/protocol/frame.js';
import { createRelay, relayHandler, type RelayOptions } from '../../src/relay/index.js';
import { startTradeFeedService, type TradeFeedService } from '../../src/testing/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { Web } from '../relay/support.js';

const lengthMs = 50;
const runMs = 450;

const folder = tempFolder();
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Starts a service that pushes a frame every 5 ms, and returns the options of a client. */
const steadyService = async (): Promise<{ service: TradeFeedService; options: TradeFeedOptions }> => {
  const service = await startTradeFeedService({ sources: {} });
  const pump = setInterval(() => service.push('market', 'x'.repeat(200)), 5);
  closing.push(
    () => service.shutdown(),
    () => clearInterval(pump),
  );
  const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
  return { service, options: { baseUrl: service.baseUrl, apiKey } };
};

/** Starts a relay of a feed, and closes it after the test. */
const relayOf = async (events$: Observable<FeedEvent>, options?: RelayOptions): Promise<Web> => {
  const relay = createRelay(events$, options);
  const web = await Web.start(relayHandler(relay, { authorize: () => true }));
  closing.push(
    () => relay.close(),
    () => web[Symbol.asyncDispose](),
  );
  return web;
};

/** Blocks the thread for 20 ms now and then, like a page that renders. */
const withWork = <E>(source: Observable<E>): Observable<E> =>
  defer(() => {
    const work = setInterval(() => {
      const until = performance.now() + 20;
      while (performance.now() < until);
    }, 70);
    return source.pipe(finalize(() => clearInterval(work)));
  });

/**
 * Returns the windows of a feed, each with the number of frames that were received in its time, counted before the operator, and with what its windows
 * by key, on the same shared feed, say about it.
 */
const windowsOf = async (source: Observable<RelayedEvent>) => {
  const received: number[] = [];
  const windows: FeedWindow<unknown>[] = [];
  const keyed: (FeedWindow<AnyFrame> & WindowKey<number>)[] = [];
  const shared$ = source.pipe(
    tap((event) => event.type === 'frame' && received.push(event.receivedAt)),
    share(),
  );
  const by = ({ receivedAt }: AnyFrame) => Math.floor(receivedAt) % 3;
  const byKey = tumblingWindow<RelayedEvent, number>({ lengthMs, by });
  shared$.pipe(byKey).subscribe((window) => keyed.push(window));
  await shared$.pipe(tumblingWindow<RelayedEvent>({ lengthMs })).forEach((window) => windows.push(window));
  for (const { frames, key } of keyed) expect(frames.map(by)).toEqual(frames.map(() => key));
  return windows.map(({ start, end, count, complete }) => ({
    ...{ start, count, complete },
    byKey: keyed
      .filter((each) => each.start === start && each.complete === complete)
      .reduce((sum, each) => sum + each.count, 0),
    received: received.filter((at) => at >= start && at < end).length,
    isInside: start >= Math.min(...received) && end <= Math.max(...received),
  }));
};

const expectExact = (windows: Awaited<ReturnType<typeof windowsOf>>): void => {
  expect(windows.map(({ count }) => count)).toEqual(windows.map(({ received }) => received));
  expect(windows.map(({ byKey }) => byKey)).toEqual(windows.map(({ received }) => received));
  const inside = windows.filter(({ isInside }) => isInside);
  expect(inside.length).toBeGreaterThan(5);
  expect(inside.filter(({ complete }) => !complete)).toEqual([]);
  expect(windows.slice(1).map(({ start }) => start)).toEqual(windows.slice(0, -1).map(({ start }) => start + lengthMs));
};

describe('windows contain exactly the frames that were received in their time', () => {
  /** Completes with the first frame that was received long enough after the first one, once `isEnough`. */
  const forAWhile = <E extends RelayedEvent | FeedEvent>(source: Observable<E>, isEnough = (): boolean => true) =>
    defer(() => {
      let begin: number | undefined;
      return source.pipe(
        takeWhile((event) => {
          if (event.type !== 'frame') return true;
          begin ??= event.receivedAt;
          return event.receivedAt < begin + runMs || !isEnough();
        }, true),
      );
    });

  it('of a feed in a worker, even if the main thread is busy at times', async () => {
    const { options } = await steadyService();
    expectExact(await windowsOf(withWork(forAWhile(tradeFeedEvents$('market', { ...options, receiveIn: 'worker' })))));
  });

  it.each(['main', 'worker'] as const)('of a relay whose feed is received in: %s', async (receiveIn) => {
    const { options } = await steadyService();
    const web = await relayOf(tradeFeedEvents$('market', { ...options, receiveIn }), { lingerMs: 0 });
    expectExact(await windowsOf(withWork(forAWhile(relayFeed$(web.url)))));
  });

  it('of a relay whose connection breaks, with resumed frames in the windows of their own time', async () => {
    const { options } = await steadyService();
    const web = await relayOf(tradeFeedEvents$('market', options));
    const backoff = { initialDelayMs: 100, maxDelayMs: 100, jitter: 'none' } as const;
    let frames = 0;
    const breaking$ = relayFeed$(web.url, { backoff }).pipe(
      tap(({ type }) => {
        if (type === 'frame' && (frames += 1) === 20) web.reset();
      }),
    );
    const windows = await windowsOf(forAWhile(breaking$, () => web.requests.length > 1));
    expect(web.requests.length).toBeGreaterThan(1);
    expectExact(windows);
  });

  it('of a log', async () => {
    const { options } = await steadyService();
    const log = feedLog(folder.path('market'));
    await forAWhile(tradeFeedEvents$('market', options))
      .pipe(log.append())
      .forEach(() => undefined);
    expectExact(await windowsOf(log.read$({ follow: false })));
    expectExact(await windowsOf(log.read$({ follow: false, speed: 20 })));
  });
});

describe('windows of a quiet feed', () => {
  const isEmpty = ({ count }: FeedWindow<unknown>) => count === 0;

  it.each(['a worker', 'a relay'])('close even if no frame arrives: over %s', async (hop) => {
    const service = await startTradeFeedService({ sources: {} });
    closing.push(() => service.shutdown());
    const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
    const receiveIn = hop === 'a worker' ? 'worker' : 'main';
    let events$: Observable<FeedEvent | RelayedEvent> = tradeFeedEvents$('market', {
      ...{ baseUrl: service.baseUrl, apiKey, receiveIn },
    });
    if (hop === 'a relay') {
      const web = await relayOf(events$ as Observable<FeedEvent>, { lingerMs: 0 });
      events$ = relayFeed$(web.url);
    }
    const lateness: number[] = [];
    await events$
      .pipe(
        tumblingWindow<RelayedEvent>({ lengthMs: 100 }),
        tap(({ end }) => lateness.push(Date.now() - end)),
        filter((window) => window.complete && isEmpty(window)),
        take(4),
      )
      .forEach(() => undefined);
    expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
    expect(lateness.length).toBeGreaterThanOrEqual(4);
  });
});
