import { catchError, NEVER, type Observable, startWith, Subject, switchMap, throwError } from 'rxjs';
import { engineTasks } from '../protocol/event-record.js';
import type { EngineOperation, EngineRecovered, EngineRefused } from '../protocol/event.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { printable } from '../protocol/printable.js';
import { clampMs } from '../protocol/validate.js';
import { readKey } from './election/cluster-key.js';
import type { ClusterEngine, EngineFailure, Reply, StoredKey } from './engine.js';
import { timing } from './election/timing.js';

interface Refusal {
  /** On one line, without a full stop at the end. */
  readonly message: string;
  readonly advice: string;
}

/** Describes an error of an engine. Only the advice depends on the text of the message, never what a replica does. */
const describe = (error: unknown): Refusal => {
  const { name = '', message = String(error) } = error instanceof Error ? error : {};
  if (error === undefined) return { message: 'it does not answer', advice: checkEngine };
  const [, advice = checkEngine] = advices.find(([pattern]) => pattern.test(`${name} ${message}`)) ?? [];
  const line = message.replaceAll(/\s+/g, ' ').trim().slice(0, 300).replace(/\.$/, '');
  return { message: line || 'an error without a message', advice };
};

const checkEngine = 'Check that the engine runs, its log, and the network between this replica and the engine.';

/** NATS names its errors; the first word of an error of Redis is its code. */
const advices: readonly (readonly [pattern: RegExp, advice: string])[] = [
  [/JetStreamNotEnabled|jetstream (is )?not enabled/i, 'JetStream is not enabled: start nats-server with -js.'],
  [/\b(WRONGPASS|NOAUTH)\b|Authorization|Authentication/i, 'Check the user and the password of the connection.'],
  [
    /\bNOPERM\b|permission/i,
    'Give the user of this connection the permissions that the guide "Replicas" lists under "Permissions".',
  ],
  [/\bREADONLY\b/, 'Connect to the primary server: this one is a read-only copy of it.'],
  [
    /maximum (bytes|messages) exceeded|insufficient (storage )?resources|no space|\bOOM\b|\bMISCONF\b/i,
    'The store is full: raise its limit (max_bytes of the NATS bucket, maxmemory of Redis), or free space.',
  ],
  [
    /\b(MOVED|CLUSTERDOWN|CROSSSLOT)\b/,
    'Use one primary Redis server, also with Sentinel: Redis Cluster is not supported.',
  ],
  [
    /not a key of this version/,
    'The key is damaged, or of a newer version. If no replica of a newer version uses it, run ' +
      '`npx rx-trade-feed cluster resume`.',
  ],
  [/no answer in|timeout/i, 'Look at the load of the engine and of the replicas, and at the network between them.'],
  [
    /no message of an owner/,
    'Run `npx rx-trade-feed cluster status`: if a replica owns the connection, the engine does not deliver ' +
      'its messages. Nothing else may unsubscribe on the connection of this engine.',
  ],
];

/** Creates the failure for something that the engine refused. */
export const engineRefused = (operation: EngineOperation, error: unknown): TradeFeedError => {
  if (error instanceof TradeFeedError) return error;
  const { message, advice } = describe(error);
  const detail = `cannot ${engineTasks[operation]}: ${printable(message)}`;
  // Without the cause: an error of a client can contain the arguments of its command, for example a password.
  return createFailure({ ...clusterMeanings.engineRefused, advice }, { stage: 'stream', detail });
};

/** Creates the failure for a connection to the engine that was closed for good, for an unknown or a known reason. */
export const engineClosed = (reason?: unknown): TradeFeedError => {
  const detail = reason === undefined ? undefined : printable(describe(reason).message);
  return createFailure(clusterMeanings.engineClosed, { stage: 'stream', detail });
};

/** How long a fault lasts before it is reported, in ms: one answer that is late or lost should not fill a log. */
const graceMs = 1_000;
/** The longest time between two reports of a fault, in ms. */
const maxRepeatMs = 60_000;
/**
 * A fault that was not seen again for this long is over, in ms. An owner publishes four times a second, a standby once.
 * A replica whose claims fail waits up to 30 s before the next one.
 */
const quietMs: Readonly<Record<EngineOperation, number>> = {
  connect: Infinity,
  read: 45_000,
  write: 45_000,
  publish: 5_000,
  subscribe: 10_000,
  request: 5_000,
};

/** Times without "Wall" are monotonic, in ms. */
interface Fault extends Refusal {
  readonly sinceWall: number;
  seenAt: number;
  /** When the next report is due, if the fault was seen often enough since the last one. */
  dueAt: number;
  sightings: number;
  reports: number;
  /** The advice of the reports. Another advice is reported early. */
  readonly advised: string[];
  event: EngineRefused | undefined;
}

/**
 * What the engine of a replica refuses now. Reports a fault that lasts, repeats it with a backoff, and reports the end.
 */
export class EngineFaults {
  readonly #report: (event: EngineRefused | EngineRecovered) => void;
  readonly #faults = new Map<EngineOperation, Fault>();
  #timer: NodeJS.Timeout | undefined;
  #current: EngineRefused | undefined;
  #refusedSince = Infinity;
  #isClosed = false;

  constructor(report: (event: EngineRefused | EngineRecovered) => void) {
    this.#report = report;
  }

  /** The newest fault that was reported and is not over; `undefined` without any. */
  get current(): EngineRefused | undefined {
    return this.#current;
  }

  /**
   * Notes a failure.
   *
   * @param error - `undefined` if nothing is known but the failure
   * @param forMs - for how long it has failed for certain: it is reported at once. Otherwise it is reported if it lasts
   */
  failed(operation: EngineOperation, error: unknown, forMs?: number): void {
    // Without a connection nothing else can work.
    if (operation !== 'connect' && this.#faults.has('connect')) return;
    const now = performance.now();
    const before = this.#faults.get(operation);
    if (operation === 'connect') this.#faults.clear();
    const fault = before ?? firstSeen(forMs);
    if (before === undefined || error !== undefined) Object.assign(fault, describe(error));
    fault.seenAt = now;
    fault.sightings += 1;
    const isNews = fault.reports > 0 && !fault.advised.includes(fault.advice);
    if (isNews) fault.dueAt = Math.min(fault.dueAt, now + graceMs);
    this.#faults.set(operation, fault);
    this.#update();
  }

  worked(operation: EngineOperation): void {
    if (this.#faults.delete(operation)) this.#update();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #update(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const due = this.#reportDue(performance.now());
    const known = [...this.#faults.values()].flatMap(({ event }) => event ?? []);
    this.#current = known.toSorted((one, other) => other.at - one.at)[0];
    this.#refusedSince = Math.min(this.#refusedSince, ...due.map(({ since }) => since));
    const next = Math.min(...[...this.#faults].map((each) => Math.min(reportAt(...each), endOf(...each))));
    const waitMs = Math.max(0, Math.ceil(next - performance.now()));
    if (next !== Infinity) this.#timer = setTimeout(() => this.#update(), clampMs(waitMs));
    due.forEach(this.#report);
    this.#reportRecovery();
  }

  #reportDue(now: number): readonly EngineRefused[] {
    const due: EngineRefused[] = [];
    for (const [operation, fault] of this.#faults) {
      if (endOf(operation, fault) <= now) this.#faults.delete(operation);
      else if (reportAt(operation, fault) <= now) due.push(reported(operation, fault, now));
    }
    return due;
  }

  #reportRecovery(): void {
    if (this.#current !== undefined || this.#refusedSince === Infinity) return;
    const at = Date.now();
    const durationMs = Math.max(0, at - this.#refusedSince);
    this.#refusedSince = Infinity;
    this.#report({ type: 'engine-recovered', at, durationMs });
  }
}

const firstSeen = (forMs: number | undefined): Fault => ({
  message: '',
  advice: '',
  sinceWall: Date.now() - (forMs ?? 0),
  seenAt: 0,
  dueAt: performance.now() + (forMs === undefined ? graceMs : 0),
  sightings: forMs === undefined ? 0 : 1,
  reports: 0,
  advised: [],
  event: undefined,
});

const reported = (operation: EngineOperation, fault: Fault, now: number): EngineRefused => {
  const { message, advice, sinceWall: since } = fault;
  fault.reports += 1;
  fault.dueAt = now + Math.min(graceMs * 2 ** fault.reports, maxRepeatMs);
  fault.sightings = 0;
  fault.advised.push(advice);
  fault.event = { type: 'engine-refused', at: Date.now(), since, operation, message: printable(message), advice };
  return fault.event;
};

const endOf = (operation: EngineOperation, { seenAt }: Fault): number => seenAt + quietMs[operation];

// A lost connection is a state. Any other failure must be seen again before it is reported again, and twice before the
// first report.
const reportAt = (operation: EngineOperation, { dueAt, sightings, reports }: Fault): number =>
  operation === 'connect' || sightings >= (reports === 0 ? 2 : 1) ? dueAt : Infinity;

/** The engine of a replica. Notes what fails and what works, so that no failure is silent. */
export interface WatchedEngine extends ClusterEngine {
  readonly failures$: Observable<EngineFailure>;
  /**
   * Reports what the engine throws, and never throws: the message is lost, and the numbers of the next one tell the
   * followers.
   */
  publish(subject: string, data: Uint8Array): void;
  /** Makes all subscriptions again: messages that must arrive do not. */
  resubscribe(): void;
}

/** Creates a {@link WatchedEngine}. A subscription that the engine refuses errors with `engine-refused`. */
export const watchEngine = (engine: ClusterEngine, faults: EngineFaults): WatchedEngine => {
  const again$ = new Subject<void>();

  const publish = async (subject: string, data: Uint8Array): Promise<void> => {
    try {
      await engine.publish(subject, data);
    } catch (error) {
      faults.failed('publish', error);
    }
  };

  const subscribed = <T>(subscribe: () => Observable<T>): Observable<T> =>
    again$.pipe(
      startWith(undefined),
      switchMap(subscribe),
      catchError((error: unknown) => {
        faults.failed('subscribe', error, 0);
        return throwError(() => engineRefused('subscribe', error));
      }),
    );

  return {
    connected$: engine.connected$,
    failures$: engine.failures$ ?? NEVER,
    read: (key) => called(faults, 'read', () => engine.read(key), unreadableKey),
    compareAndSet: (...args) => called(faults, 'write', () => engine.compareAndSet(...args)),
    maxMessageBytes: () => engine.maxMessageBytes?.(),
    publish: (subject, data) => void publish(subject, data),
    subscribe: (subject) => subscribed(() => engine.subscribe(subject)),
    request: (...args) => requested(faults, engine, ...args),
    respond: (subject, answer) => subscribed(() => engine.respond(subject, answer)),
    resubscribe: () => again$.next(),
  };
};

/** Waits for an access to the store, and notes how it ended. `faultIn`: what is wrong with a result. */
const called = async <T>(
  faults: EngineFaults,
  operation: EngineOperation,
  start: () => Promise<T>,
  faultIn: (result: T) => Error | undefined = () => undefined,
): Promise<T> => {
  const startedAt = performance.now();
  // The election does not wait for an answer that is late.
  const isInTime = (): boolean => performance.now() - startedAt < timing.callMs;
  const noAnswer = (): void => faults.failed(operation, new Error(`no answer in ${timing.callMs} ms`));
  const timer = setTimeout(noAnswer, timing.callMs);
  try {
    const result = await start();
    const fault = faultIn(result);
    if (fault) faults.failed(operation, fault);
    else if (isInTime()) faults.worked(operation);
    return result;
  } catch (error) {
    if (isInTime()) faults.failed(operation, error);
    throw error;
  } finally {
    clearTimeout(timer);
  }
};

const requested = async (
  faults: EngineFaults,
  engine: ClusterEngine,
  ...[subject, data, timeoutMs]: Parameters<ClusterEngine['request']>
): Promise<Reply> => {
  const startedAt = performance.now();
  try {
    const reply = await engine.request(subject, data, timeoutMs);
    faults.worked('request');
    return reply;
  } catch (error) {
    // A rejection at the deadline means that the owner did not answer, which is no failure of the engine.
    if (performance.now() - startedAt < timeoutMs * 0.9) faults.failed('request', error);
    throw error;
  }
};

// A healthy owner writes its key again at once, which is no fault that lasts.
const unreadableKey = (stored: StoredKey | undefined): Error | undefined =>
  stored === undefined || readKey(stored.value) ? undefined : new Error('its value is not a key of this version');
