// What `append` does on every engine: it forwards a feed unchanged, and gives each event to the writer of the log.
import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  from,
  ignoreElements,
  type Observable,
  Subject,
  takeUntil,
  tap,
  throwError,
} from 'rxjs';
import { debug } from '../feed/diagnostics.js';
import { frameOf } from '../operators/items/item.js';
import { printable } from '../protocol/printable.js';
import { closes } from './lock.js';
import type { LogError } from './log-error.js';
import * as options from './options.js';

// A log on JetStream takes the options of the store at `append`.
export type AppendOptions = options.FeedLogOptions & options.AppendOptions;
export type AppendSettings = options.FolderSettings & options.AppendSettings;
export const appendDefaults: AppendSettings = { ...options.folderDefaults, ...options.appendDefaults };
export const appendRules = { ...options.folderRules, ...options.appendRules };

/** The writer of a log. What it returns resolves when all records are stored; nothing, if they already are. */
interface Writer {
  readonly add: (value: unknown) => void;
  /** Ends with the error of the source, which stops the feed. */
  readonly stopped: (thrown: unknown) => void | Promise<void>;
  readonly end: () => void | Promise<void>;
}

/** Receives a failure of a writer, and whether it can go on. Returns `false` if it must end. */
export type Fail = (error: LogError, canContinue?: boolean) => boolean;

/** Opens a writer, and writes a source to it until that ends, the writer fails, or the subscriber leaves. */
export const appended = <E>(
  source: Observable<E>,
  path: string,
  onError: AppendSettings['onError'],
  open: (fail: Fail) => Writer,
): Observable<E> =>
  defer(() => {
    const failures = failuresOf(onError);
    const writer = open(failures.fail);
    const written$ = source.pipe(
      catchError((error: unknown) =>
        concat(
          stored$(() => writer.stopped(error)),
          throwError(() => error),
        ),
      ),
      tap((event) => writer.add(frameOf(event) ?? event)),
    );
    const end = (): void => {
      failures.unsubscribed();
      const ended = writer.end();
      if (ended !== undefined) closes(path, ended);
    };
    return concat(
      written$,
      stored$(() => writer.end()),
    ).pipe(takeUntil(failures.failed), finalize(end));
  });

const stored$ = (end: () => void | Promise<void>): Observable<never> =>
  defer(() => {
    const ended = end();
    return ended === undefined ? EMPTY : from(ended).pipe(ignoreElements());
  });

/** Reports the failures of a writer: to `onError`, or as the error of its stream. */
const failuresOf = (onError: AppendSettings['onError']) => {
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

const warnOf = ({ message, code }: LogError): void =>
  process.emitWarning(printable(message), { type: 'TradeFeedWarning', code });

export const writeDebug = ({ message }: Error): void => debug.write(`log: ${printable(message)}`);
