// What `append` does on every engine: it forwards a feed unchanged, and gives each event to the writer of the log.
import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  from,
  ignoreElements,
  noop,
  type Observable,
  of,
  Subject,
  switchMap,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { debug } from '../feed/diagnostics.js';
import { frameOf } from '../operators/items/item.js';
import { printable } from '../protocol/printable.js';
import type { ReadableLog } from './consume.js';
import { closes } from './lock.js';
import type { LogError } from './log-error.js';
import type { AppendOptions } from './options.js';

/** The writer of a log. What it returns resolves when all records are stored; nothing, if they already are. */
interface Writer {
  readonly add: (value: unknown) => void;
  /** Ends with the error of the source, which stops the feed. */
  readonly stopped: (thrown: unknown) => void | Promise<void>;
  readonly end: () => void | Promise<void>;
}

/** Receives a failure of a writer, and whether it can go on. Returns `false` if it must end. */
export type Fail = (error: LogError, canContinue?: boolean) => boolean;

/** What `append` needs of a log. */
export interface Appendable extends Pick<ReadableLog, 'path' | 'connection'> {
  /** Opens a writer. @param isOver - whether nobody needs it any more */
  readonly openWriter: (fail: Fail, isOver: () => boolean) => Writer | Promise<Writer>;
  readonly onError: NonNullable<AppendOptions['onError']>;
  /** Ends what is appended. */
  readonly closing$: Observable<unknown>;
}

/**
 * Opens a writer, and writes a source to it until that ends, the writer fails, or the subscriber leaves. The source is
 * subscribed to once it's certain that the writer may write: the connection of an account evicts another one.
 */
export const appended = <E>(
  source: Observable<E>,
  { path, connection, onError, openWriter, closing$ }: Appendable,
): Observable<E> =>
  defer(() => {
    const failures = failuresOf(onError);
    let isOver = false;
    const opened = openWriter(failures.fail, () => isOver);
    let current: Writer | undefined;
    // `close()` waits for each end, also that of a source.
    const ends = (ended: void | Promise<void>): Observable<never> => {
      if (ended === undefined) return EMPTY;
      closes(path, ended, connection);
      return from(ended).pipe(ignoreElements());
    };
    const end = (): void => {
      isOver = true;
      failures.unsubscribed();
      // At once: the next call of the subscriber may close the connection.
      ends(current ? current.end() : Promise.resolve(opened).then((writer) => writer.end(), noop));
    };
    const writers$ = opened instanceof Promise ? from(opened).pipe(takeUntil(closing$)) : of(opened);
    return writers$.pipe(
      tap((writer) => (current = writer)),
      switchMap((writer) => written(source.pipe(takeUntil(closing$)), writer, ends)),
      takeUntil(failures.failed),
      finalize(end),
    );
  });

const written = <E>(
  source: Observable<E>,
  writer: Writer,
  ends: (ended: void | Promise<void>) => Observable<never>,
): Observable<E> =>
  concat(
    source.pipe(
      catchError((error: unknown) =>
        concat(
          defer(() => ends(writer.stopped(error))),
          throwError(() => error),
        ),
      ),
      tap((event) => writer.add(frameOf(event) ?? event)),
    ),
    defer(() => ends(writer.end())),
  );

/** Reports the failures of a writer: to `onError`, or as the error of its stream. */
const failuresOf = (onError: Appendable['onError']) => {
  const failed = new Subject<never>();
  let end = (error: unknown): void => failed.error(error);
  let report = end;
  return {
    failed,
    fail: ((error, canContinue = true) => {
      // `onError` may keep the failure to itself.
      writeDebug(error);
      try {
        if (onError !== 'error') onError(error);
      } catch (thrown) {
        report(thrown);
        return false;
      }
      const goesOn = canContinue && onError !== 'error';
      // The end of the log is an end of the stream, which would look well without it.
      if (!goesOn) end(error);
      return goesOn;
    }) satisfies Fail,
    /** Nobody awaits the end any more, so its failure must not end the process: without a function it's a warning. */
    unsubscribed: (): void => {
      end = (error) => onError === 'error' && warnOf(error as LogError);
      report = (thrown) => throwError(() => thrown).subscribe();
    },
  };
};

export const warnOf = ({ message, code }: LogError): void =>
  process.emitWarning(printable(message), { type: 'TradeFeedWarning', code });

export const writeDebug = ({ message }: Error): void => debug.write(`log: ${printable(message)}`);
