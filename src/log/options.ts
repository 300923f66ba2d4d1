// The options of a log in a folder, and those of `append`, with their defaults and rules.
import { aBoolean, aCount, aFunction, integerIn, invalidOption, type Rule, validated } from '../protocol/validate.js';
import type { LogError } from './log-error.js';

/** The options of {@link feedLog}: what the log keeps, and how it is written. A log that's only read needs none. */
export interface FeedLogOptions {
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
}

/** The options of {@link FeedLog.append}. */
export interface AppendOptions {
  /**
   * What to do when the disk is full or fails, a segment is removed, or a server refuses records or is away for 5 s.
   * `'error'` ends the stream with the {@link LogError}. If you pass a function, it receives the error and the stream
   * goes on. So does the log once the disk works again, with a gap that has the exact number of missed frames. If the log
   * can't go on (another writer continues it, or bytes can't be forced to the disk), the function receives the error, and
   * the stream ends with it. A failure of the end itself, after you have unsubscribed, is a process warning unless you
   * pass a function.
   *
   * A log that can't be opened (another writer has it, a permission is missing) only ends the stream.
   *
   * @defaultValue `'error'`
   */
  readonly onError?: 'error' | ((error: LogError) => void) | undefined;
}

/** The options of a log in a folder, with the defaults. */
export type FolderSettings = { readonly [Name in keyof FeedLogOptions]-?: NonNullable<FeedLogOptions[Name]> };

export const folderDefaults: FolderSettings = {
  maxBytes: Infinity,
  maxAgeMs: Infinity,
  segmentBytes: 16 * 1024 * 1024,
  syncMs: 1_000,
  compress: false,
  maxWaitingBytes: 16 * 1024 * 1024,
};

/** Whoever reads a compressed segment holds all of it in memory. */
export const maxSegmentBytes = 512 * 1024 * 1024;

export const above: (what: string) => Rule = (what) => ({
  allowed: `${what} above 0, or Infinity`,
  is: (value) => typeof value === 'number' && value > 0,
});

export const bytesRule: Rule = { allowed: 'a whole number of bytes above 0, or Infinity', is: aCount(1).is };

export const folderRules: Readonly<Record<keyof FeedLogOptions, Rule>> = {
  maxBytes: bytesRule,
  maxAgeMs: above('a number of ms'),
  segmentBytes: {
    allowed: `a whole number of bytes, above 0 and at most ${maxSegmentBytes}`,
    is: integerIn(1, maxSegmentBytes).is,
  },
  syncMs: { allowed: 'a number of ms, 0 or more, or Infinity', is: (value) => typeof value === 'number' && value >= 0 },
  compress: aBoolean,
  maxWaitingBytes: bytesRule,
};

/**
 * Returns the options of a log in a folder with the defaults.
 *
 * @throws TradeFeedError with code `invalid-options`
 */
export const folderSettings = (options: FeedLogOptions): FolderSettings => {
  const given = validated(options, folderRules);
  const { maxBytes, compress } = { ...folderDefaults, ...given };
  const segmentBytes = given.segmentBytes ?? Math.min(folderDefaults.segmentBytes, maxBytes / 8);
  const [part, allowed] = compress ? [4, 'a quarter of `maxBytes` with `compress`'] : [3, 'a third of `maxBytes`'];
  if (segmentBytes > maxBytes / part) throw invalidOption('segmentBytes', `at most ${allowed}`, segmentBytes);
  return { ...folderDefaults, ...given, segmentBytes };
};

export const appendRules: Readonly<Record<keyof AppendOptions, Rule>> = {
  onError: { allowed: "'error' or a function", is: (value) => value === 'error' || aFunction.is(value) },
};
