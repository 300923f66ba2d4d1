import { aName, integerIn, type Rule } from '../protocol/validate.js';
import { type FeedLog, logOf } from './feed-log.js';
import { historyOfStore } from './history.js';
import { LogError } from './log-error.js';
import { logHeadOf } from './log-message.js';
import { bytesRule, folderDefaults } from './options.js';
import { committedInStore, openStoreCursor } from './store-cursor.js';
import type { LogEngine, StoredLog } from './stored-log.js';
import { StoreReader } from './store-reader.js';
import { StoreWriter, takeLog } from './store-writer.js';

/** The options of a log on a server. */
export interface EngineLogOptions {
  /** The name of the log: letters, digits, `-` and `_`. */
  readonly name: string;
  /**
   * How large the log may grow, in bytes. Beyond it, the oldest records are removed.
   *
   * @defaultValue that of a log that exists; `Infinity` for a new one
   */
  readonly maxBytes?: number | undefined;
  /**
   * How old a record may get, in ms: at least 100. Older ones are removed.
   *
   * @defaultValue that of a log that exists; `Infinity` for a new one
   */
  readonly maxAgeMs?: number | undefined;
  /**
   * How many bytes may wait for a server that's slow or away. Beyond it, the log counts what it can't keep, and goes on
   * with a gap that has the exact number. @defaultValue 16 777 216
   */
  readonly maxWaitingBytes?: number | undefined;
}

/** NATS counts ages in nanoseconds, in 64 bits. */
const maxAgeMs = 9.2e12;

export const engineLogRules: Readonly<Record<keyof EngineLogOptions, Rule>> = {
  name: aName,
  maxBytes: {
    allowed: `a whole number of bytes from 1 to ${Number.MAX_SAFE_INTEGER}, or Infinity`,
    is: (v) => v === Infinity || integerIn(1).is(v),
  },
  maxAgeMs: {
    allowed: `a number of ms from 100 to ${maxAgeMs}, or Infinity`,
    is: (v) => v === Infinity || (typeof v === 'number' && v >= 100 && v <= maxAgeMs),
  },
  maxWaitingBytes: bytesRule,
};

/** What a log needs to know of its broker. */
interface Broker extends Pick<StoredLog, 'path' | 'connection' | 'cursorKey' | 'isAway'> {
  readonly engine: LogEngine;
  /** Whether the connection was closed for good. Then nothing is away. */
  readonly isClosed: () => boolean;
}

/** Opens a log in a store of an engine. The options are validated. */
export const engineLog = (
  broker: Broker,
  { name, maxWaitingBytes = folderDefaults.maxWaitingBytes, ...limits }: EngineLogOptions,
): FeedLog => {
  const log: StoredLog = {
    ...broker,
    name,
    // What waits for an answer must not fill the memory while the server keeps up.
    spec: { kind: 'log', name, headOf: logHeadOf, maxUnansweredBytes: maxWaitingBytes / 4, ...limits },
    engine: broker.engine as StoredLog['engine'],
    isAway: (error) => !(error instanceof LogError) && !broker.isClosed() && broker.isAway(error),
  };
  return logOf({
    path: broker.path,
    connection: broker.connection,
    now: Date.now,
    openReader: (settings) => new StoreReader(log, settings),
    openWriter: async (fail, isOver) => new StoreWriter(log, await takeLog(log, fail, isOver), maxWaitingBytes, fail),
    openCursor: (consumer) => openStoreCursor(log, consumer),
    committed: (consumer) => committedInStore(log, consumer),
    ...historyOfStore(log),
  });
};
