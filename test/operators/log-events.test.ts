import { ConsoleLogger, Logger, type LogLevel } from '@nestjs/common';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { concat, from, of, Subject, take, throwError } from 'rxjs';
import { relayFeed$ } from '../../src/browser/index.js';
import {
  type EventLevel,
  type EventLogger,
  type EventRecord,
  frames,
  logEvents,
  recordTo,
  type RelayedEvent,
  replay$,
  shareFeed,
  TradeFeedError,
  tradeFeedEvents$,
} from '../../src/index.js';
import { createRelay, relayHandler } from '../../src/relay/index.js';
import { tempFolder } from '../cli/support/temp-folder.js';
import { Web } from '../relay/support.js';
import { optionsFor, plantedKey, until } from '../support/feed.js';
import { workers } from '../support/start-worker.js';
import { accept, close, startWire, text } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';
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
} from './stream.js';

const events = {
  t: requested(1),
  i: issued(2),
  o: opened(3),
  f: frameOf('secret payload', 4),
  d: disconnected(5),
  r: reconnecting(6, 250, 2),
  g: { ...gapOf(5, 9), missed: 3 },
  s: stopped(10),
  w: watermark(11),
};

/** A logger that stores the level and the record of each call. */
const memoryLogger = () => {
  const calls: (readonly [EventLevel, EventRecord])[] = [];
  const method = (level: EventLevel) => (record: EventRecord) => void calls.push([level, record]);
  const logger = { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
  return { logger, calls, types: () => calls.map(([, { type }]) => type) };
};

/** A stream that stores the lines that are written to it. */
const memoryStream = () => {
  const written: string[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      written.push(chunk.toString());
      done();
    },
  });
  return { stream, lines: () => written.join('').split('\n').slice(0, -1) };
};

const logAll = (logger: EventLogger) => from(Object.values(events)).pipe(logEvents(logger)).subscribe();

const lostMessage = events.d.failure.message;

describe('logEvents', () => {
  it('emits everything unchanged, and subscribes once', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-t-i-o-f-(drg)-w-s-#', events);
      const sub = '         ^------------------!';
      expectObservable(source$.pipe(logEvents(memoryLogger().logger))).toBe('-t-i-o-f-(drg)-w-s-#', events);
      expectSubscriptions(source$.subscriptions).toBe(sub);
    });
  });

  it('calls the method of the level once for each event, never for a frame or a watermark', () => {
    const { logger, calls } = memoryLogger();
    logAll(logger);
    expect(calls.map(([level, { type }]) => [level, type])).toEqual([
      ['debug', 'ticket-requested'],
      ['debug', 'ticket-issued'],
      ['info', 'opened'],
      ['warn', 'disconnected'],
      ['warn', 'reconnecting'],
      ['warn', 'gap'],
      ['error', 'stopped'],
    ]);
  });

  it('passes the fields of the event and of its failure, and a text', () => {
    const { logger, calls } = memoryLogger();
    logAll(logger);
    const lost = { code: 'connection-lost', stage: 'stream', verdict: 'renew', closeCode: 1006 };
    expect(calls.map(([, record]) => ({ ...record }))).toEqual([
      { ...events.t, msg: 'Requesting a ticket for market' },
      { ...events.i, msg: 'Ticket issued for market' },
      { ...events.o, msg: 'Connected to market (connection 1)' },
      {
        ...{ type: 'disconnected', at: 5, ...lost, uptimeMs: 0, framesReceived: 0 },
        msg: `Disconnected, connection-lost: ${lostMessage}`,
      },
      { ...events.r, msg: 'Reconnect 2 in 250 ms' },
      {
        ...{ type: 'gap', at: 9, from: 5, durationMs: 4, missed: 3, ...lost },
        msg: 'Frames may be missing: 3 frames in 4 ms from 1970-01-01T00:00:00.005Z on',
      },
      {
        ...{ type: 'stopped', at: 10, code: 'connection-replaced', stage: 'stream', verdict: 'stop', closeCode: 4001 },
        ...{ reason: 'connection replaced', uptimeMs: 0, framesReceived: 0 },
        msg: `Stopped, connection-replaced: ${events.s.failure.message}`,
      },
    ]);
    expect(String(calls[2]?.[1])).toBe('Connected to market (connection 1)');
  });

  it('logs that another replica owns the connection', () => {
    const { logger, calls } = memoryLogger();
    const change = { type: 'owner-changed', at: 7, owner: 'replica-2', generation: 3 } as const;
    of(change).pipe(logEvents(logger)).subscribe();
    expect(calls).toEqual([['info', { ...change, msg: 'replica-2 owns the connection now (generation 3)' }]]);
  });

  it.each<[EventLevel, readonly string[]]>([
    ['debug', ['ticket-requested', 'ticket-issued', 'opened', 'disconnected', 'reconnecting', 'gap', 'stopped']],
    ['info', ['opened', 'disconnected', 'reconnecting', 'gap', 'stopped']],
    ['warn', ['disconnected', 'reconnecting', 'gap', 'stopped']],
    ['error', ['stopped']],
  ])('with the level %s logs only that level and above', (level, types) => {
    const memory = memoryLogger();
    from(Object.values(events)).pipe(logEvents(memory.logger, { level })).subscribe();
    expect(memory.types()).toEqual(types);
  });

  it('prints one line per event, also if a failure contains line breaks and control characters', () => {
    const hostile = disconnected(1, { closeCode: 4321, reason: 'a\nb\u001b[31m\u2028c', detail: 'd\ne' });
    const { stream, lines } = memoryStream();
    from([hostile])
      .pipe(logEvents(new Console(stream)))
      .subscribe();
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).toMatch(/^Disconnected, connection-closed: /);
    expect(lines()[0]).not.toMatch(/[\u001b\u2028]/);
  });

  it('errors if the logger throws', () => {
    const thrown = new Error('disk full');
    const logger = {
      ...memoryLogger().logger,
      info: () => {
        throw thrown;
      },
    };
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('t-o-', events).pipe(logEvents(logger))).toBe('t-#', events, thrown);
    });
  });

  it.each<[string, unknown, object, string]>([
    ['no logger', undefined, {}, '`logger`'],
    ['a logger without a method', { debug: () => 1, info: () => 1, warn: () => 1 }, {}, '`logger`'],
    ['a logger without info and log', { debug: () => 1, warn: () => 1, error: () => 1 }, {}, '`logger`'],
    ['an unknown level', console, { level: 'trace' }, '`level`'],
    ['an unknown option', console, { levels: 'info' }, '`levels`'],
  ])('refuses %s at once', (_name, logger, options, name) => {
    expect(() => logEvents(logger as EventLogger, options)).toThrow(TradeFeedError);
    expect(() => logEvents(logger as EventLogger, options)).toThrow(name);
  });
});

describe('real loggers', () => {
  afterEach(() => void Logger.overrideLogger(true));

  const texts = [
    'Requesting a ticket for market',
    'Ticket issued for market',
    'Connected to market (connection 1)',
    `Disconnected, connection-lost: ${lostMessage}`,
    'Reconnect 2 in 250 ms',
    'Frames may be missing: 3 frames in 4 ms from 1970-01-01T00:00:00.005Z on',
    `Stopped, connection-replaced: ${events.s.failure.message}`,
  ];

  it('a console prints one text per event', () => {
    const { stream, lines } = memoryStream();
    logAll(new Console(stream));
    expect(lines()).toEqual(texts);
  });

  it('pino writes the fields and the text, with its level', () => {
    const { stream, lines } = memoryStream();
    logAll(pino({ level: 'debug', base: null }, stream));
    const written = lines().map((line) => JSON.parse(line) as object);
    expect(written.map((each) => (each as { msg: string }).msg)).toEqual(texts);
    expect(written[2]).toMatchObject({ level: 30, type: 'opened', at: 3, feed: 'market', connection: 1 });
    expect(written[3]).toMatchObject({ level: 40, code: 'connection-lost', closeCode: 1006, verdict: 'renew' });
  });

  it("Nest's Logger prints one text per event", () => {
    const written: string[] = [];
    class MemoryLogger extends ConsoleLogger {
      protected override printMessages(messages: unknown[], context?: string, level: LogLevel = 'log'): void {
        for (const message of messages) written.push(this.formatMessage(level, message, '', 'LOG', context ?? '', ''));
      }
    }
    Logger.overrideLogger(new MemoryLogger({ colors: false }));
    logAll(new Logger('Feed'));
    expect(written).toHaveLength(texts.length);
    for (const [n, line] of written.entries()) {
      expect(line.trimEnd()).not.toContain('\n');
      expect(line).toContain(`Feed${texts[n]}`);
    }
  });

  it("Nest's Logger with `json` writes the fields", () => {
    const written: string[] = [];
    class JsonLogger extends ConsoleLogger {
      protected override printAsJson(...[message, options]: Parameters<ConsoleLogger['printAsJson']>): void {
        written.push(JSON.stringify(this.getJsonLogObject(message, options)));
      }
    }
    Logger.overrideLogger(new JsonLogger({ json: true, colors: false }));
    logAll(new Logger('Feed'));
    expect(written.map((line) => (JSON.parse(line) as { message: { msg: string } }).message.msg)).toEqual(texts);
    expect(JSON.parse(written[2] as string)).toMatchObject({ level: 'log', context: 'Feed', message: events.o });
  });
});

describe('each source of events', () => {
  const folder = tempFolder();
  afterEach(() => void workers.started.splice(0));

  it('a direct feed and a feed in a worker: the same records, without the key and the ticket', async () => {
    for (const receiveIn of ['main', 'worker'] as const) {
      await using wire = await startWire({ handshake: [accept(text('one'), close(1001)), accept(text('two'))] });
      const memory = memoryLogger();
      const feed$ = tradeFeedEvents$('market', optionsFor(wire, { receiveIn })).pipe(logEvents(memory.logger));
      await until(feed$, (event) => event.type === 'frame' && event.text() === 'two');
      const attempt = ['ticket-requested', 'ticket-issued', 'opened'];
      expect(memory.types()).toEqual([...attempt, 'disconnected', 'reconnecting', ...attempt, 'gap']);
      const all = JSON.stringify(memory.calls);
      expect(all).not.toContain(plantedKey);
      expect(all).not.toContain('planted-ticket');
    }
  });

  it('a page of a relay: the events of the feed and of the connection to the relay', async () => {
    const source$ = new Subject<RelayedEvent>();
    const relay = createRelay(source$, { batchMs: 0 });
    await using web = await Web.start(relayHandler(relay, { authorize: () => true }));
    const memory = memoryLogger();
    const subscription = relayFeed$(web.url, { backoff: { initialDelayMs: 1, maxDelayMs: 1 } })
      .pipe(logEvents(memory.logger))
      .subscribe();
    await waitFor(() => relay.status().clients.length === 1);
    for (const event of [events.o, events.f, events.d, events.r]) source$.next(event);
    await waitFor(() => memory.types().includes('reconnecting'));
    expect(memory.types()).toEqual(['opened', 'disconnected', 'reconnecting']);
    subscription.unsubscribe();
    relay.close();
  });

  it('a recording: the gaps', async () => {
    const path = folder.path('feed.ndjson');
    from([events.f, events.g, frameOf('b', 12)])
      .pipe(recordTo(path))
      .subscribe();
    const memory = memoryLogger();
    await until(replay$(path, { speed: Infinity }).pipe(logEvents(memory.logger)), () => false);
    expect(memory.calls).toEqual([
      ['warn', expect.objectContaining({ type: 'gap', from: 5, code: 'connection-lost' })],
    ]);
  });

  it('a stop and a new subscription: each run is logged', () => {
    const memory = memoryLogger();
    const run$ = concat(
      [events.t, events.s],
      throwError(() => events.s.failure),
    ).pipe(logEvents(memory.logger));
    for (let run = 0; run < 2; run += 1) run$.subscribe({ error: () => undefined });
    expect(memory.types()).toEqual(['ticket-requested', 'stopped', 'ticket-requested', 'stopped']);
  });

  it('two operators on one shared feed: each logs with its own level', () => {
    const source$ = new Subject<RelayedEvent>();
    const shared$ = source$.pipe(shareFeed());
    const [all, warnings] = [memoryLogger(), memoryLogger()];
    shared$.pipe(logEvents(all.logger), frames(), take(1)).subscribe();
    shared$.pipe(logEvents(warnings.logger, { level: 'warn' })).subscribe();
    for (const event of [events.o, events.d, events.f, events.r]) source$.next(event);
    expect(all.types()).toEqual(['opened', 'disconnected']);
    expect(warnings.types()).toEqual(['disconnected', 'reconnecting']);
  });
});
