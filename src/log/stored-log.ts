// What the parts of a log in a store share: its place on a broker, who has a role, and what the broker refuses.
import { setTimeout as delay } from 'node:timers/promises';
import { concat, filter, type Observable, type Subscription, throwError } from 'rxjs';
import { printable } from '../protocol/printable.js';
import { warnOf } from './append.js';
import { LogError } from './log-error.js';
import type { LineSpec, LineStore } from './line-store.js';
import { isDenied, refusalIn } from './refusal.js';

/** What a log needs of a broker. The engine of a cluster has it. */
export interface LogEngine {
  readonly connected$: Observable<boolean>;
  readonly failures$?: Observable<{ readonly operation: string; readonly error: unknown }> | undefined;
  read(key: string): Promise<{ readonly value: string; readonly revision: number } | undefined>;
  compareAndSet(key: string, value: string, expected: number | undefined): Promise<number | undefined>;
  maxMessageBytes?(): number | undefined;
  subscribe(subject: string): Observable<Uint8Array>;
  request(subject: string, data: Uint8Array, timeoutMs: number): Promise<{ readonly type: 'reply' | 'no-responders' }>;
  respond(subject: string, answer: (data: Uint8Array) => Uint8Array): Observable<never>;
  line?(spec: LineSpec): LineStore;
}

/** A log on a broker. */
export interface StoredLog {
  readonly name: string;
  /** What the broker calls it. */
  readonly path: string;
  readonly engine: LogEngine & Required<Pick<LogEngine, 'line'>>;
  /** Leads to the broker: all engines over it reach the same logs. */
  readonly connection: object;
  readonly spec: LineSpec;
  /** The key of a consumer's cursor. */
  readonly cursorKey: (consumer: string) => string;
  /** Whether the broker may answer the same request later. Any other failure is a refusal. */
  readonly isAway: (error: unknown) => boolean;
}

/** Emits whether a broker is connected. Errors once its connection doesn't come back. */
export const isConnected$ = ({ engine }: Pick<StoredLog, 'engine'>): Observable<boolean> =>
  concat(
    engine.connected$,
    throwError(() => new Error('its connection was closed')),
  );

/** How long a broker may be away before that's reported, and how long the end of a writer waits for it, in ms. */
export const awayMs = 5_000;
const retryMs = 100;

/** Says what a broker refuses. It leaves out the cause, which may have the arguments of a command. */
export const refusedBy = ({ path }: Pick<StoredLog, 'path'>, action: 'write' | 'read', error: unknown): LogError => {
  if (error instanceof LogError) return error;
  const { message, advice } = refusalIn(error);
  const code = action === 'write' ? 'log-write-failed' : 'log-corrupt';
  return new LogError(code, `Can't ${action} the log ${path}: ${printable(message)}.`, { path, advice });
};

/** Reads what a broker has, or says what it refuses. */
export const asked = async <T>(log: StoredLog, ask: () => Promise<T>): Promise<T> => {
  try {
    return await ask();
  } catch (error) {
    throw refusedBy(log, 'read', error);
  }
};

/** Reports what a broker refuses: at once, or if it's away for 5 s; once, until it works again. */
export class StoreFaults {
  readonly #log: StoredLog;
  readonly #report: (error: LogError) => void;
  #timer: NodeJS.Timeout | undefined;
  #last: unknown;
  #isReported = false;
  /** Why it can't connect, which the failure of a request doesn't tell. */
  #connecting: Subscription | undefined;

  constructor(log: StoredLog, report: (error: LogError) => void) {
    this.#log = log;
    this.#report = report;
  }

  failed(error: unknown): void {
    if (this.#isReported) return;
    const { isAway, engine } = this.#log;
    this.#last = error;
    if (!isAway(error)) return this.#tell();
    this.#timer ??= setTimeout(() => this.#tell(), awayMs);
    this.#connecting ??= engine.failures$
      ?.pipe(filter(({ operation }) => operation === 'connect'))
      .subscribe((failure) => isAway(failure.error) || this.failed(failure.error));
  }

  worked(): void {
    clearTimeout(this.#timer);
    this.#connecting?.unsubscribe();
    [this.#timer, this.#isReported, this.#connecting] = [undefined, false, undefined];
  }

  #tell(): void {
    clearTimeout(this.#timer);
    [this.#timer, this.#isReported] = [undefined, true];
    this.#report(refusedBy(this.#log, 'write', this.#last));
  }
}

/** Repeats a request while the broker is away, until `isOver`. After 5 s a process warning says so. */
export const persisted = async <T>(log: StoredLog, request: () => Promise<T>, isOver: () => boolean): Promise<T> => {
  const faults = new StoreFaults(log, warnOf);
  try {
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (!log.isAway(error) || isOver()) throw refusedBy(log, 'write', error);
        faults.failed(error);
      }
      await delay(retryMs);
    }
  } finally {
    faults.worked();
  }
};

const noData = new Uint8Array();
const askMs = 1_000;

/**
 * Takes a role, unless a process that has it answers. Returns a function that gives it back.
 *
 * @throws LogError with the code `log-write-failed` if the broker refuses the subject
 */
export const takeRole = async (log: StoredLog, role: string): Promise<(() => void) | undefined> => {
  const { engine, name } = log;
  const subject = `rtf.log.${name}.${role}`;
  const refused = (error: unknown): LogError => {
    if (error instanceof LogError) return error;
    const { message, ...others } = refusalIn(error);
    const granting = `Give the user permission to publish and to subscribe to ${subject}.`;
    const advice = isDenied(error) ? granting : others.advice;
    const problem = `The broker refuses the subject ${subject}: ${printable(message)}.`;
    return new LogError('log-write-failed', problem, { path: log.path, advice });
  };
  const ask = async (): Promise<boolean> => {
    try {
      return (await engine.request(subject, noData, askMs)).type === 'reply';
    } catch (error) {
      // No answer: its holder is cut off, and learns that from its next message or commit, which is refused.
      if (log.isAway(error)) return false;
      throw refused(error);
    }
  };
  if (await ask()) return undefined;
  let refusal: LogError | undefined;
  const subscription = engine
    .respond(subject, () => noData)
    .subscribe({ error: (error: unknown) => (refusal ??= refused(error)) });
  // A broker that refuses the subscription says so before it answers. The others wouldn't see who has the role.
  await ask().catch((error: unknown) => (refusal ??= refused(error)));
  if (refusal === undefined) return () => subscription.unsubscribe();
  subscription.unsubscribe();
  throw refusal;
};

export const fencedOff = ({ path }: StoredLog): LogError =>
  new LogError('log-fenced', `Another writer continues the log ${path}.`, { path });
