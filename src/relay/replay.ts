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
  type Observable,
  of,
  repeat,
  Subscription,
  take,
  takeWhile,
  timer,
} from 'rxjs';
import type { Place, StoredLine, StoredRecords } from '../protocol/place.js';
import type { RelayHub } from './hub.js';
import type { PageOutput } from './page-output.js';
import type { RelayClient } from './relay-client.js';
import type { RelayRun } from './relay-run.js';
import { inTurn } from './turns.js';

/** How often, and how many times in a row, it asks a store that doesn't have what the source has emitted. In ms. */
const [lookMs, maxLooks] = [250, 20];
/** How long a page may not read while others wait for its room, in ms. */
const maxPauseMs = 1_000;

/** The replay of a page: nothing happens as long as the memory has what follows. */
export class Replay {
  readonly #client: RelayClient;
  readonly #output: PageOutput;
  readonly #run: RelayRun;
  readonly #hub: RelayHub;
  #running: Subscription | undefined;
  #sentBytes = 0;
  /** Looks into the store since it had something; `undefined` until then. */
  #looks: number | undefined;

  constructor(client: RelayClient, output: PageOutput, run: RelayRun, hub: RelayHub) {
    this.#client = client;
    this.#output = output;
    this.#run = run;
    this.#hub = hub;
  }

  /** Begins, if it's necessary. Calls `done` when the client goes on in the memory. */
  look(done: () => void): void {
    const { store } = this.#run;
    if (this.#running !== undefined || store === undefined || this.#client.storedAfter === undefined) return;
    [this.#looks, this.#sentBytes] = [undefined, 0];
    const read$ = this.#hub.replays.during(this.#read$(store));
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
  #read$(store: StoredLine): Observable<unknown> {
    return defer(() => {
      const closed = new AbortController();
      const { storedAfter, hasStored: isNext } = this.#client;
      const maxBytes = Math.max(1, this.#run.log.bounds.maxReplayBytes - this.#sentBytes);
      const options = { maxBytes, signal: closed.signal, isNext };
      const records = store.stored(storedAfter as Place, options)[Symbol.asyncIterator]();
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
