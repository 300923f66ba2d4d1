/** @lane clock */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { lastValueFrom, noop, type Observable } from 'rxjs';
import {
  type AttemptMessage,
  debug,
  type Observer,
  publishEvents,
  traceAttempts,
  warnWithoutConnection,
} from '../../src/feed/diagnostics.js';
import { createLifecycle, type Emit } from '../../src/feed/lifecycle.js';
import {
  type Feed,
  type FeedEvent,
  type FeedEventMessage,
  type Stopped,
  tradeFeed$,
  tradeFeedEvents$,
  type TradeFeedOptions,
} from '../../src/index.js';
import { EventRecord, type LoggableEvent } from '../../src/protocol/event-record.js';
import type { LifecycleEvent } from '../../src/protocol/event.js';
import { disconnected, issued, opened, reconnecting, requested } from '../operators/stream.js';
import { fakeTimers } from '../support/fake-timers.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { waitFor } from '../support/wait-for.js';
import { accept, close, refuse, startWire, text } from '../support/wire.js';

const where = "tradeFeed$('market') at app.js:3:1";
const origin = { feed: 'market', baseUrl: 'https://feed.example.com', where } as const;

describe('observe feed', () => {
  const lifecycle = ['opened', 'disconnected', 'gap', 'owner', 'engine', 'stopped'].map(
    (name) => `rx-trade-feed:${name}`,
  );
  const tracing = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map(
    (name) => `tracing:rx-trade-feed:attempt:${name}`,
  );

  type Message = AttemptMessage | FeedEventMessage;
  let messages: (readonly [name: string, message: Message])[] = [];
  const listener = (message: unknown, name: string | symbol) => void messages.push([String(name), message as Message]);

  beforeEach(() => {
    messages = [];
    for (const name of [...lifecycle, ...tracing]) subscribe(name, listener);
  });
  afterEach(() => {
    for (const name of [...lifecycle, ...tracing]) unsubscribe(name, listener);
    jest.restoreAllMocks();
  });

  const named = (name: string): readonly Message[] =>
    messages.filter(([each]) => each === name).map(([, each]) => each);
  const names = (): readonly string[] => messages.map(([name]) => name.replace(/^(tracing:)?rx-trade-feed:/, ''));

  // Two connections with an outage in between, then a stop.
  const script = {
    handshake: [accept(text('one'), close(1001)), accept(text('two'), close(4001, 'connection replaced'))],
  };
  const begun = ['attempt:start', 'attempt:end'];
  const ended = ['attempt:error', 'attempt:asyncStart', 'attempt:asyncEnd'];
  const expected = [
    ...[...begun, 'opened', ...ended, 'disconnected'],
    ...[...begun, 'opened', 'gap', ...ended, 'stopped'],
  ];

  const traced = (...events: readonly LoggableEvent[]) => {
    const trace = traceAttempts(origin);
    const { emit } = createLifecycle(noop, { observe: (event, state) => trace.event(event as LoggableEvent, state) });
    const event = (each: LoggableEvent): void => emit(each as LifecycleEvent);
    events.forEach(event);
    return event;
  };

  it('has one message for an attempt, whose stage and times follow it until its failure', () => {
    const { failure } = disconnected(40);
    const atStart: string[] = [];
    const start = (message: unknown): void => void atStart.push(JSON.stringify(message));
    subscribe(tracing[0]!, start);
    traced(requested(10), issued(20), opened(30), { type: 'disconnected', at: 41, failure });
    unsubscribe(tracing[0]!, start);
    expect(atStart).toEqual([JSON.stringify({ origin, attempt: 1, stage: 'ticket', startedAt: { ticket: 10 } })]);
    expect(names()).toEqual([...begun, ...ended]);
    expect(new Set(messages.map(([, message]) => message)).size).toBe(1);
    expect(messages[0]?.[1]).toEqual({
      ...{ origin, attempt: 1, stage: 'stream', startedAt: { ticket: 10, handshake: 20, stream: 30 } },
      ...{ endedAt: 41, error: failure },
    });
  });

  it('begins with an attempt only if the channel has a subscriber, but counts all', () => {
    for (const name of tracing) unsubscribe(name, listener);
    const trace = traced(requested(1), issued(2));
    for (const name of tracing) subscribe(name, listener);
    for (const event of [opened(3), disconnected(4)]) trace(event);
    expect(messages).toEqual([]);
    trace(requested(5));
    expect([names(), messages.map(([, message]) => (message as AttemptMessage).attempt)]).toEqual([begun, [2, 2]]);
  });

  it('publishes what happens to a cluster with the origin, but no steps of an attempt', () => {
    const text = { operation: 'read', message: 'm', advice: 'a' } as const;
    const events: readonly LoggableEvent[] = [
      { type: 'owner-changed', at: 7, owner: 'replica-2', generation: 3 },
      { type: 'engine-refused', at: 7, since: 6, ...text },
      { type: 'engine-recovered', at: 9, durationMs: 3 },
    ];
    [...events, requested(1), issued(2), reconnecting(4, 5)].forEach(publishEvents(origin));
    expect(names()).toEqual(['owner', 'engine', 'engine']);
    expect(messages.map(([, message]) => message)).toEqual(events.map((event) => ({ origin, event })));
  });

  describe.each<[string, (feed: Feed, options: TradeFeedOptions) => Observable<unknown>, TradeFeedOptions]>([
    ['tradeFeed$ on the main thread', tradeFeed$, {}],
    ['tradeFeedEvents$ on the main thread', tradeFeedEvents$, {}],
    ['tradeFeedEvents$ in a worker', tradeFeedEvents$, { receiveIn: 'worker' }],
  ])('%s', (name, feed$, options) => {
    it('publishes its attempts and its events with one origin and no secret', async () => {
      await using wire = await startWire(script);
      const end = lastValueFrom(feed$('market', optionsFor(wire, options)));
      const error = await end.catch((thrown: unknown) => thrown);
      expect(names()).toEqual(expected);

      const origins = new Set(messages.map(([, { origin }]) => origin));
      const where = expect.stringMatching(/^tradeFeed(Events)?\$\('market'\) at .*diagnostics\.test\.ts:\d+:\d+$/);
      expect([...origins]).toEqual([{ feed: 'market', baseUrl: wire.baseUrl, where }]);
      const published = messages.flatMap(([, message]) => ('event' in message ? [message.event] : []));
      expect(published.map(({ type }) => type)).toEqual(['opened', 'disconnected', 'opened', 'gap', 'stopped']);
      expect(published[3]).toMatchObject({ failure: { code: 'server-shutdown' } });
      expect((published.at(-1) as Stopped).failure).toBe(error);
      expect(named('tracing:rx-trade-feed:attempt:asyncEnd')).toMatchObject([
        { attempt: 1, stage: 'stream', error: { code: 'server-shutdown' } },
        { attempt: 2, stage: 'stream', error: { code: 'connection-replaced' } },
      ]);
      expect(JSON.stringify(messages)).not.toMatch(new RegExp(`${plantedKey}|planted-ticket`));
    });

    if (name.startsWith('tradeFeedEvents$'))
      it('gives the log, the channels and the subscriber the same objects, with the same times', async () => {
        jest.spyOn(debug, 'isOn').mockReturnValue(true);
        const write = jest.spyOn(debug, 'write').mockReturnValue();
        await using wire = await startWire(script);
        const received: FeedEvent[] = [];
        const events$ = feed$('market', optionsFor(wire, options)) as Observable<FeedEvent>;
        await events$.forEach((event) => received.push(event)).catch(noop);
        const published = messages.flatMap(([, message]) => ('event' in message ? [message.event] : []));
        const inChannels = new Set(published.map(({ type }) => type));
        const seen: readonly unknown[] = received.filter(({ type }) => inChannels.has(type as never));
        expect(published).toHaveLength(5);
        for (const [n, event] of published.entries()) expect(event).toBe(seen[n]);
        const texts = received.flatMap((event) =>
          event.type === 'frame' || event.type === 'watermark' ? [] : new EventRecord(event).msg,
        );
        const logged = write.mock.calls.map(([line]) => line.replace(/^.*?, http\S+: /, ''));
        // On a busy machine an attempt may take so long that the log says so.
        expect(logged.filter((line) => !line.startsWith('Waiting'))).toEqual(texts);
      });

    it('ends the attempt when you unsubscribe', async () => {
      await using wire = await startWire();
      const subscription = feed$('market', optionsFor(wire, options)).subscribe();
      await waitFor(() => named('rx-trade-feed:opened').length > 0);
      subscription.unsubscribe();
      expect(names()).toEqual([...begun, 'opened', 'attempt:asyncStart', 'attempt:asyncEnd']);
    });

    // A worker calls no function of the app but `apiKey`, and what that throws becomes a failure.
    if (options.receiveIn !== 'worker')
      it('publishes a stop if the app throws, with the exception as the cause', async () => {
        await using wire = await startWire({ ticket: [refuse(500)] });
        const thrown = new Error('of the application');
        const classify = () => {
          throw thrown;
        };
        await expect(lastValueFrom(feed$('market', optionsFor(wire, { ...options, classify })))).rejects.toBe(thrown);
        const [message] = named('rx-trade-feed:stopped') as FeedEventMessage[];
        expect(message?.event).toMatchObject({ failure: { code: 'relay-source-failed', cause: thrown } });
        expect(names()).toEqual([...begun, ...ended, 'stopped']);
      });
  });
});

describe('warn without connection', () => {
  let emitWarning: jest.SpiedFunction<(warning: string, options: NodeJS.EmitWarningOptions) => void>;
  beforeEach(() => {
    emitWarning = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  });
  afterEach(() => {
    emitWarning.mockRestore();
    for (const { end } of warnings.splice(0)) end();
  });

  const warnings: Observer[] = [];
  /** Starts watching a subscription, and returns the function that takes its events. */
  const started = (): Emit => {
    const warning = warnWithoutConnection(origin);
    warnings.push(warning);
    return createLifecycle(noop, { observe: (event, state) => warning.event(event as LoggableEvent, state) }).emit;
  };

  const failed = disconnected(1, { stage: 'ticket', status: 503, closeCode: undefined });

  it('warns once, after the third failed attempt, with the code, the advice and the debug switch', () => {
    const warn = started();
    for (const event of [requested(1), failed, requested(2), failed, requested(3)]) warn(event);
    expect(emitWarning).not.toHaveBeenCalled();
    for (const event of [failed, failed, failed]) warn(event);
    expect(emitWarning).toHaveBeenCalledTimes(1);
    expect(emitWarning.mock.calls[0]).toEqual([
      "No connection to https://feed.example.com has opened after 3 attempts of tradeFeed$('market') at app.js:3:1. " +
        `credential-service-unavailable: ${failed.failure.message} The feed continues to try. ` +
        'NODE_DEBUG=rx-trade-feed prints each event; the option `warnings: false` turns this warning off.',
      { type: 'TradeFeedWarning', code: 'credential-service-unavailable' },
    ]);
    expect(emitWarning.mock.calls[0]?.[0]).toContain(failed.failure.advice);
  });

  it('warns after 5 s without a connection, and says what the feed waits for or why it failed last', () => {
    using _time = fakeTimers();
    const [waits, limited, open] = [started(), started(), started()];
    waits(requested(1));
    for (const event of [requested(1), disconnected(2, { stage: 'ticket', status: 429, closeCode: undefined })])
      limited(event);
    for (const event of [requested(1), opened(2), failed, failed, failed]) open(event);
    jest.advanceTimersByTime(4_999);
    expect(emitWarning).not.toHaveBeenCalled();
    jest.advanceTimersByTime(60_000);
    expect(emitWarning.mock.calls).toEqual([
      [
        expect.stringMatching(/has opened after 5 s of .* ticket-endpoint-unreachable: No ticket after 5 s\. Check /),
        { type: 'TradeFeedWarning', code: 'ticket-endpoint-unreachable' },
      ],
      [
        expect.stringMatching(/has opened after 1 attempt of .* ticket-rate-limited: /),
        { type: 'TradeFeedWarning', code: 'ticket-rate-limited' },
      ],
    ]);
  });

  const unavailable = { ticket: [refuse(503)] };
  const attempts = (wire: { readonly tickets: readonly unknown[] }, count: number) =>
    waitFor(() => wire.tickets.length >= count);

  it.each<[string, TradeFeedOptions]>([
    ['on the main thread', {}],
    ['in a worker', { receiveIn: 'worker' }],
  ])('warns once per subscription of tradeFeed$, %s', async (_name, options) => {
    await using wire = await startWire(unavailable);
    const silent = tradeFeed$('market', optionsFor(wire, { ...options, warnings: false })).subscribe();
    await attempts(wire, 4);
    silent.unsubscribe();
    expect(emitWarning).not.toHaveBeenCalled();
    const feed$ = tradeFeed$('market', optionsFor(wire, options));
    for (const warnings of [1, 2]) {
      const subscription = feed$.subscribe();
      await waitFor(() => emitWarning.mock.calls.length >= warnings);
      await attempts(wire, wire.tickets.length + 3);
      subscription.unsubscribe();
      expect(emitWarning).toHaveBeenCalledTimes(warnings);
    }
    expect(JSON.stringify(emitWarning.mock.calls)).not.toContain(plantedKey);
    expect(emitWarning.mock.calls[0]?.[0]).toMatch(/tradeFeed\$\('market'\) at .*diagnostics\.test\.ts:\d+/);
  });
});
