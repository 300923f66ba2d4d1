import type { Observable } from 'rxjs';
import type { Head } from '../protocol/place.js';

/** Reads the head of a message; `undefined` if the bytes aren't one. */
export type HeadOf = (bytes: Uint8Array) => Head | undefined;

/** `fenced`: another generation was stored. `away`: no answer, or it lacks what it had. `full`: it takes nothing. */
export type LineRefusal = 'fenced' | 'away' | 'full';

/** A store that may answer the same request later. Any other error is a refusal. */
export class StoreAway extends Error {
  override readonly name = 'StoreAway';
}

/** What became of appended messages: all before the offset `upTo` are stored, or one was refused, and all after it. */
export type Stored = { readonly upTo: number } | { readonly refused: LineRefusal; readonly error: unknown };

/**
 * Stores the messages of a line, in order, for a while. Only offsets count: the numbers of a store never leave it.
 *
 * A store never decides what a reader emits: messages may come twice, or be of a replaced owner. `between` decides.
 */
export interface LineStore {
  /**
   * Returns the head of the last message; `undefined` if the store is empty. Asks the server that decides about writes,
   * and creates the store if it's missing. What is appended next follows this message. Rejects if there's no answer.
   */
  end(): Promise<Head | undefined>;
  /**
   * Stores a message after the one that was appended last, or after the last `end()`, without waiting: if one is
   * refused, so are all that follow, until `end()` is called again. Subscribers of its subject
   * receive it, also if the store refuses it; but a store may keep the messages of a replaced owner from them. Generations
   * begin with 1.
   *
   * @param only - `store`: it was sent before. `live`: it will be stored later, after those before it
   */
  append(head: Head, bytes: Uint8Array, only?: 'store' | 'live'): void;
  /** Emits what became of messages; not for each one, and possibly while `append` runs. */
  readonly stored$: Observable<Stored>;
  /**
   * Emits the messages from the one that contains the offset `from` to the newest, in order, and ends. Begins later if
   * the store has removed that one. Rejects if there's no answer.
   *
   * @param isNext - whether it goes on where the last call has ended. Then it doesn't search, and finds nothing, or
   *   something else, if the store has lost messages since
   */
  read(from: number, signal: AbortSignal, isNext?: boolean): AsyncIterable<Uint8Array>;
  /** Returns the head of the last message, as far as any copy of the store knows; `undefined` if there's none. */
  last(): Promise<Head | undefined>;
  /** Returns whether there is a store: one that is empty is, one that nobody has written isn't. */
  exists(): Promise<boolean>;
  /** Returns the offset of the oldest message that isn't earlier than `at`, in epoch ms; `undefined` if there's none. */
  since(at: number): Promise<number | undefined>;
  /** Returns what the store holds; `undefined` if it's empty. */
  extent(): Promise<LineExtent | undefined>;
}

/** Which line a store keeps, and for how long. */
export interface LineSpec {
  /** `line`: the messages of a cluster's account. `log`: a log. */
  readonly kind: 'line' | 'log';
  /** The name of the account, or of the log. */
  readonly name: string;
  /** Reads the place of a message. */
  readonly headOf: HeadOf;
  /** @defaultValue `file` for a log, `memory` for a line */
  readonly storage?: 'memory' | 'file' | undefined;
  /**
   * A store that exists keeps its limits, unless they are given.
   *
   * @defaultValue 60 000 ms and 64 MiB for a line, none for a log
   */
  readonly maxAgeMs?: number | undefined;
  readonly maxBytes?: number | undefined;
  /** A store that doesn't ask for each answer asks once so many bytes wait for one. @defaultValue `Infinity` */
  readonly maxUnansweredBytes?: number | undefined;
}

/** What a new store keeps. */
export const keptBy = ({ kind, maxAgeMs, maxBytes, storage }: Omit<LineSpec, 'name' | 'headOf'>) => {
  const isLog = kind === 'log';
  return {
    storage: storage ?? (isLog ? 'file' : 'memory'),
    maxAgeMs: maxAgeMs ?? (isLog ? Infinity : lineLimits.maxAgeMs),
    maxBytes: maxBytes ?? (isLog ? Infinity : lineLimits.maxBytes),
  } as const;
};

/** What a store holds: the offsets from `from` to before `to`, the size of the messages, and the time between them. */
export interface LineExtent {
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
  readonly durationMs: number;
}

/** What a store in memory, on NATS or on Redis keeps, in ms and bytes, and how long it waits for answers. */
export const lineLimits = Object.freeze({
  ...{ maxAgeMs: 60_000, maxBytes: 64 * 1024 * 1024 },
  /** No answer to what was appended for so long is a refusal. */
  ...{ requestMs: 2_000, answerMs: 1_000 },
});

/**
 * Returns a function that takes the messages of a line, and says from which one on the store must keep them, if that has
 * changed. A new owner doesn't know the ages of the messages before its own, so it keeps them for another minute.
 */
export const retention = <M>(
  spec: Omit<LineSpec, 'name' | 'headOf'>,
): ((message: M, bytes: number) => M | undefined) => {
  const { maxAgeMs, maxBytes } = keptBy(spec);
  const [markMs, markBytes] = [Math.min(1_000, maxAgeMs / 8), Math.min(1024 * 1024, maxBytes / 8)];
  const marks: { readonly message: M; readonly at: number; readonly before: number }[] = [];
  let total = 0;
  return (message, bytes) => {
    const at = performance.now();
    const newest = marks.at(-1);
    if (newest === undefined || at - newest.at >= markMs || total - newest.before >= markBytes)
      marks.push({ message, at, before: total });
    total += bytes;
    const kept = marks.findIndex((mark) => at - mark.at <= maxAgeMs && total - mark.before <= maxBytes);
    return marks.splice(0, kept).at(-1)?.message;
  };
};

const subjectOf = ({ kind, name }: Pick<LineSpec, 'kind' | 'name'>): string =>
  kind === 'line' ? `rtf.v2.${name}` : `rtf.log.${name}`;

/** The subject on which all engines deliver what is appended. An owner without a store publishes to it. */
export const liveSubject = (of: Pick<LineSpec, 'kind' | 'name'>): string => `${subjectOf(of)}.feed`;

/** For what subscribers have received already, and only the store lacks. */
export const againSubject = (of: Pick<LineSpec, 'kind' | 'name'>): string => `${subjectOf(of)}.again`;

/** Whether a message has the record `from`, or is after it. What has no records is read with those that follow. */
export const reaches = ({ offset, count }: Head, from: number): boolean => offset + Math.max(count, 1) > from;

/** Returns what a store holds, if it knows its first and last message. */
export const extentOf = (first: Head | undefined, last: Head | undefined, bytes: number): LineExtent | undefined =>
  first && last && { from: first.offset, to: last.offset + last.count, bytes, durationMs: last.at - first.at };

/**
 * Finds the first message with a property that all later ones have too.
 *
 * @param keys - the numbers to search: the first, and the one after the last
 * @param next - returns the first message at a number or after it
 */
export const firstWhere = async <T extends { readonly key: number; readonly head: Head }>(
  [low, high]: readonly [number, number],
  next: (key: number) => Promise<T | undefined>,
  isFound: (head: Head) => boolean,
): Promise<T | undefined> => {
  const first = await next(low);
  if (first === undefined || isFound(first.head)) return first;
  low = first.key + 1;
  let found: T | undefined;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const message = await next(middle);
    if (message !== undefined && !isFound(message.head)) low = message.key + 1;
    else [high, found] = [middle, message ?? found];
  }
  return found;
};

/** Returns the offset at which the newest `bytes` begin, as if all records were equally large; `undefined`: all fit. */
export const newestFrom = async (store: LineStore, maxBytes: number): Promise<number | undefined> => {
  const { from = 0, to = 0, bytes = 0 } = (await store.extent()) ?? {};
  return bytes <= maxBytes ? undefined : to - Math.max(1, Math.floor(((to - from) * maxBytes) / bytes));
};
