import { defer, type MonoTypeOperatorFunction, Subject, takeUntil, tap } from 'rxjs';
import { type EventLevel, type EventRecord, eventRecords, levelOf, type LogEntry } from '../protocol/event-record.js';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/validate.js';
import { isLifecycle } from './items/item.js';
import { unannouncedStop } from './items/follow-feed.js';
import { FeedWatch } from './items/feed-watch.js';

/** Writes a record to a log. */
export type LogMethod = (record: EventRecord) => unknown;

/** A logger: `console`, a logger of pino, the `Logger` of NestJS, or any object with these methods. */
export type EventLogger = Readonly<Record<'debug' | 'warn' | 'error', LogMethod>> &
  (
    | { readonly info: LogMethod }
    /** NestJS calls it `log` instead of `info`. */
    | { readonly log: LogMethod }
  );

/** The options of {@link logEvents}. */
export interface LogEventsOptions {
  /** The least important level to log. @defaultValue `'debug'`: every event */
  readonly level?: EventLevel | undefined;
}

/**
 * Logs each lifecycle event on one line. Emits all events and items unchanged.
 *
 * Each event is one call to the method of its level, with one `EventRecord`: a console prints its text, a structured
 * logger such as pino writes its fields, with the text as `msg`. Tickets are `debug`, `opened` is `info`, `stopped` is
 * `error`, and everything else is `warn`. Frames and watermarks are never logged. No record contains a secret.
 *
 * Node's global `console` writes all of it to stderr, which leaves stdout to your program. If a failure repeats, its
 * advice isn't logged again, and the third in a row says how to find the cause.
 *
 * Also logs what no event reports: `waiting`, once the feed has waited 5 s for a ticket, an answer to its handshake or
 * a frame (less often if the feed is quiet), and `stopped` for an error that had no event, such as one from `append`.
 * Errors and completes with the source, and errors if the logger throws. Memory: none.
 * ```ts
 * // o: opened, f: frame, d: disconnected, r: reconnecting, g: gap
 * // source              --o-----f--f--(dr)--o-----(gf)--
 * // logEvents(console)  --o-----f--f--(dr)--o-----(gf)--
 * // the log             --info--------warn--info--warn--
 * ```
 *
 * @param logger - see {@link EventLogger}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { frames, logEvents, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * tradeFeedEvents$('market')
 *   .pipe(logEvents(console, { level: 'info' }), frames())
 *   .subscribe((frame) => console.log(frame.byteLength, 'bytes'));
 * ```
 */
export const logEvents = <E>(logger: EventLogger, options: LogEventsOptions = {}): MonoTypeOperatorFunction<E> => {
  checkRequired({ logger }, { logger: aLogger });
  const { level = 'debug' } = validated(options, { level: oneOf(...eventLevels) });
  const logged = eventLevels.slice(eventLevels.indexOf(level));
  return (source) =>
    defer(() => {
      const record = eventRecords();
      const log = (entry: LogEntry): void => {
        // Create the record even if its level isn't logged: `opened` resets the count of repeated failures.
        const entryRecord = record(entry);
        if (logged.includes(levelOf(entry))) write(logger, levelOf(entry), entryRecord);
      };
      const failed = new Subject<never>();
      const watch = new FeedWatch((waiting) => {
        try {
          log(waiting);
        } catch (error) {
          failed.error(error);
        }
      });
      const next = (event: unknown): void => {
        if (!isLifecycle(event)) return watch.item(event);
        watch.event(event);
        if (event.type !== 'watermark') log(event);
      };
      const error = (thrown: unknown): void => {
        const stopped = unannouncedStop(watch.state, thrown);
        if (stopped) log(stopped);
      };
      return source.pipe(tap<E>({ next, error, finalize: () => watch.end() }), takeUntil(failed));
    });
};

const eventLevels: readonly EventLevel[] = ['debug', 'info', 'warn', 'error'];

// Node's console writes `info` and `debug` to stdout, where your program writes its frames.
const isNode = 'process' in globalThis;

// Call them as methods: loggers use `this`.
const write = (logger: EventLogger, level: EventLevel, record: EventRecord): void => {
  if (logger === console && isNode) return console.error(record);
  if (level !== 'info') logger[level](record);
  else if ('info' in logger) logger.info(record);
  else logger.log(record);
};

const aLogger: Rule = {
  allowed: 'an object with the methods debug, info (or log), warn and error',
  is: (v) => {
    const { debug, warn, error, info, log } = Object(v) as Readonly<Record<string, unknown>>;
    return [debug, warn, error].every(aFunction.is) && (aFunction.is(info) || aFunction.is(log));
  },
};
