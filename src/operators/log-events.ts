import { type MonoTypeOperatorFunction, tap } from 'rxjs';
import { type EventLevel, eventLevels, EventRecord, levelOf } from '../protocol/event-record.js';
import { aFunction, checkRequired, oneOf, type Rule, validated } from '../protocol/rules.js';
import { isLifecycle } from './items/item.js';

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
  /** The least important level that is logged. The logger can have a level as well. @defaultValue `'debug'`: every event */
  readonly level?: EventLevel | undefined;
}

/**
 * Logs each lifecycle event on one line. Emits all events and items unchanged.
 *
 * Calls the method of the level with one `EventRecord`: a console prints its text, and a structured logger such as pino writes its fields, with
 * the text as `msg`. The levels are `debug` for tickets, `info` for `opened`, `error` for `stopped`, and `warn` for any other event. Frames
 * and watermarks are never logged. No record contains a secret.
 *
 * Errors and completes with the source, and errors if the logger throws. Memory: none.
 *
 * ```ts
 * // source               --opened--frame--frame--disconnected+reconnecting--opened+gap--
 * // logEvents(console)   --opened--frame--frame--disconnected+reconnecting--opened+gap--
 * // the log              --info-------------------warn-----------------------info--warn--
 * ```
 *
 * @param logger - see {@link EventLogger}
 * @param options - see {@link LogEventsOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { Console } from 'node:console';
 * import { frames, logEvents, tradeFeedEvents$ } from 'rx-trade-feed';
 *
 * const toStdout = new Console(process.stdout); // `console` itself writes warnings and errors to stderr
 * tradeFeedEvents$('market')
 *   .pipe(logEvents(toStdout, { level: 'info' }), frames())
 *   .subscribe((frame) => console.log(frame.byteLength, 'bytes'));
 * ```
 */
export const logEvents = <E>(logger: EventLogger, options: LogEventsOptions = {}): MonoTypeOperatorFunction<E> => {
  checkRequired({ logger }, { logger: aLogger });
  const { level = 'debug' } = validated(options, { level: oneOf(...eventLevels) });
  const logged = eventLevels.slice(eventLevels.indexOf(level));
  return tap((event) => {
    if (!isLifecycle(event) || event.type === 'watermark') return;
    const eventLevel = levelOf(event);
    if (logged.includes(eventLevel)) write(logger, eventLevel, new EventRecord(event));
  });
};

// Called as methods: loggers use `this`.
const write = (logger: EventLogger, level: EventLevel, record: EventRecord): void => {
  if (level !== 'info') logger[level](record);
  else if ('info' in logger) logger.info(record);
  else logger.log(record);
};

const hasMethod = (logger: unknown, name: string): boolean =>
  aFunction.is((Object(logger) as Readonly<Record<string, unknown>>)[name]);

const aLogger: Rule = {
  allowed: 'an object with the methods debug, info (or log), warn and error',
  is: (v) =>
    ['debug', 'warn', 'error'].every((name) => hasMethod(v, name)) && (hasMethod(v, 'info') || hasMethod(v, 'log')),
};
