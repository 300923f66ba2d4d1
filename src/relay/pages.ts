import { Subscription } from 'rxjs';
import { runIn } from '../operators/items/async-context.js';
import type { Block, Reached } from './block.js';
import type { RelayHub } from './hub.js';
import { nothing, type RelayRun } from './relay-run.js';
import type { Turns } from './turns.js';

// In: the pages of a run, new events, and the ticks of watermarks and heartbeats.
// Out: a block for all pages that have the one before it. The others catch up by themselves (`Page.catchUp`).
// Never: work for each page and event. A page that's live costs a comparison and a write.

/** A watermark that's older by less than this needs no update while events arrive, in ms: each batch has one. */
const freshMs = 125;

/** Returns whether a page that has one watermark needs the next one. `hasSent`: whether events arrive. */
export const isMarkDue = (next: number, has: number, hasSent: boolean): boolean =>
  next > has && !(hasSent && next < has + freshMs);

/** A page, as the passes over all of them see it. */
export interface LivePage {
  /** Writes a block, if the page is live, has what comes before it, and reads. Returns whether it is so. */
  receive(block: Block): boolean;
  /** Sends what's due, once a turn has room for it. */
  catchUp(): void;
  sendWatermark(): void;
  beat(): void;
}

/** The pages of a run, and what the live ones have received. */
export class Pages {
  readonly #run: RelayRun;
  readonly #hub: RelayHub;
  readonly #pages = new Set<LivePage>();
  readonly #batches: Pass;
  readonly #watermarks: Pass;
  readonly #heartbeats: Pass;
  #ticks: Subscription | undefined;
  #live: Reached | undefined;
  /** Whether a block was sent since the last tick of the watermarks. */
  #hasSentBlock = false;

  constructor(run: RelayRun, hub: RelayHub) {
    this.#run = run;
    this.#hub = hub;
    const pass = (next: () => Block | undefined, serve: (page: LivePage) => void): Pass =>
      new Pass(hub.turns, this.#pages, next, serve);
    this.#batches = pass(
      () => this.#nextBlock(),
      (page) => page.catchUp(),
    );
    this.#watermarks = pass(
      () => this.#nextWatermark(),
      (page) => page.sendWatermark(),
    );
    this.#heartbeats = pass(
      () => undefined,
      (page) => page.beat(),
    );
  }

  /** The offset up to which live pages have received everything, once the pass has reached them. */
  get next(): number | undefined {
    return this.#live?.end.offset;
  }

  /** Sends a page its messages from now on. Returns a function that ends it. */
  add(page: LivePage): () => void {
    this.#pages.add(page);
    this.#ticks ??= runIn(this.#hub.home, () => this.#startTicks());
    return () => {
      this.#pages.delete(page);
      if (this.#pages.size > 0) return;
      this.#ticks?.unsubscribe();
      this.#ticks = this.#live = undefined;
    };
  }

  /** Sends what's new since the last call: events, or the end of the run. */
  send(): void {
    if (this.#pages.size > 0) this.#batches.start();
  }

  #startTicks(): Subscription {
    const { heartbeats$, watermarks$ } = this.#hub;
    const ticks = heartbeats$.subscribe(() => this.#heartbeats.start());
    ticks.add(watermarks$.subscribe(() => this.#watermarks.start()));
    return ticks;
  }

  /** Returns what the live pages receive next; `undefined` if there are none, or if each needs another message. */
  #nextBlock(): Block | undefined {
    const { log, ended } = this.#run;
    const { newest } = log;
    const live = this.#live ?? { ...nothing, end: newest };
    const block = ended === undefined && log.has(live.end) ? this.#run.seal(live.end, live) : undefined;
    this.#live = block ?? { end: newest, watermark: live.watermark, reached: live.reached };
    this.#hasSentBlock ||= block !== undefined;
    // A block has a limited size.
    if (this.#live.end.offset < newest.offset) this.#batches.repeat();
    return block;
  }

  #nextWatermark(): Block | undefined {
    const hasSentBlock = this.#hasSentBlock;
    this.#hasSentBlock = false;
    const { log } = this.#run;
    const live = this.#live;
    if (live?.end.offset !== log.newest.offset) return undefined;
    const watermark = log.watermarkAt(live.end);
    if (!isMarkDue(watermark, live.watermark, hasSentBlock)) return undefined;
    const block = this.#run.blockOf(live.end, { end: live.end, watermark, fields: [] }, live);
    this.#live = block;
    return block;
  }
}

/** What a write costs on top of its bytes. */
const writeBytes = 16 * 1024;

/** After how many bytes a pass looks whether its turn is over. */
const lookBytes = 128 * 1024;

/** Serves all pages, in as many turns as it takes. */
class Pass {
  readonly #turns: Turns;
  readonly #pages: ReadonlySet<LivePage>;
  readonly #next: () => Block | undefined;
  readonly #serve: (page: LivePage) => void;
  /** The pages that aren't served yet. A page that joins meanwhile comes last. */
  #rest: IterableIterator<LivePage> | undefined;
  #left = 0;
  #block: Block | undefined;
  /** Whether another pass follows. Until then events gather, so a busy server sends fewer and larger blocks. */
  #isDue = false;

  /**
   * @param next - returns what live pages receive
   * @param serve - serves a page that can't receive it
   */
  constructor(
    turns: Turns,
    pages: ReadonlySet<LivePage>,
    next: () => Block | undefined,
    serve: (page: LivePage) => void,
  ) {
    this.#turns = turns;
    this.#pages = pages;
    this.#next = next;
    this.#serve = serve;
  }

  start(): void {
    if (this.#rest === undefined) this.#turns.run(this.#work, 'live');
    else this.repeat();
  }

  repeat(): void {
    this.#isDue = true;
  }

  readonly #work = (): void => {
    if (this.#rest === undefined) {
      this.#rest = this.#pages.values();
      this.#left = this.#pages.size;
      this.#block = this.#next();
    }
    if (!this.#serveSome(this.#rest, this.#block)) return this.#turns.later(this.#work, 'live');
    this.#rest = this.#block = undefined;
    if (!this.#isDue) return;
    this.#isDue = false;
    this.#turns.later(this.#work, 'late');
  };

  /** Returns whether all are served. Otherwise the turn is over. */
  #serveSome(pages: Iterable<LivePage>, block: Block | undefined): boolean {
    const cost = writeBytes + (block?.bytes.length ?? 0);
    let written = 0;
    for (const page of pages) {
      if (block === undefined || !page.receive(block)) this.#serve(page);
      this.#left -= 1;
      written += cost;
      // A look at the clock for each page would cost more than a few pages that come late.
      if (written < lookBytes || this.#left === 0) continue;
      this.#turns.wrote(written);
      written = 0;
      if (this.#turns.isOver) return false;
    }
    this.#turns.wrote(written);
    return true;
  }
}
