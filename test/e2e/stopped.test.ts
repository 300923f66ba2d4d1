import { afterEach, describe, expect, it } from '@jest/globals';
import { defer, lastValueFrom, type Observable, retry, Subject, switchMap, takeUntil, tap, timer, toArray } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  connectionStatus,
  countWindow,
  feedStats,
  type FeedWindow,
  gaps,
  shareFeed,
  slidingWindow,
  tradeFeed$,
  TradeFeedError,
  tradeFeedEvents$,
  type TradeFeedOptions,
  tumblingWindow,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import type { RelayedEvent, Stopped } from '../../src/protocol/event.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import { startTradeFeedService } from '../../src/testing/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { Web } from '../relay/support.js';

const folder = tempFolder();
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const started = async () => {
  const service = await startTradeFeedService({ sources: {} });
  closing.push(() => service.shutdown());
  const account = service.createAccount({ plan: 'developer' });
  const options: TradeFeedOptions = { baseUrl: service.baseUrl, apiKey: account.createApiKey() };
  return { service, account, options };
};

type Hop = 'in the main thread' | 'in a worker' | 'over a relay';
const hops: readonly Hop[] = ['in the main thread', 'in a worker', 'over a relay'];

/** Returns the feed after a hop. Each subscription creates a new relay, like after a restart. */
const feedAfter = (hop: Hop, options: TradeFeedOptions): Observable<RelayedEvent> => {
  if (hop !== 'over a relay')
    return tradeFeedEvents$('market', { ...options, receiveIn: hop === 'in a worker' ? 'worker' : 'main' });
  return defer(async () => {
    const relay = createRelay(tradeFeedEvents$('market', options), { batchMs: 0 });
    const web = await Web.start(relayHandler(relay, { authorize: () => true }));
    closing.push(
      () => relay.close(),
      () => web[Symbol.asyncDispose](),
    );
    return relayFeed$(web.url, { maxFeedStops: 1 });
  }).pipe(switchMap((feed$) => feed$));
};

describe.each(hops)('a feed that stops, %s', (hop) => {
  it('emits `stopped` with the failure as the last event before the error', async () => {
    const { account, options } = await started();
    const events: RelayedEvent[] = [];
    const other$ = tradeFeed$('market', { ...options, apiKey: account.createApiKey() });
    const ended = new Subject<void>();
    const error: unknown = await new Promise((resolve) => {
      feedAfter(hop, options).subscribe({
        next: (event) => {
          events.push(event);
          if (event.type === 'opened') other$.pipe(takeUntil(ended)).subscribe();
        },
        error: resolve,
      });
    });
    ended.next();
    const last = events.filter(({ type }) => type !== 'watermark').at(-1) as Stopped;
    expect(error).toMatchObject({ code: 'connection-replaced', verdict: 'stop' });
    expect([last.type, last.failure, events.at(-1)]).toEqual(['stopped', error, last]);
    expect(events.filter(({ type }) => type === 'stopped')).toHaveLength(1);
  });

  it('emits `stopped` even if it was never open', async () => {
    const { service } = await started();
    const events: RelayedEvent[] = [];
    const error: unknown = await feedAfter(hop, { baseUrl: service.baseUrl, apiKey: 'wrong' })
      .forEach((event) => events.push(event))
      .catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'invalid-api-key' });
    expect(events.at(-1)).toMatchObject({ type: 'stopped', failure: error });
  });

  it('is a single outage for every operator, until the next subscription emits `opened`', async () => {
    const { account, service, options } = await started();
    const pump = setInterval(() => service.push('market', '{}'), 5);
    closing.push(() => clearInterval(pump));
    const log = feedLog(folder.path(`stopped-${hop.replaceAll(' ', '-')}`));
    const events: RelayedEvent[] = [];
    const [done, replaced] = [new Subject<void>(), new Subject<void>()];
    let isReplaced = false;
    let reopenedAt = Infinity;
    const other$ = tradeFeed$('market', { ...options, apiKey: account.createApiKey() });
    const replace = () => other$.pipe(takeUntil(replaced)).subscribe();
    const feed$ = feedAfter(hop, options).pipe(
      tap((event) => {
        events.push(event);
        if (event.type === 'frame' && !isReplaced) {
          isReplaced = true;
          replace();
        }
        if (event.type === 'stopped') replaced.next();
        if (event.type === 'opened' && isReplaced) reopenedAt = event.at;
      }),
      retry({ delay: () => timer(450) }),
      shareFeed({ lingerMs: 0 }),
      takeUntil(done),
    );
    const all = <T>(seen$: Observable<T>) => lastValueFrom(seen$.pipe(toArray()));
    // The feed ends when both kinds of windows are complete again.
    const isComplete = { tumbling: false, sliding: false };
    const completes = (kind: keyof typeof isComplete) =>
      tap<FeedWindow<unknown>>(({ complete, start }) => {
        isComplete[kind] ||= complete && start >= reopenedAt;
        if (isComplete.tumbling && isComplete.sliding) queueMicrotask(() => done.next());
      });
    const [tumbling, byKey, sliding, counted, stats, statuses, seenGaps] = await Promise.all([
      all(feed$.pipe(tumblingWindow<RelayedEvent>({ lengthMs: 100 }), completes('tumbling'))),
      all(feed$.pipe(tumblingWindow<RelayedEvent, string>({ lengthMs: 100, by: (frame) => frame.feed }))),
      all(feed$.pipe(slidingWindow<RelayedEvent>({ lengthMs: 200, everyMs: 100 }), completes('sliding'))),
      all(feed$.pipe(countWindow<RelayedEvent>(10))),
      all(feed$.pipe(feedStats({ everyMs: 100 }))),
      all(feed$.pipe(connectionStatus())),
      all(feed$.pipe(gaps())),
      all(feed$.pipe(log.append())),
    ]);

    // The expected gap: from the end of the failure's connection to the next `opened`.
    const { failure } = events.find(({ type }) => type === 'stopped') as Stopped;
    const reopened = events.findLast((event) => event.type === 'opened')!;
    const [from, to] = [failure.endedAt, reopened.at];
    const expectedGap = { type: 'gap', from, to, durationMs: to - from };
    expect(failure.code).toBe('connection-replaced');
    expect(expectedGap.durationMs).toBeGreaterThanOrEqual(440);
    expect(seenGaps).toEqual([{ ...expectedGap, failure }]);

    const overlaps = ({ start, end }: FeedWindow<unknown>) => start < expectedGap.to && end > expectedGap.from;
    for (const windows of [tumbling, sliding]) {
      expect(windows.filter(overlaps).length).toBeGreaterThan(3);
      expect(windows.filter(overlaps).filter(({ complete }) => complete)).toEqual([]);
      for (const window of windows.filter(overlaps))
        expect(window.gaps.map(({ from }) => from)).toEqual([expectedGap.from]);
      expect(windows.find((window) => overlaps(window) && window.end >= expectedGap.to)?.gaps).toEqual([
        { ...expectedGap, failure },
      ]);
      expect(windows.some((window) => !overlaps(window) && window.complete)).toBe(true);
    }
    const shown = ({ start, count, complete, reason }: FeedWindow<unknown>) => ({ start, count, complete, reason });
    expect(byKey.map(shown)).toEqual(tumbling.filter(({ count }) => count > 0).map(shown));
    expect(byKey.filter(overlaps).every(({ reason }) => reason === 'gap')).toBe(true);
    expect(counted.flatMap((window) => window.gaps)).toEqual([{ ...expectedGap, failure }]);

    expect(stats.at(-1)).toMatchObject({ gaps: 1, lostMs: expectedGap.durationMs });
    for (const name of ['totalFrames', 'gaps', 'lostMs'] as const) {
      const figures = stats.map((figure) => figure[name]);
      expect(figures).toEqual([...figures].sort((a, b) => a - b));
    }
    const frames = events.filter(({ type }) => type === 'frame');
    expect(stats.at(-1)?.totalFrames).toBe(frames.length);

    const states = statuses.map(({ state }) => state);
    const changes = states.filter((state, n) => state !== states[n - 1]);
    expect(changes).toEqual(['connecting', 'live', 'stopped', 'reconnecting', 'live']);
    expect(statuses.find(({ state }) => state === 'reconnecting')).toMatchObject({ since: expectedGap.from, failure });

    const records = await all(log.read$({ follow: false }));
    const inLog = records.flatMap((event) => (event.type === 'gap' ? [[event.from, event.to]] : []));
    expect(inLog).toEqual([[expectedGap.from, expectedGap.to]]);
    expect(records.filter(({ type }) => type === 'frame')).toHaveLength(frames.length);
  });
});

describe('an exception of the caller', () => {
  it('is not a failure of the feed, which emits no `stopped`', async () => {
    const { options } = await started();
    const thrown = new Error('mine');
    const events: RelayedEvent[] = [];
    const classify = (): never => {
      throw thrown;
    };
    const events$ = tradeFeedEvents$('market', { ...options, apiKey: 'wrong', classify });
    const error: unknown = await events$.forEach((event) => events.push(event)).catch((error: unknown) => error);
    expect(error).toBe(thrown);
    expect(error).not.toBeInstanceOf(TradeFeedError);
    expect(events.map(({ type }) => type)).toEqual(['ticket-requested']);
  });
});
