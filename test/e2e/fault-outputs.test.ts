/** @lane clock */
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { RequestListener } from 'node:http';
import { identity, NEVER, type Observable, Subject, takeUntil, tap } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import { debug } from '../../src/feed/diagnostics.js';
import {
  connectionStatus,
  type ConnectionStatus,
  type FailureCode,
  logEvents,
  type TradeFeedOptions,
} from '../../src/index.js';
import { feedLog } from '../../src/log/index.js';
import { TradeFeed, TradeFeedHealthIndicator } from '../../src/nestjs/index.js';
import { feedMetrics } from '../../src/otel/index.js';
import { type Relay, relayHandler, type RelayHandlerOptions } from '../../src/relay/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { Log } from '../nestjs/support.js';
import { tablesUnder } from '../docs/tables.js';
import { startSdk } from '../otel/sdk.js';
import { Web } from '../relay/support.js';
import { fakeTimers } from '../support/fake-timers.js';
import { startFaultProxy } from '../support/fault-proxy.js';
import { plantedKey } from '../support/feed.js';
import { startGate } from '../support/gate.js';
import { workers } from '../support/start-worker.js';
import { waitFor } from '../support/wait-for.js';
import * as wire from '../support/wire.js';

/** After this time, each output shows a failure, in ms. A check looks for new frames twice a second. */
const visibleAfterMs = 5_500;

interface Fault {
  readonly options?: TradeFeedOptions;
  /** An operator before the log and the metrics, such as that of a `feedLog`. */
  readonly operator?: (source: Observable<unknown>) => Observable<unknown>;
  /** A source that replaces the module's feed: a relay's page, or a source of the application. */
  readonly source?: Observable<unknown>;
  /** Makes a page of the module's relay the source. */
  readonly pageOf?: (relay: Relay) => Observable<unknown>;
  /** How much of the 5 s `begin` itself takes, in ms. */
  readonly passedMs?: number;
  /** Causes the fault. `until` waits for an event of the feed. By default, waits for a failure. */
  readonly begin?: (until: (type: string) => Promise<unknown>) => Promise<unknown>;
}

/** What each output says 5 s after a kind of fault: the table of the guide, by what happens. `none`: a page has no health. */
const kinds = new Map(
  tablesUnder('docs/operating.md', 'What shows up where').flatMap((table) =>
    table.map((row) => [row['what happens'] ?? '', row] as const),
  ),
);

/** A fault, the code that each output names, and what the log says beyond the code. */
type Row = readonly [
  title: string,
  code: FailureCode,
  fault: (use: Use) => Fault | Promise<Fault>,
  names?: string | RegExp,
];
type StartFault = Row[2];

/** Disposes of what a fault uses when its test ends, like `DisposableStack.use`. */
type Use = <T extends AsyncDisposable>(disposable: T) => T;

type Script = Parameters<typeof wire.startWire>[0];

const wired =
  (script: Script, more: Fault = {}): StartFault =>
  async (use) => {
    const { baseUrl } = use(await wire.startWire(script));
    return { ...more, options: { baseUrl, ...more.options } };
  };
const ticket = (step: wire.TicketStep, more?: Fault) => wired({ ticket: [step] }, more);
const handshake = (step: wire.HandshakeStep, more?: Fault) => wired({ handshake: [step] }, more);
const open = wire.accept(wire.text('a'));
const never = () => undefined;
const withKey = (apiKey: () => string | Promise<string>, more: Fault = {}) =>
  wired({}, { options: { apiKey }, ...more });

const logging =
  (path: () => string): StartFault =>
  (use) =>
    handshake(open, { operator: feedLog(path()).append() })(use);
const folder = tempFolder();

/** A log that another writer holds. */
const usedLog = (): string => {
  const path = folder.path('used');
  NEVER.pipe(feedLog(path).append(), takeUntil(closed)).subscribe();
  return path;
};
const closed = new Subject<void>();
afterAll(() => closed.next());

const page = (url: string): Fault => ({ source: relayFeed$(url, { backoff: slow }) });
/** A relay with this `authorize`, and its page. */
const pageOf =
  (authorize: RelayHandlerOptions['authorize'], passedMs = 0): StartFault =>
  async (use) => {
    let handler: RequestListener = never;
    const web = use(await Web.start((request, response) => handler(request, response)));
    const { url } = web;
    const pageOf: Fault['pageOf'] = (relay) => {
      handler = relayHandler(relay, { authorize });
      return page(url).source as Observable<unknown>;
    };
    // The request and its answer take real time.
    const begin: Fault['begin'] = async (until) => {
      await waitFor(() => web.requests.length === 1);
      await jest.advanceTimersByTimeAsync(passedMs);
      await until('failure');
    };
    return { pageOf, begin, passedMs };
  };
const gateAddress = async (use: Use, fate: 'silence' | 'reset'): Promise<string> =>
  `http://127.0.0.1:${use(await startGate([fate])).port}/`;

const halfOpen: StartFault = async (use) => {
  const proxy = use(await startFaultProxy({}));
  const issue = wire.issue({ wss_url: `ws://127.0.0.1:${proxy.port}/ws` });
  const service = use(await wire.startWire({ ticket: [issue], handshake: [open] }));
  proxy.target = Number(new URL(service.baseUrl).port);
  const begin: Fault['begin'] = async (until) => {
    await until('frame');
    proxy.halfOpen();
  };
  return { options: { baseUrl: `http://127.0.0.1:${proxy.port}` }, begin };
};

const endWorker: Fault['begin'] = async (until) => {
  await until('frame');
  await workers.started[0]?.terminate();
  await until('reconnecting');
};

// The feed waits after the first failure, so that the test can read the outputs.
const slow = { initialDelayMs: 60_000, maxDelayMs: 60_000, jitter: 'none' } as const;

const explode = (message: string) => (): never => {
  throw new Error(message);
};
const hang = () => new Promise<never>(never);
/** The fault is there as soon as the feed emits this. */
const after = (type: string): Fault => ({ begin: (until) => until(type) });
const asked = after('ticket-requested');
const openThenReset: wire.HandshakeStep = (peer, ...rest) => {
  open(peer, ...rest);
  setImmediate(() => (peer.socket as { resetAndDestroy?: () => void }).resetAndDestroy?.());
};
const throwingOperator = tap<unknown>((event) => {
  if ((event as { readonly type: string }).type === 'frame') throw new Error('of the app');
});
const silentRelay: StartFault = async (use) => ({ ...page(await gateAddress(use, 'silence')), begin: async () => {} });
const readOnly = /permission denied|read-only/;

// Grouped by what the outputs say. Faults of a kind differ in their code alone, so a few of each are enough.
const rows: Readonly<Record<string, readonly Row[]>> = {
  'the feed stops': [
    ['the ticket is refused: 401', 'invalid-api-key', ticket(wire.refuse(401))],
    ['the function `apiKey` returns nothing', 'invalid-options', withKey(() => '')],
    ['the service closes: 4001', 'connection-replaced', handshake(wire.accept(wire.text('a'), wire.close(4001)))],
  ],
  'an attempt or a connection fails': [
    ['the ticket is refused for an hour', 'ticket-rate-limited', ticket(wire.refuse(429, { 'retry-after': '3600' }))],
    ['the function `apiKey` throws', 'api-key-unavailable', withKey(explode('no vault'))],
    ['the connection is reset', 'connection-lost', handshake(openThenReset)],
    ['the worker ends', 'receiver-failed', handshake(open, { options: { receiveIn: 'worker' }, begin: endWorker })],
  ],
  'an attempt gets no answer': [
    ['the ticket endpoint is silent', 'ticket-endpoint-unreachable', ticket(never, asked)],
    ['the key is not there yet', 'ticket-endpoint-unreachable', withKey(hang, asked), 'api-key-unavailable'],
    ['the handshake gets no answer', 'handshake-unreachable', handshake(never, after('ticket-issued'))],
  ],
  'an open connection is silent': [
    ['the service sends nothing', 'connection-stalled', handshake(open, after('frame'))],
    ['the connection is half-open', 'connection-stalled', halfOpen],
  ],
  'a log on disk fails': [
    ['its folder may not be written', 'relay-source-failed', logging(() => '/sys/market'), readOnly],
    ['it has another writer', 'relay-source-failed', logging(usedLog), 'has a writer already'],
  ],
  'an operator or a source of your app fails': [
    ['an operator throws', 'relay-source-failed', handshake(open, { operator: throwingOperator }), 'of the app'],
  ],
  'a page does not reach its relay': [
    ['the relay is gone', 'relay-unreachable', async (use) => page(await gateAddress(use, 'reset'))],
    ['the relay does not answer', 'relay-unreachable', silentRelay],
  ],
  'a relay cannot authorize its pages': [
    ['the function `authorize` of a relay throws', 'relay-failed', pageOf(explode('no session store'))],
    ['the function `authorize` of a relay does not answer', 'relay-authorize-timeout', pageOf(hang, 5_000)],
  ],
};

let nest = new Log();
const debugLines: string[] = [];

beforeAll(() => {
  // Node reads NODE_DEBUG when a process starts.
  jest.spyOn(debug, 'isOn').mockReturnValue(true);
  jest.spyOn(debug, 'write').mockImplementation((line) => void debugLines.push(line));
});
afterAll(() => {
  jest.restoreAllMocks();
  Logger.overrideLogger(true);
});

const untilFailure: NonNullable<Fault['begin']> = (until) => until('failure');

/** Runs a feed until 5 s after its fault. Returns what each output says by then. */
const outputsOf = async (fault: StartFault, afterMs = visibleAfterMs) => {
  await using owned = ownedResources();
  const { options, operator = identity, source, pageOf, passedMs = 0, begin = untilFailure } = await fault(owned.use);
  await using sdk = startSdk();
  using _time = fakeTimers();
  Logger.overrideLogger((nest = new Log()));
  debugLines.splice(0);
  const own = new Log();
  const emitted = new Set<string>();
  const isOfApp = operator !== identity;
  let status: ConnectionStatus | undefined;

  const feed = new TradeFeed({ baseUrl: 'http://127.0.0.1:9', apiKey: plantedKey, backoff: slow, ...options });
  const subscription = (pageOf?.(feed.relay) ?? source ?? feed.events$.pipe(operator))
    .pipe(
      logEvents({ ...own, info: own.log }),
      isOfApp ? logEvents(new Logger('TradeFeed')) : identity,
      feedMetrics({ ...sdk.options, ...(pageOf && { relay: feed.relay }) }),
      tap({
        next: (event) => {
          const { type } = event as { readonly type: string };
          emitted.add(type);
          if (type === 'reconnecting' || type === 'stopped') emitted.add('failure');
        },
        error: () => emitted.add('failure').add('error'),
      }),
      connectionStatus(),
    )
    .subscribe({ next: (now) => (status = now), error: never });
  await begin(async (type) => waitFor(() => emitted.delete(type), { what: () => `${type} of ${[...emitted].join()}` }));
  // The exporter answers after a timer.
  const collected = async () => (await Promise.all([sdk.collect(), jest.advanceTimersByTimeAsync(1)]))[0];
  await collected();
  await jest.advanceTimersByTimeAsync(afterMs - passedMs);

  const health = new TradeFeedHealthIndicator(isOfApp ? { status: status as ConnectionStatus } : feed);
  const metrics = await collected();
  const outputs = {
    logs: { logEvents: textsOf(own), NODE_DEBUG: [...debugLines], nest: textsOf(nest) },
    health: health.isHealthy()['trade-feed'],
    series: (metric: string) =>
      (metrics[metric]?.series ?? []).map(({ attributes, value }) => ({ code: attributes['error.type'], value })),
  };
  jest.useRealTimers();
  subscription.unsubscribe();
  await feed.beforeApplicationShutdown();
  return outputs;
};

const textsOf = ({ lines }: Log): readonly string[] => lines.map(({ level, text }) => `${level} ${text}`);

const ownedResources = () => {
  const owned: AsyncDisposable[] = [];
  const use: Use = (disposable) => {
    owned.push(disposable);
    return disposable;
  };
  return {
    use,
    [Symbol.asyncDispose]: async () => {
      for (const each of owned.reverse()) await each[Symbol.asyncDispose]();
      workers.started.splice(0);
    },
  };
};

const quiet = 'an open connection is silent';
const ofApp: readonly string[] = ['an operator or a source of your app fails', 'a relay cannot authorize its pages'];

describe.each(Object.entries(rows))('if %s', (kind, faults) => {
  const { log, health, metric = '' } = kinds.get(kind) ?? {};

  it.each(faults)('the log, the health and the metrics each name it after 5 s: %s', async (...row) => {
    const [, code, fault, names = code] = row;
    const outputs = await outputsOf(fault);
    const { logEvents: logged, NODE_DEBUG: debugLog, nest: ofNest } = outputs.logs;
    expect([logged, debugLog, ofNest].join()).not.toContain(plantedKey);
    expect(logged.find((line) => line.startsWith(`${log} `) && line.includes(code))).toMatch(names);
    // Your app's own exceptions are errors, no matter what they cost the page.
    const isOfNest = (line: string) =>
      line.includes(code) && (line.startsWith(`${log} `) || line.includes('received 500'));
    if (health !== 'none') expect(ofNest.find(isOfNest)).toMatch(names);
    // NODE_DEBUG shows the feed and the log, but nothing of your app.
    if (health !== 'none' && !ofApp.includes(kind))
      expect(debugLog.find((line) => line.includes(kind === 'a log on disk fails' ? 'log: ' : code))).toMatch(names);

    if (health !== 'none') {
      const expected = { status: health === 'down' ? 'down' : 'up', ...(kind !== quiet && { code }) };
      // Says what happened and what to do.
      expect(outputs.health).toMatchObject({ ...expected, reason: expect.stringMatching(/[\w`]\. \w.*\.$/) });
    }
    const [series, ...others] = outputs.series(metric).filter(({ value }) => value !== 0);
    expect(others).toEqual([]);
    if (metric === 'trade_feed.relay.refused') return expect(series).toEqual({ code, value: 1 });
    expect(series?.value).toBeGreaterThanOrEqual(5);
    expect(series?.value).toBeLessThan(60);
    // A page gets the code at its deadline, 10 s after it started.
    if (metric === 'trade_feed.outage.age') expect([code, health === 'none' && undefined]).toContain(series?.code);
  });
});

it('as long as nothing fails, the log has no warning, the health is up and no metric shows an outage', async () => {
  const frames = new Subject<void>();
  const step: wire.HandshakeStep = (peer, ...rest) => {
    open(peer, ...rest);
    frames.subscribe(() => peer.socket.write(wire.text('b')));
  };
  // If the service's clock is wrong, that's not a failure.
  for (const date of [-3_600_000, 0, 3_600_000]) {
    const issue: wire.TicketStep = (response, ...rest) =>
      wire.issue({}, { date: new Date(Date.now() + date).toUTCString() })(response, ...rest);
    const begin: Fault['begin'] = async (until) => {
      for (let second = 0; second < 12; second += 1) {
        await until('frame');
        await jest.advanceTimersByTimeAsync(1_000);
        frames.next();
      }
      await until('frame');
    };
    const outputs = await outputsOf(wired({ ticket: [issue], handshake: [step] }, { begin }), 0);
    expect(outputs.logs.logEvents.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
    expect(outputs.logs.nest.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
    expect(outputs.health).toMatchObject({ status: 'up', state: 'live' });
    expect(outputs.health).not.toHaveProperty('reason');
    expect(outputs.series('trade_feed.outage.age').filter(({ value }) => value !== 0)).toEqual([]);
    expect(outputs.series('trade_feed.reconnects')).toEqual([{ code: undefined, value: 0 }]);
  }
});

it('the guide lists these kinds of faults and, with others of the same verdict, their codes', () => {
  expect([...kinds.keys()]).toEqual(Object.keys(rows));
  for (const [kind, faults] of Object.entries(rows))
    expect(kinds.get(kind)?.['codes']?.replaceAll('`', '').split(', ')).toEqual(
      expect.arrayContaining(faults.map(([, code]) => code)),
    );
});
