import {
  concat,
  defer,
  EMPTY,
  expand,
  merge,
  Observable,
  of,
  Subject,
  type Subscriber,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Block } from './block.js';
import type { LiveRun } from './feeds.js';
import type { RelayHub } from './hub.js';
import { PageOutput } from './page-output.js';
import type { LivePage, Pages } from './pages.js';
import { RelayClient } from './relay-client.js';
import type { RelayMessage } from './relay-message.js';
import type { RelayReceiver } from './relay-options.js';
import { Replay } from './replay.js';
import type { Slot } from './slots.js';
import { inTurn, laneFor } from './turns.js';

/** A page that hasn't read for this many heartbeats is stuck. */
const maxSilentBeats = 4;

/** Time a page gets to read the remaining events of an ending stream, in ms: between reads, and in total. */
const lastRead = { maxPauseMs: 500, maxMs: 5_000 };

/**
 * Sends a client its messages. They bypass the operators that time them, and go straight to `subscriber` or the
 * response.
 *
 * Completes the subscriber after the last message of the run. Completes when the client is stuck, or when the relay
 * ends the stream: the client then first receives the events that are due, if it still reads, and `connect-again`.
 */
export const sendTo = (
  subscriber: Subscriber<RelayMessage>,
  { run, pages, kept$ }: LiveRun,
  hub: RelayHub,
  slot: Slot,
  { lastEventId, response, sinceMs }: Pick<RelayReceiver, 'lastEventId' | 'response' | 'sinceMs'>,
): Observable<unknown> => {
  const stream = slot.admitted?.stream;
  const output = new PageOutput(subscriber, response, stream, hub.home);
  const client = (slot.client = new RelayClient(run, hub, { lastEventId, sinceMs }, stream));
  const page = new Page(client, output, pages, hub, new Replay(client, output, run, hub));
  hub.report({ type: 'client-joined', client: client.number, joined: client.joined });
  const live$ = new Observable<never>((live) => {
    live.add(() => page.close());
    page.send();
    // A client that already has the last message must not subscribe to the source.
    if (output.isOver) return;
    live.add(pages.add(page));
    live.add(kept$.subscribe());
    live.add(output.drained$.subscribe(() => page.drained()));
  });
  return concat(
    live$.pipe(takeUntil(merge(slot.ended$, hub.tooOld$).pipe(inTurn(hub.turns, 'live')))),
    page.lastSends$(),
    defer(() => {
      output.send(client.connectAgain(slot.endReason ?? 'sessionEnded'));
      return EMPTY;
    }),
  ).pipe(takeUntil(page.stuck$));
};

/**
 * A client that's connected. Once it has every event, it's live: it receives the same blocks as all other live pages.
 * Until then, and after it was too slow for a block, its {@link RelayClient} says what comes next.
 */
class Page implements LivePage {
  /** Emits when the client hasn't read for so long that it's disconnected. */
  readonly stuck$ = new Subject<void>();
  readonly #client: RelayClient;
  readonly #output: PageOutput;
  readonly #pages: Pages;
  readonly #hub: RelayHub;
  readonly #replay: Replay;
  /** The offset at which its next block begins; -1 while it isn't live. */
  #next = -1;
  #unreadBeats = 0;

  constructor(client: RelayClient, output: PageOutput, pages: Pages, hub: RelayHub, replay: Replay) {
    this.#client = client;
    this.#output = output;
    this.#pages = pages;
    this.#hub = hub;
    this.#replay = replay;
  }

  receive(block: Block): boolean {
    if (block.from !== this.#next || this.#output.isFull || !this.#client.receive(block)) return false;
    this.#next = block.end.offset;
    this.#output.write(block);
    return true;
  }

  catchUp(): void {
    if (!this.#output.isFull) this.#hub.turns.run(this.send, laneFor(this.#client.dueBytes));
  }

  /** Sends what's due, as far as a turn allows. The rest follows in later turns. */
  readonly send = (): void => {
    this.#sendOnce();
    if (this.#hasMore && !this.#output.isFull) this.#sendLater();
    this.#replay.look(this.send);
  };

  close(): void {
    this.#hub.turns.drop(this.send);
    this.#replay.close();
  }

  /** A slow client's response may be full at each heartbeat and still drain in between. */
  drained(): void {
    this.#unreadBeats = 0;
    // While there are many clients, every response drains after every block. In a replay it drains at once, for as long
    // as the kernel takes it.
    if (this.#next !== this.#pages.next && this.#client.isDue) this.#sendLater();
  }

  sendWatermark(): void {
    const message = this.#output.isFull ? undefined : this.#client.watermark();
    if (message !== undefined) this.#output.send(message);
  }

  beat(): void {
    if (this.#output.isFull) this.#unreadBeats += 1;
    else {
      this.#unreadBeats = 0;
      this.#output.send(this.#client.heartbeat());
    }
    if (this.#unreadBeats < maxSilentBeats) return;
    this.#hub.report({ type: 'client-stuck', client: this.#client.number });
    this.#output.destroy();
    this.stuck$.next();
  }

  /** Sends the rest in turns, for as long as the client reads. */
  lastSends$(): Observable<unknown> {
    const { turns, scheduler } = this.#hub;
    const next$ = (): Observable<unknown> => {
      const read$ = this.#output.drained$.pipe(takeUntil(timer(lastRead.maxPauseMs, scheduler)));
      if (this.#output.isFull) return read$.pipe(take(1), inTurn(turns, 'replay'));
      return this.#hasMore ? of(undefined).pipe(inTurn(turns, 'replay')) : EMPTY;
    };
    const send = () => this.#sendOnce();
    return of(undefined).pipe(
      tap(send),
      expand(() => next$().pipe(tap(send))),
      takeUntil(timer(lastRead.maxMs, scheduler)),
    );
  }

  get #hasMore(): boolean {
    return !this.#output.isOver && this.#client.isDue;
  }

  #sendLater(): void {
    this.#hub.turns.later(this.send, laneFor(this.#client.dueBytes));
  }

  #sendOnce(): void {
    const { turns } = this.#hub;
    turns.wrote(this.#client.send(this.#output, turns.clientBytes));
    this.#next = this.#client.isLive ? this.#client.offset : -1;
  }
}
