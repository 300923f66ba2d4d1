import { describe, expect, it, jest } from '@jest/globals';
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { concat, NEVER, Subject } from 'rxjs';
import { type DropReport, feedStats, type FeedStats, type OwnerChanged, TradeFeedError } from '../../src/index.js';
import { feedMetrics, type FeedMetricsOptions } from '../../src/otel/index.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { createFailure } from '../../src/protocol/failures/trade-feed-error.js';
import {
  disconnected,
  frameOf,
  gapOf,
  issued,
  opened,
  reconnecting,
  requested,
  stopped,
  watermark,
} from '../operators/stream.js';
import { fakeTimers } from '../support/fake-timers.js';
import { type Metric, startSdk } from './sdk.js';

const base = {
  'messaging.system': 'trade_feed',
  'messaging.operation.name': 'receive',
  'messaging.destination.name': 'market',
};

/** Returns the value of the only series with these attributes plus the feed's. */
const valueIn = (metrics: Readonly<Record<string, Metric>>, name: string, more: Attributes = {}): unknown => {
  const expected = JSON.stringify({ ...base, ...more });
  const found = metrics[name]?.series.filter(({ attributes }) => JSON.stringify(attributes) === expected) ?? [];
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

/** Starts the SDK, and a subscription to a source that the test feeds. */
const start = (options: Partial<FeedMetricsOptions> = {}) => {
  const sdk = startSdk();
  const source$ = new Subject<unknown>();
  const measure = feedMetrics({ ...sdk.options, ...options });
  const subscribe = () => source$.pipe(measure).subscribe({ error: () => undefined });
  const emit = (...events: readonly unknown[]) => events.forEach((event) => source$.next(event));
  return { ...sdk, source$, measure, emit, subscribe, subscription: subscribe() };
};

describe('feedMetrics', () => {
  it('counts frames and bytes, even before the first event and in items that operators made from frames', async () => {
    await using sdk = start();
    sdk.emit(frameOf('one'), frameOf('three'), 'not a frame', { type: 'opened' });
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'messaging.client.consumed.messages')).toBe(2);
    expect(valueIn(metrics, 'trade_feed.io')).toBe(8);
    expect(statesIn(metrics)).toEqual({ connecting: 0, live: 1, reconnecting: 0, stopped: 0 });
  });

  it('calls neither an instrument nor a span for a frame', async () => {
    const calls: string[] = [];
    /** Has any method, which returns another such object. */
    const recorder = (name: string): never => {
      const call = (method: string) => () => {
        calls.push(`${name}.${method}`);
        return recorder(method);
      };
      return new Proxy({}, { get: (_, method) => call(String(method)) }) as never;
    };
    await using sdk = start({ meter: recorder('meter'), tracer: recorder('tracer') });
    sdk.emit(requested(1), opened(2), frameOf('a'));
    expect(calls).toContain('createHistogram.record');
    expect(calls).toContain('tracer.startSpan');
    calls.splice(0);
    for (let n = 0; n < 100; n += 1) sdk.emit(frameOf('a'));
    expect(calls).toEqual([]);
  });

  it('reports the age of the newest frame when the meter collects, or of the connection until one arrives', async () => {
    await using sdk = start();
    sdk.emit(requested(1));
    expect(valueIn(await sdk.collect(), 'trade_feed.frame.age')).toEqual([]);
    const now = jest.spyOn(Date, 'now').mockReturnValue(3_000);
    sdk.emit(opened(2_000));
    expect(valueIn(await sdk.collect(), 'trade_feed.frame.age')).toBe(1);
    now.mockReturnValue(7_000);
    sdk.emit(frameOf('a', 4_000), frameOf('b', 7_500));
    const ageByClockThatIsBehind = valueIn(await sdk.collect(), 'trade_feed.frame.age');
    now.mockReturnValue(10_000);
    const age = valueIn(await sdk.collect(), 'trade_feed.frame.age');
    now.mockRestore();
    expect([ageByClockThatIsBehind, age]).toEqual([0, 2.5]);
  });

  it('reports the state of the connection, and `stopped` until the next subscription', async () => {
    await using sdk = startSdk();
    const measure = feedMetrics(sdk.options);
    const run = () => {
      const source$ = new Subject<unknown>();
      return { source$, subscription: source$.pipe(measure).subscribe({ error: () => undefined }) };
    };
    const states = async () =>
      Object.entries(statesIn(await sdk.collect())).flatMap(([state, n]) => (n ? [state] : []));
    expect(await states()).toEqual([]);
    const first = run();
    for (const [event, state] of [
      [requested(1), 'connecting'],
      [opened(2), 'live'],
      [disconnected(3), 'live'],
      [reconnecting(3, 5), 'reconnecting'],
      [stopped(4), 'stopped'],
    ] as const) {
      first.source$.next(event);
      expect(await states()).toEqual([state]);
    }
    first.source$.error(stopped(4).failure);
    const second = run();
    expect(await states()).toEqual(['stopped']);
    second.source$.next(requested(5));
    expect(await states()).toEqual(['connecting']);
    second.subscription.unsubscribe();
    expect(await states()).toEqual([]);
  });

  it('reports by code how long there has been no connection, and 0 for the codes of earlier outages', async () => {
    using time = fakeTimers();
    await using sdk = start();
    const collected = async () => (await Promise.all([sdk.collect(), jest.advanceTimersByTimeAsync(1)]))[0];
    const outages = async () =>
      (await collected())['trade_feed.outage.age']?.series.map(({ attributes, value }) => [
        ...[attributes['error.type'], Math.round(value as number)],
      ]);
    sdk.emit(requested(1));
    jest.advanceTimersByTime(6_000);
    expect(await outages()).toEqual([
      [undefined, 0],
      ['ticket-endpoint-unreachable', 6],
    ]);
    sdk.emit(opened(2), disconnected(Date.now()), reconnecting(Date.now(), 5));
    jest.advanceTimersByTime(3_000);
    const waited = ['ticket-endpoint-unreachable', 0];
    expect(await outages()).toEqual([[undefined, 0], waited, ['connection-lost', 3]]);
    sdk.emit(opened(4));
    jest.advanceTimersByTime(3_000);
    expect(await outages()).toEqual([[undefined, 0], waited, ['connection-lost', 0]]);
    sdk.emit(stopped(Date.now(), { closeCode: 4001 }));
    jest.advanceTimersByTime(3_000);
    expect((await outages())?.at(-1)).toEqual(['connection-replaced', 3]);
    sdk.subscription.unsubscribe();
    time[Symbol.dispose]();
  });

  it('reports a source that never names its feed, and an error that no event announced', async () => {
    using time = fakeTimers();
    await using sdk = start();
    const collected = async () => (await Promise.all([sdk.collect(), jest.advanceTimersByTimeAsync(1)]))[0];
    expect(await collected()).toEqual({});
    jest.advanceTimersByTime(5_000);
    const waits = await collected();
    expect(statesIn(waits)).toMatchObject({ connecting: 1, stopped: 0 });
    expect(waits['trade_feed.outage.age']?.series).toHaveLength(1);
    expect(waits['trade_feed.outage.age']?.series[0]?.attributes).not.toHaveProperty('messaging.destination.name');
    sdk.source$.error(new Error('no space left'));
    const ended = await collected();
    expect(statesIn(ended)).toMatchObject({ connecting: 0, stopped: 1 });
    expect(ended['trade_feed.outage.age']?.series.at(-1)?.attributes['error.type']).toBe('relay-source-failed');
    time[Symbol.dispose]();
  });

  it('reports silence even if the clock was set back', async () => {
    await using sdk = start();
    sdk.emit(opened(Date.now()), frameOf('a', Date.now() + 3_600_000));
    await sdk.collect();
    const before = performance.now();
    const now = jest.spyOn(performance, 'now').mockReturnValue(before + 9_000);
    const age = valueIn(await sdk.collect(), 'trade_feed.frame.age');
    now.mockRestore();
    expect(age).toBeGreaterThan(8.9);
    sdk.subscription.unsubscribe();
  });

  it('reports an outage of a replica from when it last heard of the feed, although it says so seconds later', async () => {
    using time = fakeTimers();
    await using sdk = start();
    const at = Date.now();
    sdk.emit(opened(at), watermark(at));
    jest.advanceTimersByTime(3_000);
    const failure = createFailure(clusterMeanings.away, { stage: 'stream', endedAt: at });
    sdk.emit({ type: 'disconnected', at, failure });
    jest.advanceTimersByTime(1_000);
    const [metrics] = await Promise.all([sdk.collect(), jest.advanceTimersByTimeAsync(1)]);
    expect(Math.round(valueIn(metrics, 'trade_feed.outage.age', { 'error.type': 'cluster-away' }) as number)).toBe(4);
    sdk.subscription.unsubscribe();
    time[Symbol.dispose]();
  });

  it('reports the longest outage of several subscriptions', async () => {
    await using sdk = startSdk();
    const measure = feedMetrics(sdk.options);
    const now = Date.now();
    const feeds = [[opened(1)], [opened(1), disconnected(now, { endedAt: now - 9_000 }), reconnecting(now, 5)]];
    const running = feeds.map((events) => concat(events, NEVER).pipe(measure).subscribe());
    const age = valueIn(await sdk.collect(), 'trade_feed.outage.age', { 'error.type': 'connection-lost' });
    expect(age).toBeGreaterThan(8.9);
    for (const subscription of running) subscription.unsubscribe();
  });

  it('counts reconnects and measures gaps by the code of the failure', async () => {
    await using sdk = start();
    sdk.emit(requested(1), opened(2), disconnected(5), gapOf(5, 755), { ...gapOf(800, 1_050), missed: 3 });
    sdk.emit(disconnected(6, { closeCode: 1013 }), disconnected(7), disconnected(8, { closeCode: 4001 }));
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'connection-lost' })).toBe(2);
    expect(valueIn(metrics, 'trade_feed.reconnects', { 'error.type': 'client-too-slow' })).toBe(1);
    // The series without a code exists from the start, so that queries read 0 before the first reconnect.
    expect(valueIn(metrics, 'trade_feed.reconnects')).toBe(0);
    expect(metrics['trade_feed.reconnects']?.series).toHaveLength(3);
    const gaps = valueIn(metrics, 'trade_feed.gap.duration', { 'error.type': 'connection-lost' });
    expect(gaps).toEqual({ count: 2, sum: 1 });
    expect(valueIn(metrics, 'trade_feed.frames.missed')).toBe(3);
  });

  it('measures the gap of a resubscription, for which the feed emits none, like `feedStats`', async () => {
    await using sdk = start();
    const stats: FeedStats[] = [];
    sdk.source$.pipe(feedStats()).subscribe((each) => stats.push(each));
    sdk.emit(requested(1), opened(2), frameOf('a', 3), stopped(5), requested(6), opened(755));
    sdk.emit(frameOf('b', 760), frameOf('c', 765), requested(1_000), opened(1_015), frameOf('d', 1_020));
    const metrics = await sdk.collect();
    const ofCode = (code: string) => valueIn(metrics, 'trade_feed.gap.duration', { 'error.type': code });
    expect(ofCode('connection-replaced')).toEqual({ count: 1, sum: 0.75 });
    expect(ofCode('connection-closed')).toEqual({ count: 1, sum: 0.25 });
    sdk.source$.complete();
    expect(stats.at(-1)).toMatchObject({ gaps: 2, lostMs: 1_000 });
  });

  it('counts the drops of bounded operators while it has a subscriber', async () => {
    const drops$ = new Subject<DropReport>();
    await using sdk = start({ drops$ });
    sdk.emit(opened(1));
    drops$.next(reportOf(2));
    drops$.next(reportOf(3));
    sdk.subscription.unsubscribe();
    expect(drops$.observed).toBe(false);
    expect(valueIn(await sdk.collect(), 'trade_feed.frames.dropped')).toBe(5);
  });

  it('reports whether this replica owns the connection, and counts the changes even without the option', async () => {
    const cluster = { status: { replica: 'a', owner: 'a' as string | undefined } };
    await using sdk = start({ cluster });
    await using without = start();
    for (const { emit } of [sdk, without]) emit(opened(1));
    expect(valueIn(await sdk.collect(), 'trade_feed.cluster.owner')).toBe(1);
    expect(Object.keys(await without.collect()).filter((name) => name.includes('cluster'))).toEqual([]);
    cluster.status = { replica: 'a', owner: 'b' };
    for (const { emit } of [sdk, without])
      emit({ type: 'owner-changed', at: 5, owner: 'b', generation: 2 } satisfies OwnerChanged);
    const metrics = await sdk.collect();
    expect(valueIn(metrics, 'trade_feed.cluster.owner')).toBe(0);
    expect(valueIn(metrics, 'trade_feed.cluster.handovers')).toBe(1);
    expect(valueIn(await without.collect(), 'trade_feed.cluster.handovers')).toBe(1);
  });

  it('counts what a replica of a cluster has fetched, and what it has emitted in vain', async () => {
    const cluster = { status: { replica: 'a', owner: 'b', fetched: 3, surplus: 2 } };
    await using sdk = start({ cluster });
    sdk.emit(opened(1));
    const metrics = await sdk.collect();
    expect(['fetched', 'surplus'].map((name) => valueIn(metrics, `trade_feed.cluster.${name}`))).toEqual([3, 2]);
  });

  it('counts the replays of a relay that have failed', async () => {
    const status = { failedReplays: 3 };
    await using sdk = start({ relay: { status: () => status } });
    sdk.emit(opened(1));
    expect(valueIn(await sdk.collect(), 'trade_feed.relay.replays.failed')).toBe(3);
    await using without = start({});
    without.emit(opened(1));
    expect(await without.collect()).not.toHaveProperty(['trade_feed.relay.replays.failed']);
  });

  it('adds the attributes of the options, which can replace its own', async () => {
    const attributes = { 'messaging.destination.name': 'trades', zone: 'b' };
    await using sdk = start({ attributes });
    sdk.emit(requested(1), opened(2), frameOf('a'));
    const expected = { ...base, ...attributes };
    const metrics = await sdk.collect();
    for (const { series } of Object.values(metrics))
      for (const { attributes } of series) expect(attributes).toMatchObject(expected);
    expect(sdk.spans()[0]?.attributes).toMatchObject(expected);
  });

  it.each<[object, RegExp]>([
    [{}, /`meter` must be a Meter of @opentelemetry\/api/],
    [{ tracer: {} }, /`tracer` must be a Tracer/],
    [{ drops$: {} }, /`drops\$` must be an Observable/],
    [{ prefix: 'a' }, /`prefix` doesn't exist/],
  ])('refuses %j from the call itself', (options, message) => {
    expect(() => feedMetrics(options as FeedMetricsOptions)).toThrow(TradeFeedError);
    expect(() => feedMetrics(options as FeedMetricsOptions)).toThrow(message);
  });
});

describe('the span of an attempt', () => {
  const ms = ([seconds, nanoseconds]: readonly [number, number]) => seconds * 1_000 + nanoseconds / 1e6;
  const unavailable = disconnected(1_030, { stage: 'ticket', status: 503, closeCode: undefined });

  it('covers the ticket and the handshake, and ends when the connection opens', async () => {
    await using sdk = start();
    // The SDK takes a small number for a time since the start of the process.
    const t = Date.UTC(2026, 0);
    sdk.emit(requested(t), issued(t + 20));
    expect(sdk.spans()).toEqual([]);
    sdk.emit(opened(t + 45), frameOf('a'));
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

  it('carries the failure of the attempt, and the next span names it', async () => {
    await using sdk = start();
    sdk.emit(requested(1_000), unavailable, reconnecting(1_030, 5), requested(1_033), requested(1_035), opened(1_040));
    const [failed, next, again] = sdk.spans();
    expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR, message: unavailable.failure.message });
    expect(failed?.attributes).toEqual({
      ...{ ...base, 'trade_feed.attempt': 1, 'error.type': 'credential-service-unavailable' },
      ...{ 'trade_feed.stage': 'ticket', 'http.response.status_code': 503 },
    });
    const previous = { 'trade_feed.previous.error.type': 'credential-service-unavailable' };
    expect(next?.attributes).toEqual({ ...base, 'trade_feed.attempt': 2, ...previous });
    expect(again?.attributes).toEqual({ ...base, 'trade_feed.attempt': 3, ...previous });
    const metrics = await sdk.collect();
    const byCode = { 'error.type': 'credential-service-unavailable' };
    expect(valueIn(metrics, 'trade_feed.attempt.duration', byCode)).toEqual({ count: 1, sum: 0.03 });
  });

  it('ends without an error on unsubscribing, and with one when the feed stops', async () => {
    await using sdk = start();
    sdk.emit(requested(Date.now()));
    sdk.subscription.unsubscribe();
    sdk.subscribe();
    const refused = { stage: 'ticket', status: 401, closeCode: undefined } as const;
    sdk.emit(requested(1_000), stopped(1_010, refused));
    const [ended, failed] = sdk.spans();
    expect(ended?.status.code).toBe(SpanStatusCode.UNSET);
    expect(failed?.attributes).toMatchObject({ 'error.type': 'invalid-api-key', 'trade_feed.attempt': 1 });
    const { series } = (await sdk.collect())['trade_feed.attempt.duration'] as Metric;
    expect(series.map(({ attributes }) => attributes['error.type'])).toEqual(['invalid-api-key']);
  });

  it('has no parent, because the request that subscribed ends before the feed', async () => {
    await using real = startSdk();
    const { tracer } = real.options;
    const active = trace.setSpan(ROOT_CONTEXT, tracer.startSpan('request'));
    const startSpan = (name: string, options?: object) => tracer.startSpan(name, options, active);
    await using sdk = start({ tracer: { startSpan } as FeedMetricsOptions['tracer'] });
    sdk.emit(requested(1), opened(2));
    expect(real.spans()[0]?.parentSpanContext).toBe(undefined);
  });
});
