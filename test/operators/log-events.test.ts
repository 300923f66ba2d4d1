import { describe, expect, it, jest } from '@jest/globals';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { from, of } from 'rxjs';
import { type EventLevel, type EventLogger, type EventRecord, logEvents } from '../../src/index.js';
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

/** Creates a logger that stores the level and the record of each call. */
const memoryLogger = () => {
  const calls: (readonly [EventLevel, EventRecord])[] = [];
  const method = (level: EventLevel) => (record: EventRecord) => void calls.push([level, record]);
  const logger = { debug: method('debug'), info: method('info'), warn: method('warn'), error: method('error') };
  return { logger, calls };
};

/** Creates a stream that stores the lines written to it. */
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
  it('calls the method of its level once per event, and never for a frame or a watermark', () => {
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

  it('passes the fields of the event and of its failure, and a text, which pino writes with its level', () => {
    const { stream, lines } = memoryStream();
    const { logger, calls } = memoryLogger();
    logAll(logger);
    logAll(pino({ level: 'debug', base: null }, stream));
    const lost = { code: 'connection-lost', stage: 'stream', verdict: 'renew', closeCode: 1006 };
    const ended = { uptimeMs: 0, framesReceived: 0 };
    const replaced = { code: 'connection-replaced', stage: 'stream', verdict: 'stop', closeCode: 4001 };
    const gapText = 'Frames may be missing: 3 frames in 4 ms from 1970-01-01T00:00:00.005Z on';
    const stoppedText = `Stopped, connection-replaced: ${events.s.failure.message}`;
    const records = [
      { ...events.t, msg: 'Requesting a ticket for market' },
      { ...events.i, msg: 'Ticket issued for market' },
      { ...events.o, msg: 'Connected to market (connection 1)' },
      { type: 'disconnected', at: 5, ...lost, ...ended, msg: `Disconnected, connection-lost: ${lostMessage}` },
      { ...events.r, msg: 'Reconnect 2 in 250 ms' },
      { type: 'gap', at: 9, from: 5, durationMs: 4, missed: 3, ...lost, msg: gapText },
      { type: 'stopped', at: 10, ...replaced, reason: 'connection replaced', ...ended, msg: stoppedText },
    ];
    expect(calls.map(([, record]) => ({ ...record }))).toEqual(records);
    expect(String(calls[2]?.[1])).toBe('Connected to market (connection 1)');
    const levels = [20, 20, 30, 40, 40, 40, 50];
    expect(lines().map((line) => JSON.parse(line) as object)).toMatchObject(
      records.map((record, n) => ({ ...record, level: levels[n] })),
    );
  });

  it('calls `log` if a logger has no `info`, as in NestJS, and logs a gap with an unknown number of frames', () => {
    const { logger, calls } = memoryLogger();
    const { info: log, ...others } = logger;
    from([events.o, gapOf(5, 9)])
      .pipe(logEvents({ ...others, log }))
      .subscribe();
    expect(calls.map(([level, record]) => [level, String(record)])).toEqual([
      ['info', 'Connected to market (connection 1)'],
      ['warn', 'Frames may be missing: 4 ms from 1970-01-01T00:00:00.005Z on'],
    ]);
  });

  it('logs what the engine of a cluster refuses and what to do about it, and when it has recovered', () => {
    const { logger, calls } = memoryLogger();
    const refused = { type: 'engine-refused', at: 7, since: 6, operation: 'write' } as const;
    const texts = { message: 'READONLY', advice: 'Connect to the primary server.' };
    of({ ...refused, ...texts }, { type: 'engine-recovered', at: 9, durationMs: 3 })
      .pipe(logEvents(logger))
      .subscribe();
    expect(calls.map(([level, record]) => [level, String(record)])).toEqual([
      ['warn', "Can't write the cluster's key: READONLY. Connect to the primary server."],
      ['info', "The cluster's engine works again, after 3 ms"],
    ]);
  });

  const unreachable = disconnected(1, { stage: 'ticket', code: 'ticket-endpoint-unreachable', closeCode: undefined });
  const kinds = { u: unreachable, d: events.d, o: events.o, r: events.r };

  it.each<[string, string, EventLevel]>([
    ['a full text once for each code, then the short one', 'u d', 'debug'],
    ['a short text for a code that comes again', 'u o u', 'debug'],
    ['the way to the cause at the third failure in a row, and only there', 'u r u r u! u', 'debug'],
    ['the way to the cause at the third failure, also of different codes', 'u d u!', 'debug'],
    ['no way to the cause if a connection opens between the failures', 'u u o u u', 'debug'],
    ['no way to the cause if a connection opens whose level is not logged', 'u u o u u', 'warn'],
    ['the way to the cause again after a connection', 'u u u! o u u u!', 'debug'],
  ])('logs %s: %s at the level %s', (_what, row, level) => {
    const { logger, calls } = memoryLogger();
    const given = row.split(' ').map((sign) => kinds[sign[0] as keyof typeof kinds]);
    from(given).pipe(logEvents(logger, { level })).subscribe();
    const advised = new Set<string>();
    const expected = row.split(' ').flatMap((sign) => {
      const event = kinds[sign[0] as keyof typeof kinds];
      if (event.type !== 'disconnected') return [];
      const { code, message, advice } = event.failure;
      const page = `node_modules/rx-trade-feed/docs/failures/${code}.md`;
      const isNew = !advised.has(code);
      advised.add(code);
      expect(message).toContain(` ${advice} See ${page}`);
      const short = `Disconnected, ${code}: ${message.slice(0, message.indexOf(` ${advice}`))}`;
      if (sign.endsWith('!'))
        return [
          `${short} That's three failures in a row: \`npx rx-trade-feed doctor\` finds the cause, or see ${page}`,
        ];
      return [isNew ? `Disconnected, ${code}: ${message}` : short];
    });
    const logged = calls.filter(([, { type }]) => type === 'disconnected').map(([, record]) => String(record));
    expect(logged).toEqual(expected);
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
});

it('logEvents writes all levels of the global console to stderr and leaves stdout to the program', () => {
  const written: unknown[] = [];
  const error = jest.spyOn(console, 'error').mockImplementation((record) => void written.push(record));
  logAll(console);
  error.mockRestore();
  expect(written.map((record) => (record as EventRecord).type)).toContain('opened');
  expect(written).toHaveLength(7);
});
