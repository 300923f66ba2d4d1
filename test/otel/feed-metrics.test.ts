import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { concat, from, NEVER, type Observable, Subject, take, throwError } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  type DropReport,
  frames,
  type OwnerChanged,
  type RelayedEvent,
  recordTo,
  replay$,
  shareFeed,
  TradeFeedError,
  tradeFeedEvents$,
} from '../../src/index.js';
import { feedMetrics, type FeedMetricsOptions } from '../../src/otel/index.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import {
  disconnected,
  frameOf,
  gapOf,
  issued,
  marbles,
  opened,
  reconnecting,
  requested,
  stopped,
  watermark,
} from '../operators/stream.js';
import { Web } from '../relay/support.js';
import { optionsFor, until } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, startWire, text } from '../support/wire.js';
import { type Metric, startSdk } from './sdk.js';

const base = {
  'messaging.system': 'trade_feed',
  'messaging.operation.name': 'receive',
  'messaging.destination.name': 'market',
};

/** Returns the value of the only series with these attributes, which are all but those of the feed. */
const valueIn = (metrics: Readonly<Record<string, Metric>>, name: string, more: Attributes = {}): unknown => {
  const wanted = JSON.stringify({ ...base, ...more });
  const found = metrics[name]?.series.filter(({ attributes }) => JSON.stringify(attributes) === wanted) ?? [];
  return found.length === 1 ? found[0]?.value : found;
};

const statesIn = (metrics: Readonly<Record<string, Metric>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    (metrics['trade_feed.connection.state']?.series ?? []).map(({ attributes, value }) => [
      String(attributes['trade_feed.state']),
      value,
    ]),
  );

const reportOf = (dropped: number): DropReport => ({
  ...{ reason: 'overflow', dropped, droppedBytes: 0, total: dropped, from: 0, to: 0 },
});

/** A source that a test feeds, measured by an operator. */
const measured = (options: FeedMetricsOptions) => {
  const source$ = new Subject<unknown>();
  const measure = feedMetrics(options);
  const subscribe = () => source$.pipe(measure).subscribe({ error: () => undefined });
  return {
    source$,
    measure,
    subscribe,
    emit: (...events: readonly unknown[]) => events.forEach((event) => source$.next(event)),
  };
};

describe('feedMetrics', () => {
  it('emits everything unchanged, and subscribes once', async () => {
    await using sdk = startSdk();
    const events = { t: requested(1), o: opened(2), f: frameOf('a'), d: disconnected(3), w: watermark(4), x: 'other' };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-o-f-x-d-w-#', events);
      expectObservable(source$.pipe(feedMetrics(sdk.options))).toBe('-t-o-f-x-d-w-#', events);
      expectSubscriptions(source$.subscriptions).toBe('^------------!');
    });
  });

  it('has these instruments with these units', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured({ ...sdk.options, cluster: { status: { replica: 'a', owner: 'a' } } });
    subscribe();
    emit(requested(1), opened(2), frameOf('a'), disconnected(3), reconnecting(3, 5), gapOf(3, 9));
    const metrics = await sdk.collect();
    expect(Object.fromEntries(Object.entries(metrics).map(([name, { unit }]) => [name, unit]))).toEqual({
      'messaging.client.consumed.messages': '{message}',
      'trade_feed.io': 'By',
      'trade_feed.frame.age': 's',
      'trade_feed.connection.state': '{feed}',
      'trade_feed.reconnects': '{reconnect}',
      'trade_feed.gap.duration': 's',
      'trade_feed.attempt.duration': 's',
      'trade_feed.frames.missed': '{frame}',
      'trade_feed.frames.dropped': '{frame}',
      'trade_feed.cluster.owner': '{replica}',
      'trade_feed.cluster.handovers': '{handover}',
    });
  });

  it('counts frames and bytes, also before an event and of items that operators created from frames', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(frameOf('one'), frameOf('three'), 'not a frame', { type: 'opened' });
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
    expect(valueIn(metrics, 'trade_feed.io')).toBe(8);
    expect(statesIn(metrics)).toEqual({ connecting: 0, live: 1, reconnecting: 0, stopped: 0 });
  });

  it('calls no instrument and no span for a frame', async () => {
    await using sdk = startSdk();
    const calls: string[] = [];
    const spied = <T extends object>(name: string, target: T): T =>
      new Proxy(target, {
        get: (object, property) => {
          const value: unknown = Reflect.get(object, property);
          if (typeof value !== 'function') return value;
          return (...args: readonly unknown[]) => {
            calls.push(`${name}.${String(property)}`);
            const result: unknown = Reflect.apply(value, object, args);
            return typeof result === 'object' && result !== null ? spied(String(property), result) : result;
          };
        },
      });
    const { subscribe, emit } = measured({
      meter: spied('meter', sdk.options.meter),
      tracer: spied('tracer', sdk.options.tracer),
    });
    subscribe();
    emit(requested(1), opened(2), frameOf('a'));
    expect(calls).toContain('createHistogram.record');
    expect(calls).toContain('tracer.startSpan');
    calls.splice(0);
    for (let n = 0; n < 100; n += 1) emit(frameOf('a'));
    expect(calls).toEqual([]);
  });

  it('shows the age of the newest frame when the meter collects', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(1), opened(2));
    expect(valueIn(await sdk.collect(), 'trade_feed.frame.age')).toEqual([]);
    const now = jest.spyOn(Date, 'now').mockReturnValue(7_000);
    emit(frameOf('a', 4_000), frameOf('b', 7_500));
    const ageByClockThatIsBehind = valueIn(await sdk.collect(), 'trade_feed.frame.age');
    now.mockReturnValue(10_000);
    const age = valueIn(await sdk.collect(), 'trade_feed.frame.age');
    now.mockRestore();
    expect([ageByClockThatIsBehind, age]).toEqual([0, 2.5]);
  });

  it('shows the state of the connection, also after the stop, until the next subscription', async () => {
    await using sdk = startSdk();
    const { measure } = measured(sdk.options);
    const run = () => {
      const source$ = new Subject<unknown>();
      const subscription = source$.pipe(measure).subscribe({ error: () => undefined });
      return { source$, subscription };
    };
    const states = async () => Object.entries(statesIn(await sdk.collect())).filter(([, count]) => count !== 0);
    expect(await states()).toEqual([]);
    const first = run();
    first.source$.next(requested(1));
    expect(await states()).toEqual([['connecting', 1]]);
    first.source$.next(opened(2));
    expect(await states()).toEqual([['live', 1]]);
    first.source$.next(disconnected(3));
    first.source$.next(reconnecting(3, 5));
    expect(await states()).toEqual([['reconnecting', 1]]);
    first.source$.next(stopped(4));
    first.source$.error(stopped(4).failure);
    expect(await states()).toEqual([['stopped', 1]]);
    const second = run();
    expect(await states()).toEqual([['stopped', 1]]);
    second.source$.next(requested(5));
    expect(await states()).toEqual([['connecting', 1]]);
    second.subscription.unsubscribe();
    expect(await states()).toEqual([]);
  });

  it('counts reconnects and measures gaps by the code of the failure', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(1), opened(2), disconnected(5), gapOf(5, 755), { ...gapOf(800, 1_050), missed: 3 });
    emit(disconnected(6, { closeCode: 1013 }), disconnected(7), disconnected(8, { closeCode: 4001 }));
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'connection-lost' })).toBe(2);
    expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'client-too-slow' })).toBe(1);
    expect(metrics['trade_feed.reconnects']?.series).toHaveLength(2);
    const gaps = valueIn(metrics, 'trade_feed.gap.duration', { 'error.type': 'connection-lost' });
    expect(gaps).toEqual({ count: 2, sum: 1 });
    expect(valueIn(metrics, 'trade_feed.frames.missed')).toBe(3);
  });

  it('counts the drops of bounded operators while it is subscribed to', async () => {
    await using sdk = startSdk();
    const drops$ = new Subject<DropReport>();
    const { subscribe, emit } = measured({ ...sdk.options, drops$ });
    const subscription = subscribe();
    emit(opened(1));
    drops$.next(reportOf(2));
    drops$.next(reportOf(3));
    subscription.unsubscribe();
    expect(drops$.observed).toBe(false);
    expect(valueIn(await sdk.collect(), 'trade_feed.frames.dropped')).toBe(5);
  });

  it('shows whether this replica owns the connection, and counts the changes', async () => {
    await using sdk = startSdk();
    const cluster = { status: { replica: 'a', owner: 'a' as string | undefined } };
    const { subscribe, emit } = measured({ ...sdk.options, cluster });
    subscribe();
    emit(opened(1));
    expect(valueIn(await sdk.collect(), 'trade_feed.cluster.owner')).toBe(1);
    cluster.status = { replica: 'a', owner: 'b' };
    emit({ type: 'owner-changed', at: 5, owner: 'b', generation: 2 } satisfies OwnerChanged);
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'trade_feed.cluster.owner')).toBe(0);
    expect(valueIn(metrics, 'trade_feed.cluster.handovers')).toBe(1);
  });

  it('counts the changes of the owner without the option, and has no cluster metrics before', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(opened(1));
    expect(Object.keys(await sdk.collect()).filter((name) => name.includes('cluster'))).toEqual([]);
    emit({ type: 'owner-changed', at: 5, owner: 'b', generation: 2 } satisfies OwnerChanged);
    expect(valueIn(await sdk.collect(), 'trade_feed.cluster.handovers')).toBe(1);
  });

  it('has the attributes of the options, which can replace its own', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured({
      ...sdk.options,
      attributes: { 'messaging.destination.name': 'trades', zone: 'b' },
    });
    subscribe();
    emit(requested(1), opened(2), frameOf('a'));
    const expected = { ...base, 'messaging.destination.name': 'trades', zone: 'b' };
    const metrics = await sdk.collect();
    for (const { series } of Object.values(metrics))
      for (const { attributes } of series) expect(attributes).toMatchObject(expected);
    expect(sdk.spans()[0]?.attributes).toMatchObject(expected);
  });

  it('separates the feeds that it measures', async () => {
    await using sdk = startSdk();
    const { measure } = measured(sdk.options);
    from([requested(1), opened(2), frameOf('a')])
      .pipe(measure)
      .subscribe();
    from([
      { ...requested(1), feed: 'raw' },
      { ...opened(2), feed: 'raw' },
    ])
      .pipe(measure)
      .subscribe();
    const { series } = (await sdk.collect())['messaging.client.consumed.messages'] as Metric;
    expect(series.map(({ attributes, value }) => [attributes['messaging.destination.name'], value])).toEqual([
      ['market', 1],
      ['raw', 0],
    ]);
  });

  it.each<[string, object, RegExp]>([
    ['no meter', {}, /`meter` must be a Meter of @opentelemetry\/api/],
    ['a meter that is none', { meter: {} }, /`meter`/],
    ['a tracer that is none', { tracer: {} }, /`tracer` must be a Tracer/],
    ['attributes that are none', { attributes: 3 }, /`attributes` must be an object/],
    ['drops that are none', { drops$: {} }, /`drops\$` must be an Observable/],
    ['a cluster that is none', { cluster: 'a' }, /`cluster`/],
    ['an unknown option', { prefix: 'a' }, /`prefix` must be left out/],
  ])('refuses %s at once', (_name, options, message) => {
    expect(() => feedMetrics(options as FeedMetricsOptions)).toThrow(TradeFeedError);
    expect(() => feedMetrics(options as FeedMetricsOptions)).toThrow(message);
  });
});

describe('the span of an attempt', () => {
  const ms = ([seconds, nanoseconds]: readonly [number, number]) => seconds * 1_000 + nanoseconds / 1e6;
  const unavailable = disconnected(1_030, { stage: 'ticket', status: 503, closeCode: undefined });

  it('covers the ticket and the handshake, and ends when the connection is open', async () => {
    await using sdk = startSdk();
    // The SDK takes a small number for a time since the start of the process.
    const t = Date.UTC(2026, 0);
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(t), issued(t + 20));
    expect(sdk.spans()).toEqual([]);
    emit(opened(t + 45), frameOf('a'));
    const [span, ...others] = sdk.spans();
    expect(others).toEqual([]);
    expect([span?.name, span?.kind, span?.status.code]).toEqual([
      'trade_feed.attempt',
      SpanKind.CLIENT,
      SpanStatusCode.UNSET,
    ]);
    expect([span?.startTime, span?.endTime].map((time) => ms(time as [number, number]))).toEqual([t, t + 45]);
    expect(span?.events.map(({ name, time }) => [name, ms(time)])).toEqual([['ticket-issued', t + 20]]);
    expect(span?.attributes).toEqual({ ...base, 'trade_feed.attempt': 1 });
    expect(valueIn(await sdk.collect(), 'trade_feed.attempt.duration')).toEqual({ count: 1, sum: 0.045 });
  });

  it('shows the failure of the attempt, and the next span names it', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(1_000), unavailable, reconnecting(1_030, 5), requested(1_035), opened(1_040));
    const [failed, next] = sdk.spans();
    expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR, message: unavailable.failure.message });
    expect(failed?.attributes).toEqual({
      ...{ ...base, 'trade_feed.attempt': 1, 'error.type': 'credential-service-unavailable' },
      ...{ 'trade_feed.stage': 'ticket', 'http.response.status_code': 503 },
    });
    const previous = { 'trade_feed.previous.error.type': 'credential-service-unavailable' };
    expect(next?.attributes).toEqual({ ...base, 'trade_feed.attempt': 2, ...previous });
    const metrics = await sdk.collect();
    const byCode = { 'error.type': 'credential-service-unavailable' };
    expect(valueIn(metrics, 'trade_feed.attempt.duration', byCode)).toEqual({ count: 1, sum: 0.03 });
  });

  it('is not extended by the stream, whose failure the next span names', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(1_000), opened(1_010), disconnected(9_000), requested(9_001), opened(9_002));
    expect(sdk.spans().map(({ duration }) => Math.round(ms(duration)))).toEqual([10, 1]);
    expect(sdk.spans()[1]?.attributes).toMatchObject({ 'trade_feed.previous.error.type': 'connection-lost' });
    expect(valueIn(await sdk.collect(), 'trade_feed.attempt.duration')).toEqual({ count: 2, sum: 0.011 });
  });

  it('ends without an error when the subscriber unsubscribes, and with one when the feed stops', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    const subscription = subscribe();
    emit(requested(Date.now()));
    subscription.unsubscribe();
    subscribe();
    const refused = { stage: 'ticket', status: 401, closeCode: undefined } as const;
    emit(requested(1_000), stopped(1_010, refused));
    const [ended, failed] = sdk.spans();
    expect(ended?.status.code).toBe(SpanStatusCode.UNSET);
    expect(failed?.attributes).toMatchObject({ 'error.type': 'invalid-api-key', 'trade_feed.attempt': 1 });
    const { series } = (await sdk.collect())['trade_feed.attempt.duration'] as Metric;
    expect(series.map(({ attributes }) => attributes['error.type'])).toEqual(['invalid-api-key']);
  });

  it('ends when the source begins another attempt', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured(sdk.options);
    subscribe();
    emit(requested(1_000), requested(1_005), opened(1_007));
    expect(sdk.spans().map(({ attributes }) => attributes['trade_feed.attempt'])).toEqual([1, 2]);
  });

  it('has no parent: the request in which the application subscribed ends before the feed', async () => {
    await using sdk = startSdk();
    const active = trace.setSpan(ROOT_CONTEXT, sdk.options.tracer.startSpan('request'));
    const tracer = {
      startSpan: (name: string, options?: object) => sdk.options.tracer.startSpan(name, options, active),
    };
    const { subscribe, emit } = measured({ meter: sdk.options.meter, tracer: tracer as FeedMetricsOptions['tracer'] });
    subscribe();
    emit(requested(1), opened(2));
    expect(sdk.spans()[0]?.parentSpanContext).toBe(undefined);
  });

  it('is not created without a tracer', async () => {
    await using sdk = startSdk();
    const { subscribe, emit } = measured({ meter: sdk.options.meter });
    subscribe();
    emit(requested(1), issued(2), opened(3), disconnected(4), requested(5), unavailable);
    expect(sdk.spans()).toEqual([]);
    expect((await sdk.collect())['trade_feed.attempt.duration']?.series).toHaveLength(2);
  });
});

describe('each source of events', () => {
  const folder = tempFolder();
  afterEach(() => void workers.started.splice(0));

  it.each(['main', 'worker'] as const)(
    'a feed that is received in %s: two connections and the gap',
    async (receiveIn) => {
      await using sdk = startSdk();
      await using wire = await startWire({ handshake: [accept(text('one'), close(1001)), accept(text('two'))] });
      const feed$ = tradeFeedEvents$('market', optionsFor(wire, { receiveIn })).pipe(feedMetrics(sdk.options));
      await until(feed$, (event) => event.type === 'frame' && event.text() === 'two');
      const metrics = await sdk.collect();
      expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
      expect(valueIn(metrics, 'trade_feed.io')).toBe(6);
      expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'server-shutdown' })).toBe(1);
      expect(valueIn(metrics, 'trade_feed.gap.duration', { 'error.type': 'server-shutdown' })).toMatchObject({
        count: 1,
      });
      expect(valueIn(metrics, 'trade_feed.attempt.duration')).toMatchObject({ count: 2 });
      const previous = sdk.spans().map(({ attributes }) => attributes['trade_feed.previous.error.type']);
      expect(previous).toEqual([undefined, 'server-shutdown']);
    },
  );

  it('a page of a relay: the frames and events of the feed', async () => {
    await using sdk = startSdk();
    const source$ = new Subject<RelayedEvent>();
    const relay = createRelay(source$, { batchMs: 0 });
    await using web = await Web.start(relayHandler(relay, { authorize: () => true }));
    const received: string[] = [];
    const subscription = relayFeed$(web.url, { backoff: { initialDelayMs: 1, maxDelayMs: 1 } })
      .pipe(feedMetrics(sdk.options))
      .subscribe(({ type }) => received.push(type));
    await waitFor(() => relay.status().clients.length === 1);
    for (const event of [opened(1), frameOf('abc'), disconnected(3), reconnecting(3, 5)]) source$.next(event);
    await waitFor(() => received.includes('reconnecting'));
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(1);
    expect(valueIn(metrics, 'trade_feed.io')).toBe(3);
    expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'connection-lost' })).toBe(1);
    subscription.unsubscribe();
    relay.close();
  });

  it('a recording: its frames and gaps', async () => {
    await using sdk = startSdk();
    const path = folder.path('feed.ndjson');
    from([opened(1), frameOf('a', 2), gapOf(5, 1_005), frameOf('b', 1_012)])
      .pipe(recordTo(path))
      .subscribe();
    await until(replay$(path, { speed: Infinity }).pipe(feedMetrics(sdk.options)), () => false);
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
    expect(valueIn(metrics, 'trade_feed.gap.duration', { 'error.type': 'connection-lost' })).toEqual({
      count: 1,
      sum: 1,
    });
  });

  it('a stop and a new subscription: the counters continue', async () => {
    await using sdk = startSdk();
    const run$: Observable<unknown> = concat(
      [requested(1), opened(2), frameOf('a'), stopped(4)],
      throwError(() => stopped(4).failure),
    ).pipe(feedMetrics(sdk.options));
    for (let run = 0; run < 2; run += 1) run$.subscribe({ error: () => undefined });
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
    expect(statesIn(metrics)).toMatchObject({ stopped: 1, live: 0 });
    expect(sdk.spans().map(({ attributes }) => attributes['trade_feed.attempt'])).toEqual([1, 1]);
  });

  it('before a shared feed: each frame counts once; two operators after it: each has its own attributes', async () => {
    await using sdk = startSdk();
    const source$ = new Subject<unknown>();
    const measured$ = source$.pipe(feedMetrics(sdk.options), shareFeed());
    const inBranch = (branch: string) => feedMetrics({ ...sdk.options, attributes: { branch } });
    measured$.pipe(inBranch('a'), frames(), take(1)).subscribe();
    measured$.pipe(inBranch('b')).subscribe();
    for (const event of [opened(1), frameOf('a'), frameOf('b')]) source$.next(event);
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
    expect(valueIn(metrics, 'messaging.client.consumed.messages', { branch: 'a' })).toBe(1);
    expect(valueIn(metrics, 'messaging.client.consumed.messages', { branch: 'b' })).toBe(2);
  });
});

it('measures nothing without a subscriber', async () => {
  await using sdk = startSdk();
  NEVER.pipe(feedMetrics(sdk.options)).subscribe().unsubscribe();
  expect(await sdk.collect()).toEqual({});
});
