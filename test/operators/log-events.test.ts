import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { NEVER, Subject, concat, from, of } from 'rxjs';
import { type EventLevel, type EventLogger, type EventRecord, logEvents } from '../../src/index.js';
import type { TradeFeedError } from '../../src/index.js';
import { FeedWatch } from '../../src/operators/items/feed-watch.js';
import type { Waiting } from '../../src/protocol/event-record.js';
import { failurePage } from '../../src/protocol/failures/meanings.js';
import { fakeTimers } from '../support/fake-timers.js';
import { disconnected, frameOf, gapOf, issued, opened, reconnecting, requested, stopped, watermark } from './stream.js';

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

/** Creates a logger that stores the level and the record of each call. */
const memoryLogger = () => {
  const calls: (readonly [EventLevel, EventRecord])[] = [];
  const method = (level: EventLevel) => (record: EventRecord) => void calls.push([level, record]);
  const logger = { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
  /** The level and the text of each call. */
  const texts = () => calls.map(([level, record]) => [level, String(record)]);
  return { logger, calls, texts };
};

const logAll = (logger: EventLogger) => from(Object.values(events)).pipe(logEvents(logger)).subscribe();

describe('logEvents', () => {
  it('calls the method of its level once per event, with the fields of the event and of its failure, and a text', () => {
    const { logger, calls } = memoryLogger();
    logAll(logger);
    const lost = { code: 'connection-lost', stage: 'stream', verdict: 'renew', closeCode: 1006 };
    const { reason } = events.s.failure;
    const replaced = { code: 'connection-replaced', stage: 'stream', verdict: 'stop', closeCode: 4001, reason };
    const ended = { uptimeMs: 0, framesReceived: 0 };
    const lostText = `Disconnected, connection-lost: ${events.d.failure.message}`;
    const gapText = 'Frames may be missing: 3 frames in 4 ms from 1970-01-01T00:00:00.005Z on';
    const stoppedText = `Stopped, connection-replaced: ${events.s.failure.message}`;
    expect(calls.map(([level, record]) => ({ level, ...record }))).toEqual([
      { level: 'debug', ...events.t, msg: 'Requesting a ticket for market' },
      { level: 'debug', ...events.i, msg: 'Ticket issued for market' },
      { level: 'info', ...events.o, msg: 'Connected to market (connection 1)' },
      { level: 'warn', type: 'disconnected', at: 5, ...lost, ...ended, msg: lostText },
      { level: 'warn', ...events.r, msg: 'Reconnect 2 in 250 ms' },
      { level: 'warn', type: 'gap', at: 9, from: 5, durationMs: 4, missed: 3, ...lost, msg: gapText },
      { level: 'error', type: 'stopped', at: 10, ...replaced, ...ended, msg: stoppedText },
    ]);
    expect(String(calls[2]?.[1])).toBe('Connected to market (connection 1)');
  });

  it('calls `log` if a logger has no `info`, as in NestJS', () => {
    const { logger, texts } = memoryLogger();
    const { info: log, ...others } = logger;
    of(events.o)
      .pipe(logEvents({ ...others, log }))
      .subscribe();
    expect(texts()).toEqual([['info', 'Connected to market (connection 1)']]);
  });

  const refused = { type: 'engine-refused', at: 7, since: 6, operation: 'write', message: 'READONLY' } as const;
  const recovered = { type: 'engine-recovered', at: 9, durationMs: 3 } as const;
  const around = 'around 00:00:00.005: The connection dropped without a close frame';

  it.each<[what: string, event: unknown, level: string, text: string]>([
    ['a gap', gapOf(5, 9), 'warn', 'Frames may be missing: 4 ms from 1970-01-01T00:00:00.005Z on'],
    ['a gap of 0 ms, by its cause', gapOf(5, 5), 'warn', `Frames may be missing ${around}`],
    ['a gap of 0 ms and 0 frames', { ...gapOf(5, 5), missed: 0 }, 'warn', `Frames may be missing ${around}`],
    ['a gap of 0 ms and 3 frames', { ...gapOf(5, 5), missed: 3 }, 'warn', `Frames may be missing: 3 frames ${around}`],
    [
      "what a cluster's engine refuses",
      { ...refused, advice: 'Wait.' },
      'warn',
      "Can't write the cluster's key: READONLY. Wait.",
    ],
    ['that it has recovered', recovered, 'info', "The cluster's engine works again, after 3 ms"],
    ['that it has recovered at once', { ...recovered, durationMs: 0 }, 'info', "The cluster's engine works again"],
  ])('writes %s as a text', (_what, event, level, text) => {
    const { logger, texts } = memoryLogger();
    of(event).pipe(logEvents(logger)).subscribe();
    expect(texts()).toEqual([[level, text]]);
  });

  const unreachable = disconnected(1, { stage: 'ticket', code: 'ticket-endpoint-unreachable', closeCode: undefined });
  const kinds = { u: unreachable, d: events.d, o: events.o, r: events.r };

  /** Returns what a log says about a failure: `F`, all; `s`, without the advice; `!`, with the way to the cause. */
  const formOf = ({ code, message, advice }: TradeFeedError, text: string): string | undefined => {
    const short = `Disconnected, ${code}: ${message.slice(0, message.indexOf(` ${advice}`))}`;
    const cause = `That's three failures in a row: \`npx rx-trade-feed doctor\` finds the cause, or see ${failurePage(code)}`;
    const forms = { F: `Disconnected, ${code}: ${message}`, s: short, '!': `${short} ${cause}` };
    return Object.entries(forms).find(([, form]) => form === text)?.[0];
  };

  // u, d: failures with different codes; o: opened; r: reconnecting
  it.each<[string, string, EventLevel, string]>([
    ['a full text once for each code', 'ud', 'debug', 'FF'],
    ['a short text for a code that comes again', 'uou', 'debug', 'Fs'],
    ['the way to the cause at the third failure in a row, and only there', 'urdruru', 'debug', 'FF!s'],
    ['no way to the cause if a connection opens whose level is not logged', 'uuouu', 'warn', 'Fsss'],
    ['the way to the cause again after a connection', 'uuuouuu', 'debug', 'Fs!ss!'],
  ])('logs %s: %s at the level %s', (_what, row, level, expected) => {
    const { logger, texts } = memoryLogger();
    const given = [...row].map((letter) => kinds[letter as keyof typeof kinds]);
    from(given).pipe(logEvents(logger, { level })).subscribe();
    const failures = given.flatMap((event) => (event.type === 'disconnected' ? [event.failure] : []));
    const logged = texts().filter(([, text]) => text?.startsWith('Disconnected'));
    expect(failures.map((failure, n) => formOf(failure, logged[n]?.[1] ?? '')).join('')).toBe(expected);
  });
});

it('logEvents writes all levels of the global console to stderr and leaves stdout to the program', () => {
  const written: unknown[] = [];
  const error = jest.spyOn(console, 'error').mockImplementation((record) => void written.push(record));
  logAll(console);
  error.mockRestore();
  expect(written.map((record) => (record as EventRecord).type)).toContain('opened');
  expect(written).toHaveLength(7);
});

let time: Disposable;
beforeEach(() => void (time = fakeTimers()));
afterEach(() => time[Symbol.dispose]());

const seconds = (count: number) => jest.advanceTimersByTime(count * 1_000);

const started = () => {
  const reports: string[] = [];
  const watch = new FeedWatch(({ stage, waitedMs }: Waiting) => void reports.push(`${stage ?? 'source'} ${waitedMs}`));
  return { watch, reports };
};

describe('FeedWatch', () => {
  it('reports each stage of the first attempt once, after 5 s', () => {
    const { watch, reports } = started();
    seconds(4);
    expect(reports).toEqual([]);
    seconds(60);
    watch.event(requested(1));
    expect(watch.waiting).toBe(undefined);
    seconds(60);
    watch.event(issued(2));
    seconds(60);
    expect(reports).toEqual(['source 5000', 'ticket 5000', 'handshake 5000']);
    expect(watch.waiting).toMatchObject({ stage: 'handshake', code: 'handshake-unreachable' });
    watch.event(opened(3));
    expect(watch.waiting).toBe(undefined);
    watch.end();
  });

  it('reports nothing between a failure and the next attempt, because the failure is known', () => {
    const { watch, reports } = started();
    for (const event of [requested(1), disconnected(2), reconnecting(2, 60_000), requested(3), issued(4)])
      watch.event(event);
    seconds(120);
    watch.event(stopped(5));
    seconds(120);
    expect(reports).toEqual([]);
    watch.end();
  });

  it('reports a silence, and waits twice as long after each silence that a frame ends', () => {
    const { watch, reports } = started();
    watch.event(opened(1));
    for (const silence of [6, 6, 11, 15, 21]) {
      watch.item(frameOf('a'));
      seconds(silence);
    }
    expect(reports).toEqual(['stream 5000', 'stream 10000', 'stream 20000']);
    watch.end();
  });

  it('measures an outage on a monotonic clock, from the last bytes of a stalled connection on', () => {
    const { watch } = started();
    seconds(2);
    expect(watch.downMs).toBe(2_000);
    watch.event(opened(Date.now()));
    expect(watch.downMs).toBe(undefined);
    seconds(3);
    expect(watch.liveMs).toBe(3_000);
    const { failure } = disconnected(Date.now() - 2_000);
    watch.event({ type: 'disconnected', at: Date.now(), failure });
    jest.setSystemTime(Date.now() - 3_600_000);
    seconds(1);
    expect([watch.downMs, watch.liveMs]).toEqual([3_000, 0]);
    watch.end();
  });
});

describe('logEvents while no event arrives', () => {
  const run = (more: Partial<EventLogger> = {}) => {
    const { logger, calls } = memoryLogger();
    const errors: unknown[] = [];
    const source$ = new Subject<unknown>();
    const subscription = concat([requested(1)], source$, NEVER)
      .pipe(logEvents({ ...logger, ...more }))
      .subscribe({ error: (error) => errors.push(error) });
    return { source$, calls, errors, subscription };
  };

  it('logs that it waits for the ticket, with a code, the stage and what to do', () => {
    const { calls, subscription } = run();
    seconds(60);
    const waiting = {
      ...{ type: 'waiting', at: expect.any(Number), waitedMs: 5_000 },
      ...{ stage: 'ticket', code: 'ticket-endpoint-unreachable' },
      msg: expect.stringMatching(/^Waiting, ticket-endpoint-unreachable: No ticket after 5 s\. Check the network, /),
    };
    expect(calls.slice(1)).toEqual([['warn', waiting]]);
    subscription.unsubscribe();
  });

  it('logs an error that had no event, with its cause', () => {
    const { calls, errors, source$ } = run();
    source$.next(frameOf('a'));
    const thrown = new RangeError('no space left');
    source$.error(thrown);
    expect(errors).toEqual([thrown]);
    const msg = expect.stringMatching(/^Stopped, relay-source-failed: .* Cause: RangeError: no space left$/);
    expect(calls.at(-1)).toEqual([
      'error',
      expect.objectContaining({ type: 'stopped', code: 'relay-source-failed', msg }),
    ]);
  });

  it.each<[what: string, method: EventLevel, act: (source$: Subject<unknown>) => void]>([
    ['an event', 'info', (source$) => source$.next(opened(3))],
    ['a wait', 'warn', () => seconds(5)],
  ])('errors if the logger throws while it logs %s', (_what, method, act) => {
    const thrown = new Error('disk full');
    const { errors, source$ } = run({
      [method]: () => {
        throw thrown;
      },
    });
    act(source$);
    expect([errors, source$.observed]).toEqual([[thrown], false]);
  });
});
