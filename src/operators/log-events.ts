import { defer, type MonoTypeOperatorFunction, Subject, takeUntil, tap } from 'rxjs';
import { eventLevels, eventRecords, levelOf, type LogEntry } from '../protocol/event-record.js';
import type { EventLevel, EventRecord } from '../protocol/event-record.js';
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
    /** Loggers of NestJS have `log` instead of `info`. */
    | { readonly log: LogMethod }
  );

/** The options of {@link logEvents}. */
export interface LogEventsOptions {
  /** The least important level that is logged. @defaultValue `'debug'`: every event */
  readonly level?: EventLevel | undefined;
}

/**
 * Logs each lifecycle event on one line. Emits all events and items unchanged.
 *
 * Calls the method of the level with one `EventRecord`: a console prints its text, and a structured logger such as pino
 * writes its fields, with the text as `msg`. The levels are `debug` for tickets, `info` for `opened`, `error` for
 * `stopped`, and `warn` for any other event. Frames and watermarks are never logged. No record contains a secret.
 *
 * The global `console` of Node writes all of it to stderr, so that stdout has only what your program prints. A failure
 * that repeats is logged without its advice, and the third one in a row says how to find the cause.
 *
 * Also logs what no event reports: once that the feed has waited for 5 s (`waiting`) for a ticket, an answer to its
 * handshake or a frame (a quiet feed less often), and as `stopped` an error that no event announced, for example of
 * `append`. Errors and completes with the source, and errors if the logger throws. Memory: none.
 * ```ts
 * // source               --opened--frame--frame--disconnected+reconnecting--opened+gap--
 * // logEvents(console)   --opened--frame--frame--disconnected+reconnecting--opened+gap--
 * // the log              --info-------------------warn-----------------------info--warn--
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
        // Also records what is not logged: `opened` ends a row of failures.
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

// The console of Node writes `info` and `debug` to stdout, where a program writes its frames.
const isNode = 'process' in globalThis;

// Called as methods: loggers use `this`.
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
