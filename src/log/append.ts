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
import { aBoolean, aFunction, invalidOption, type Rule, validated } from '../protocol/validate.js';
import { closes } from './lock.js';
import type { LogError } from './log-error.js';

/** The options of {@link FeedLog.append}. */
export interface AppendOptions {
  /**
   * How large the log may grow, in bytes, all its files taken together. Before a segment would make it larger, the oldest
   * ones are removed, never the newest two.
   *
   * @defaultValue `Infinity`
   */
  readonly maxBytes?: number | undefined;
  /**
   * How old a segment may get after its last record, in ms. Older ones are removed within about a minute, never the
   * newest one.
   *
   * @defaultValue `Infinity`
   */
  readonly maxAgeMs?: number | undefined;
  /**
   * The size of a segment, in bytes: at most 536 870 912 (512 MiB), a third of `maxBytes`, and a quarter of it with
   * `compress`.
   *
   * @defaultValue 16 777 216 (16 MiB), or an eighth of `maxBytes` if that's less
   */
  readonly segmentBytes?: number | undefined;
  /**
   * How often lines are forced to the disk, in ms. If the power fails, you lose at most that much. 0 does it after each
   * write, `Infinity` never.
   *
   * @defaultValue 1 000
   */
  readonly syncMs?: number | undefined;
  /** Whether to compress closed segments with gzip. @defaultValue `false` */
  readonly compress?: boolean | undefined;
  /** How many bytes may wait for a slow disk. Beyond it, the stream waits. @defaultValue 16 777 216 */
  readonly maxWaitingBytes?: number | undefined;
  /**
   * The generation of the replica that appends. A cluster's `append` sets it. A log that many machines share refuses a
   * generation lower than the last one with `log-fenced`; a folder relies on its lock.
   *
   * @defaultValue 0
   */
  readonly generation?: number | undefined;
  /**
   * What to do when the disk is full or fails, or a segment is removed. `'error'` ends the stream with the
   * {@link LogError}. If you pass a function, it receives the error and the stream goes on. So does the log once the disk
   * works again, with a gap that has the exact number of missed frames. If the log can't go on (another writer has it,
   * or bytes can't be forced to the disk), the function receives the error, and the stream ends with it. A failure of
   * the end itself, after you have unsubscribed, is a process warning unless you pass a function.
   *
   * @defaultValue `'error'`
   */
  readonly onError?: 'error' | ((error: LogError) => void) | undefined;
}

/** The options of `append`, with the defaults. */
export type AppendSettings = { readonly [Name in keyof AppendOptions]-?: NonNullable<AppendOptions[Name]> };

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

export const appendDefaults: AppendSettings = {
  maxBytes: Infinity,
  maxAgeMs: Infinity,
  segmentBytes: 16 * 1024 * 1024,
  syncMs: 1_000,
  compress: false,
  maxWaitingBytes: 16 * 1024 * 1024,
  generation: 0,
  onError: 'error',
};

/** Whoever reads a compressed segment holds all of it in memory. */
export const maxSegmentBytes = 512 * 1024 * 1024;

export const above: (what: string) => Rule = (what) => ({
  allowed: `${what} above 0, or Infinity`,
  is: (value) => typeof value === 'number' && value > 0,
});

export const appendRules: Readonly<Record<keyof AppendOptions, Rule>> = {
  maxBytes: above('a number of bytes'),
  generation: {
    allowed: 'a whole number, 0 or more',
    is: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  },
  maxAgeMs: above('a number of ms'),
  segmentBytes: {
    allowed: `a number of bytes, above 0 and at most ${maxSegmentBytes}`,
    is: (value) => typeof value === 'number' && value > 0 && value <= maxSegmentBytes,
  },
  syncMs: { allowed: 'a number of ms, 0 or more, or Infinity', is: (value) => typeof value === 'number' && value >= 0 },
  compress: aBoolean,
  maxWaitingBytes: above('a number of bytes'),
  onError: { allowed: "'error' or a function", is: (value) => value === 'error' || aFunction.is(value) },
};

/**
 * Returns the options for a folder with the defaults.
 *
 * @throws TradeFeedError with code `invalid-options`
 */
export const folderSettings = (options: AppendOptions): AppendSettings => {
  const given = validated(options, appendRules);
  const { maxBytes, compress } = { ...appendDefaults, ...given };
  const segmentBytes = given.segmentBytes ?? Math.min(appendDefaults.segmentBytes, maxBytes / 8);
  const [part, allowed] = compress ? [4, 'a quarter of `maxBytes` with `compress`'] : [3, 'a third of `maxBytes`'];
  if (segmentBytes > maxBytes / part) throw invalidOption('segmentBytes', `at most ${allowed}`, segmentBytes);
  return { ...appendDefaults, ...given, segmentBytes };
};
