import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { metrics, trace } from '@opentelemetry/api';
import { getTradeFeedToken, TradeFeed, TradeFeedModule } from '../../src/nestjs/index.js';
import { telemetry } from '../../src/nestjs/telemetry.js';
import { TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { startSdk } from '../otel/sdk.js';
import { type App, startApp, startService, when } from './support.js';

let local: Awaited<ReturnType<typeof startService>>;
let sdk: ReturnType<typeof startSdk>;
const apps: App[] = [];

beforeEach(async () => {
  local = await startService();
  sdk = startSdk();
  metrics.setGlobalMeterProvider(sdk.providers.meters);
  trace.setGlobalTracerProvider(sdk.providers.tracers);
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map(({ app }) => app.close()));
  await local.service.shutdown();
  metrics.disable();
  trace.disable();
  await sdk[Symbol.asyncDispose]();
});

const start = async (options: Parameters<typeof TradeFeedModule.forRoot>[0]): Promise<App> => {
  const started = await startApp({ imports: [TradeFeedModule.forRoot({ ...local.options, ...options })] });
  apps.push(started);
  return started;
};

/** Receives one frame, and returns the feed. */
const receiveOne = async (feed: TradeFeed): Promise<void> => {
  const received = when(feed.stats$, ({ totalFrames }) => totalFrames > 0);
  await when(feed.status$, ({ state }) => state === 'live');
  local.service.push('market', 'hello');
  await received;
};

describe('the option telemetry', () => {
  it('measures the feed once with the global meter and tracer, for all its subscribers', async () => {
    const { app } = await start({ telemetry: true, stats: { everyMs: 5 } });
    await receiveOne(app.get(TradeFeed));
    const { series = [] } = (await sdk.collect())['messaging.client.consumed.messages'] ?? {};
    expect(series.map(({ value }) => value)).toEqual([1]);
    expect(series[0]?.attributes).not.toHaveProperty('trade_feed.name');
    expect(sdk.spans().map(({ name }) => name)).toEqual(['trade_feed.attempt']);
  });

  it('distinguishes feeds by their names', async () => {
    const { app } = await start({ telemetry: true, name: 'second', stats: { everyMs: 5 } });
    await receiveOne(app.get<TradeFeed>(getTradeFeedToken('second')));
    const { series = [] } = (await sdk.collect())['messaging.client.consumed.messages'] ?? {};
    expect(series[0]?.attributes).toMatchObject({
      'trade_feed.name': 'second',
      'messaging.destination.name': 'market',
    });
  });

  it('is off by default', async () => {
    const { app } = await start({ stats: { everyMs: 5 } });
    await receiveOne(app.get(TradeFeed));
    expect(await sdk.collect()).toEqual({});
    expect(sdk.spans()).toEqual([]);
  });

  it('is refused without the package of OpenTelemetry', () => {
    const missing = () => {
      throw new Error('Cannot find module');
    };
    expect(() => telemetry(undefined, missing)).toThrow(TradeFeedError);
    expect(() => telemetry(undefined, missing)).toThrow(
      '`telemetry` must be false, unless the package @opentelemetry/api is installed',
    );
  });
});
