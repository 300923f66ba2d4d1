// Sends a page what the memory of the relay no longer has, from the store of the source's line.
//
// In: a client that continues in the store, and the store's records. Out: messages, while the response takes them.
// Never: more than `maxReplays` reads at once, a read while the response is full, or two parts of a page in one turn.
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  finalize,
  map,
  merge,
  Observable,
  of,
  repeat,
  type SchedulerLike,
  Subscription,
  take,
  takeWhile,
  timer,
} from 'rxjs';
import type { Gap, LifecycleEvent } from '../protocol/event.js';
import { writeEventLine } from '../protocol/event-line.js';
import { eventsNotBefore } from '../protocol/feed-state.js';
import type { Place, StoredLine, StoredRecords } from '../protocol/place.js';
import type { PageOutput } from './page-output.js';
import { publicEvent } from './public-json.js';
import { dataFields } from './relay-message.js';
import { inTurn, type Turns } from './turns.js';

/** Records of a store as a message. */
export interface StoredPart {
  readonly fields: readonly Buffer[];
  readonly bytes: number;
  /** The type of the last event that says whether the feed is open. */
  readonly status: LifecycleEvent['type'] | undefined;
  /** The gap in place of what exceeds `maxReplayBytes`. */
  readonly cut: Gap | undefined;
  readonly end: Place;
}

/** @param reached - the time that the client has reached: it receives no earlier event */
export const storedPart = ({ parts, end }: StoredRecords, reached: number): StoredPart => {
  const isEvent = (part: Uint8Array | LifecycleEvent): part is LifecycleEvent => !(part instanceof Uint8Array);
  const events = parts.filter(isEvent);
  const fields = parts.map((part) => (isEvent(part) ? eventFields(part, reached) : viewOf(part)));
  return {
    fields,
    bytes: fields.reduce((sum, { length }) => sum + length, 0),
    status: events.findLast(({ type }) => type !== 'gap')?.type,
    cut: events.find((event): event is Gap => event.type === 'gap' && event.failure.code === 'relay-behind'),
    // After damage in a log, its frames are unknown. Then no later place has so many that they could be subtracted.
    end: Number.isNaN(end.frames) ? { ...end, frames: Number.MAX_SAFE_INTEGER } : end,
  };
};

const eventFields = (event: LifecycleEvent, reached: number): Buffer => {
  // The clients reconnect, so for them the feed doesn't stop.
  const own: LifecycleEvent = event.type === 'stopped' ? { ...event, type: 'disconnected' } : event;
  return Buffer.from(
    eventsNotBefore([own], reached)
      .map((each) => dataFields(writeEventLine(publicEvent(each))))
      .join(''),
  );
};

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength);

/** Lets so many replays run at once. The others wait, and the newest goes first: an old one's page may have gone. */
export class ReplaySlots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor({ maxReplays }: { readonly maxReplays: number }) {
    this.#free = maxReplays;
  }

  get areAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Subscribes to a source when there's room. */
  during<T>(source: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      const start = (): void => {
        this.#free -= 1;
        this.#waiting.delete(start);
        subscriber.add(() => this.#release());
        subscriber.add(source.subscribe(subscriber));
      };
      if (this.#free > 0) return start();
      this.#waiting.add(start);
      subscriber.add(() => this.#waiting.delete(start));
    });
  }

  #release(): void {
    this.#free += 1;
    [...this.#waiting].at(-1)?.();
  }
}

/** What a replay uses of its relay. */
interface ReplayHub {
  readonly scheduler: SchedulerLike;
  readonly turns: Turns;
  readonly replays: ReplaySlots;
  readonly report: (event: {
    readonly type: 'replay-failed';
    readonly client: number;
    readonly error: unknown;
  }) => void;
}

/** What a replay uses of the run of a relay. */
interface ReplayRun {
  readonly stored: StoredLine['stored'] | undefined;
  readonly maxReplayBytes: number;
}

/** A client that may continue in the store. */
interface StoredClient {
  readonly number: number;
  readonly storedAfter: Place | undefined;
  readonly hasStored: boolean;
  sendStored(records: StoredRecords, output: PageOutput): number;
  waitForSource(): boolean;
  leaveStore(output: PageOutput): void;
}

/** How often, and how many times in a row, it asks a store that doesn't have what the source has emitted. In ms. */
const [lookMs, maxLooks] = [250, 20];
/** How long a page may not read while others wait for its room, in ms. */
const maxPauseMs = 1_000;

/** The replay of a page: nothing happens as long as the memory has what follows. */
export class Replay {
  readonly #client: StoredClient;
  readonly #output: PageOutput;
  readonly #run: ReplayRun;
  readonly #hub: ReplayHub;
  #running: Subscription | undefined;
  #sentBytes = 0;
  /** Looks into the store since it had something; `undefined` until then. */
  #looks: number | undefined;

  constructor(client: StoredClient, output: PageOutput, run: ReplayRun, hub: ReplayHub) {
    this.#client = client;
    this.#output = output;
    this.#run = run;
    this.#hub = hub;
  }

  /** Begins, if it's necessary. Calls `done` when the client goes on in the memory. */
  look(done: () => void): void {
    const { stored } = this.#run;
    if (this.#running !== undefined || stored === undefined || this.#client.storedAfter === undefined) return;
    [this.#looks, this.#sentBytes] = [undefined, 0];
    const read$ = this.#hub.replays.during(this.#read$(stored));
    const complete = (): void => {
      this.#running = undefined;
      done();
    };
    this.#running = new Subscription();
    this.#running.add(read$.pipe(repeat({ delay: () => this.#again$() })).subscribe({ complete }));
  }

  close(): void {
    this.#running?.unsubscribe();
  }

  /** Reads the store once, up to its end or to what the memory has. */
  #read$(stored: StoredLine['stored']): Observable<unknown> {
    return defer(() => {
      const closed = new AbortController();
      const { storedAfter, hasStored: isNext } = this.#client;
      const maxBytes = Math.max(1, this.#run.maxReplayBytes - this.#sentBytes);
      const options = { maxBytes, signal: closed.signal, isNext };
      const records = stored(storedAfter as Place, options)[Symbol.asyncIterator]();
      return defer(() => records.next()).pipe(
        concatMap((next) => this.#ready$().pipe(map((isReady) => isReady && this.#send(next)))),
        repeat(),
        takeWhile((isMore) => isMore),
        finalize(() => {
          closed.abort();
          // Whoever needed the read has its error already.
          records.return?.().catch(() => undefined);
        }),
      );
    }).pipe(
      catchError((error: unknown) => {
        this.#hub.report({ type: 'replay-failed', client: this.#client.number, error });
        this.#client.leaveStore(this.#output);
        return EMPTY;
      }),
    );
  }

  /** Returns whether more of the store is needed. */
  #send(next: IteratorResult<StoredRecords, unknown>): boolean {
    if (next.done === true) return false;
    const bytes = this.#client.sendStored(next.value, this.#output);
    this.#looks = 0;
    this.#sentBytes += bytes;
    this.#hub.turns.wrote(bytes);
    return this.#client.storedAfter !== undefined;
  }

  /** Emits in a turn when the response takes more; `false` if others wait, and this page hasn't read for too long. */
  #ready$(): Observable<boolean> {
    const { replays, turns, scheduler } = this.#hub;
    const pause$ = timer(maxPauseMs, maxPauseMs, scheduler).pipe(
      filter(() => replays.areAwaited),
      map(() => false),
    );
    const drained$ = this.#output.drained$.pipe(map(() => true));
    const isReady$ = this.#output.isFull ? merge(drained$, pause$).pipe(take(1)) : of(true);
    return isReady$.pipe(inTurn(turns, 'replay'));
  }

  /** Emits when to read again. Completes if the client goes on in the memory. */
  #again$(): Observable<unknown> {
    const { isFull, drained$ } = this.#output;
    if (this.#client.storedAfter === undefined || this.#client.waitForSource()) return EMPTY;
    if (isFull) return drained$.pipe(take(1));
    // It may lag the source. One that has nothing may not exist.
    const looks = (this.#looks = (this.#looks ?? maxLooks) + 1);
    if (looks <= maxLooks) return timer(looks === 1 ? 0 : lookMs, this.#hub.scheduler);
    this.#client.leaveStore(this.#output);
    return EMPTY;
  }
}
