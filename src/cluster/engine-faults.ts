import { catchError, NEVER, type Observable, startWith, Subject, switchMap, throwError } from 'rxjs';
import { engineTasks } from '../protocol/event-record.js';
import { contextHere, inOwnContext, runIn } from '../operators/items/async-context.js';
import type { EngineOperation, EngineRecovered, EngineRefused } from '../protocol/event.js';
import { clusterMeanings } from '../protocol/failures/classify.js';
import { createFailure, TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { type Refusal, refusalIn } from '../log/refusal.js';
import { printable } from '../protocol/printable.js';
import { clampMs } from '../protocol/validate.js';
import { timing } from './election/timing.js';
import type { ClusterEngine, EngineFailure } from './engine.js';

export const engineRefused = (operation: EngineOperation, error: unknown): TradeFeedError => {
  if (error instanceof TradeFeedError) return error;
  const { message, advice } = refusalIn(error);
  const detail = `can't ${engineTasks[operation]}: ${printable(message)}`;
  // Leaves out the cause: a client's error can contain the arguments of its command, such as a password.
  return createFailure({ ...clusterMeanings.engineRefused, advice }, { stage: 'stream', detail });
};

export const engineClosed = (reason?: unknown): TradeFeedError => {
  const detail = reason === undefined ? undefined : printable(refusalIn(reason).message);
  return createFailure(clusterMeanings.engineClosed, { stage: 'stream', detail });
};

/** A fault of one operation. Times are monotonic, in ms, except that `since` is in epoch ms. */
interface Fault {
  readonly since: number;
  refusal: Refusal;
  seenAt: number;
  /** When it was last reported, or else first seen, and when the next report is due. */
  reportedAt: number;
  dueAt: number;
  /** The last report, and the advice of all: new advice is reported early. */
  event?: EngineRefused;
  readonly advised: string[];
}

/**
 * Tracks what the engine currently refuses. Reports a fault that lasts, repeats it with a backoff, and reports its end.
 */
export class EngineFaults {
  readonly #report: (event: EngineRefused | EngineRecovered) => void;
  readonly #faults = new Map<EngineOperation, Fault>();
  #timer: NodeJS.Timeout | undefined;
  #refusedSince = Infinity;
  #isClosed = false;

  constructor(report: (event: EngineRefused | EngineRecovered) => void) {
    this.#report = report;
  }

  /** The newest reported fault that isn't over. */
  get current(): EngineRefused | undefined {
    const known = [...this.#faults.values()].flatMap(({ event }) => event ?? []);
    return known.toSorted((one, other) => other.at - one.at)[0];
  }

  /**
   * @param error - `undefined` if only the failure is known
   * @param forMs - how long it has failed for certain: it's reported at once. Otherwise it's reported if it lasts
   */
  failed(operation: EngineOperation, error: unknown, forMs?: number): void {
    // Nothing else can work while disconnected.
    if (operation !== 'connect' && this.#faults.has('connect')) return;
    if (operation === 'connect' && !this.#faults.has('connect')) this.#faults.clear();
    const now = performance.now();
    const [reportedAt, dueAt] = forMs === undefined ? [now, now + timing.faultGraceMs] : [-Infinity, now];
    const begun = { since: Date.now() - (forMs ?? 0), refusal: refusalIn(undefined), advised: [] };
    const fault: Fault = this.#faults.get(operation) ?? { ...begun, seenAt: now, reportedAt, dueAt };
    this.#faults.set(operation, fault);
    fault.seenAt = now;
    if (error !== undefined) fault.refusal = refusalIn(error);
    const isNews = fault.event !== undefined && !fault.advised.includes(fault.refusal.advice);
    if (isNews) fault.dueAt = Math.min(fault.dueAt, now + timing.faultGraceMs);
    this.#update();
  }

  worked(operation: EngineOperation): void {
    if (this.#faults.delete(operation)) this.#update();
  }

  /** Awaits an answer, and records the outcome. `faultIn`: what's wrong with an answer. */
  async during<T>(
    operation: EngineOperation,
    start: () => Promise<T>,
    limitMs: number,
    faultIn?: (result: T) => Error | undefined,
  ): Promise<T> {
    const until = performance.now() + limitMs;
    // The election doesn't wait for a late answer.
    const isInTime = (): boolean => performance.now() < until;
    const timer = setTimeout(() => {
      // A silent or missing owner isn't a failure of the engine.
      if (operation !== 'request') this.failed(operation, new Error(`no answer in ${limitMs} ms`));
    }, limitMs);
    try {
      const result = await start();
      const fault = faultIn?.(result);
      if (fault) this.failed(operation, fault);
      else if (isInTime()) this.worked(operation);
      return result;
    } catch (error) {
      if (isInTime()) this.failed(operation, error);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Reports the faults whose time has come, and the end of the last one. */
  #update(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const now = performance.now();
    const due: EngineRefused[] = [];
    let next = Infinity;
    for (const [operation, fault] of this.#faults) {
      const overAt = fault.seenAt + timing.faultOverMs[operation];
      if (overAt <= now) {
        this.#faults.delete(operation);
        continue;
      }
      if (dueAtOf(operation, fault) <= now) due.push(reported(operation, fault, now));
      next = Math.min(next, overAt, dueAtOf(operation, fault));
    }
    if (next !== Infinity) this.#timer = setTimeout(() => this.#update(), clampMs(Math.ceil(next - now)));
    this.#refusedSince = Math.min(this.#refusedSince, ...due.map(({ since }) => since));
    due.forEach(this.#report);
    if (this.current !== undefined || this.#refusedSince === Infinity) return;
    const [at, since] = [Date.now(), this.#refusedSince];
    this.#refusedSince = Infinity;
    this.#report({ type: 'engine-recovered', at, durationMs: Math.max(0, at - since) });
  }
}

/** Returns when the next report is due. A lost connection is a state; any other fault must recur before each report. */
const dueAtOf = (operation: EngineOperation, { seenAt, reportedAt, dueAt }: Fault): number =>
  operation === 'connect' || seenAt > reportedAt ? dueAt : Infinity;

const reported = (operation: EngineOperation, fault: Fault, now: number): EngineRefused => {
  const { since, refusal, advised } = fault;
  const message = printable(refusal.message);
  advised.push(refusal.advice);
  fault.reportedAt = now;
  fault.dueAt = now + Math.min(timing.faultGraceMs * 2 ** advised.length, timing.maxFaultRepeatMs);
  fault.event = { type: 'engine-refused', at: Date.now(), since, operation, message, advice: refusal.advice };
  return fault.event;
};

/** The messages of a replica's engine. Records what fails, so that no failure is silent. */
export interface WatchedEngine extends Omit<ClusterEngine, 'read' | 'compareAndSet' | 'request'> {
  readonly failures$: Observable<EngineFailure>;
  /** Never throws: the message is lost, and followers see it by the numbers of the next one. */
  publish(subject: string, data: Uint8Array): void;
  /** Renews all subscriptions, because messages that must arrive don't. */
  resubscribe(): void;
}

/** Wraps an engine. Subscriptions that it refuses error with `engine-refused`. */
export const watchEngine = (engine: ClusterEngine, faults: EngineFaults): WatchedEngine => {
  const again$ = new Subject<void>();

  const publish = async (...message: Parameters<ClusterEngine['publish']>): Promise<void> => {
    try {
      await engine.publish(...message);
    } catch (error) {
      faults.failed('publish', error);
    }
  };

  const subscribed = <T>(subscribe: () => Observable<T>): Observable<T> =>
    again$.pipe(
      startWith(undefined),
      switchMap(subscribe),
      inOwnContext(),
      catchError((error: unknown) => {
        faults.failed('subscribe', error, 0);
        return throwError(() => engineRefused('subscribe', error));
      }),
    );

  return {
    connected$: engine.connected$.pipe(inOwnContext()),
    failures$: (engine.failures$ ?? NEVER).pipe(inOwnContext()),
    ...(engine.line && { line: engine.line.bind(engine) }),
    maxMessageBytes: () => engine.maxMessageBytes?.(),
    publish: (...message) => void publish(...message),
    subscribe: (subject) => subscribed(() => engine.subscribe(subject)),
    respond: (subject, answer) => {
      const home = contextHere();
      return subscribed(() => engine.respond(subject, (data) => runIn(home, () => answer(data))));
    },
    resubscribe: () => again$.next(),
  };
};
