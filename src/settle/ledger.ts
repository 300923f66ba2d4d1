import { asyncScheduler, catchError, concat, concatMap, defaultIfEmpty, defer, EMPTY, from, map, mergeMap } from 'rxjs';
import { type Observable, type ObservableInput, of, type OperatorFunction, type SchedulerLike, take } from 'rxjs';
import type { Gap, Watermark } from '../protocol/event.js';
import type { Meaning } from '../protocol/failures/meanings.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { createGap } from '../protocol/feed-state.js';
import { aFunction, aScheduler, checkRequired, positiveCount, validated } from '../protocol/validate.js';
import type { LedgerEntry, LedgerStep } from './outcome.js';

/** The options of {@link ledger}. The functions are called once for each block. */
export interface LedgerOptions<B, K> {
  /** Returns the id of a block, such as its hash, compared as by a `Map`. */
  readonly id: (block: B) => unknown;
  /** Returns the id of the block before. */
  readonly parent: (block: B) => unknown;
  /** Returns the number of the block. */
  readonly height: (block: B) => number;
  /** Returns the trades of a block. */
  readonly entries: (block: B) => readonly LedgerEntry<K>[];
  /**
   * Returns the parent of a block. Called when it is missing, up to `depth` times in a row. Without it, a hole makes the
   * outcomes around it `unknown`. It may not hang: the ledger stands still until it answers.
   */
  readonly fetchParent?: ((block: B) => ObservableInput<B | null | undefined>) | undefined;
  /** Returns when you learned a block, in epoch ms; for a recording. @defaultValue the clock, when it arrives */
  readonly at?: ((block: B) => number) | undefined;
  /** How many blocks can be taken back. @defaultValue 64 */
  readonly depth?: number | undefined;
  /** Without `fetchParent`: how many blocks wait for a missing one before it counts as lost. @defaultValue 2 */
  readonly maxHeld?: number | undefined;
  /** The clock. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Turns the blocks of a chain into the steps of a ledger: what each confirms, and what a reorganization takes back.
 *
 * Keeps a tree of the last `depth` blocks and follows the highest, of two equal heights the later. Blocks may be out of
 * order or doubled. Emits one step a block, one for a whole reorganization, and a watermark after them: the time of the
 * ledger is that of its blocks. While a block is missing, nothing is emitted. If `fetchParent` finds it, its step is
 * `late`. If not, a {@link Gap} follows, and a step with what is `doubted`.
 *
 * Errors with the source, and when an option throws; a `fetchParent` that throws or errors has found nothing. Completes
 * with the source. Put `retry` before it, to keep the tree. Memory: the entries of `depth` blocks.
 * ```ts
 * // 3: a block; its parent is 2. 3': another one of that height
 * // source    --1--2--3--3'--4'-------
 * // ledger    --A--B--C--D---E--------   D takes back 3 and confirms 3'
 * ```
 *
 * @param options - see {@link LedgerOptions}
 * @throws TradeFeedError with code `invalid-options`, from the call itself
 * @example
 * ```ts
 * import { from } from 'rxjs';
 * import { ledger } from 'rx-trade-feed/settle';
 *
 * from([
 *   { hash: 'a', parentHash: '-', number: 1, transactions: ['t1'] },
 *   { hash: 'b', parentHash: 'a', number: 2, transactions: ['t2'] },
 *   { hash: 'c', parentHash: 'a', number: 2, transactions: ['t3'] },
 * ])
 *   .pipe(
 *     ledger({
 *       id: (block) => block.hash,
 *       parent: (block) => block.parentHash,
 *       height: (block) => block.number,
 *       entries: (block) => block.transactions.map((key) => ({ key })),
 *     }),
 *   )
 *   .subscribe((step) => {
 *     if (step.type === 'ledger') console.log(step.confirmed, step.reverted); // t1; t2; t3, and t2 is taken back
 *   });
 * ```
 */
export const ledger = <B, K>(options: LedgerOptions<B, K>): OperatorFunction<B, LedgerStep<K> | Gap | Watermark> => {
  const checked = { ...defaults, ...validated<LedgerOptions<B, K>>(options, { ...required, ...optional }) };
  checkRequired(checked, required);
  const { fetchParent, scheduler } = checked;
  return (source) =>
    defer(() => {
      const chain = new Chain<B, K>(checked, () => scheduler.now());
      let isFilling = false;
      const fill$: Observable<LedgerStep<K> | Gap | Watermark> = defer(() => {
        const child = chain.orphan;
        isFilling = child !== undefined && fetchParent !== undefined;
        if (child === undefined || fetchParent === undefined) return EMPTY;
        return defer(() => from(fetchParent(child))).pipe(
          take(1),
          map((parent) => ({ parent, cause: undefined })),
          defaultIfEmpty({ parent: undefined, cause: undefined }),
          catchError((cause: unknown) => of({ parent: undefined, cause })),
          concatMap(({ parent, cause }) => concat(chain.fill(child, parent, cause), fill$)),
        );
      });
      return source.pipe(
        mergeMap((block) =>
          concat(
            chain.receive(block),
            defer(() => (isFilling ? EMPTY : fill$)),
          ),
        ),
      );
    });
};

const defaults = { depth: 64, maxHeld: 2, scheduler: asyncScheduler } as const;

const required = { id: aFunction, parent: aFunction, height: aFunction, entries: aFunction };

const optional = {
  fetchParent: aFunction,
  at: aFunction,
  depth: positiveCount,
  maxHeld: positiveCount,
  scheduler: aScheduler,
};

interface Block<B, K> {
  readonly source: B;
  readonly id: unknown;
  readonly parent: unknown;
  readonly height: number;
  readonly entries: readonly LedgerEntry<K>[];
  readonly isLate: boolean;
}

type Output<K> = LedgerStep<K> | Gap | Watermark;

type Checked<B, K> = LedgerOptions<B, K> & Readonly<Record<'depth' | 'maxHeld', number>>;

/** The tree of the last blocks. It follows the highest, and holds those whose parent is missing. */
class Chain<B, K> {
  readonly #options: Checked<B, K>;
  readonly #clock: () => number;
  readonly #tree = new Map<unknown, Block<B, K>>();
  /** Blocks without a known parent, in the order of arrival. */
  #held: Block<B, K>[] = [];
  #tip: Block<B, K> | undefined;
  /** The height of the lowest block: the chain below it is unknown. */
  #lowest = Infinity;
  #now = -Infinity;
  /** The last watermark: up to then no block is missing. */
  #markedAt = -Infinity;
  #fetched = 0;

  constructor(options: Checked<B, K>, clock: () => number) {
    this.#options = options;
    this.#clock = clock;
  }

  /** The block whose parent is to be fetched. */
  get orphan(): B | undefined {
    const held = new Set(this.#held.map(({ id }) => id));
    return this.#held.find(({ parent }) => !held.has(parent))?.source;
  }

  receive(source: B): readonly Output<K>[] {
    const { at, depth, maxHeld, fetchParent } = this.#options;
    this.#now = Math.max(this.#now, at?.(source) ?? this.#clock());
    const outputs = this.#accept(this.#read(source, false));
    const mostHeld = fetchParent === undefined ? maxHeld : depth;
    // A branch that stays behind: what is followed is certain, what was missing is not.
    const lowest = (this.#tip?.height ?? 0) - mostHeld;
    if (this.#held.some(({ height }) => height <= lowest)) {
      this.#held = this.#held.filter(({ height }) => height > lowest);
      outputs.push(this.#gap(undefined));
    }
    if (this.#held.length > mostHeld) outputs.push(...this.#giveUp(undefined));
    return this.#held.length > 0 ? outputs : [...outputs, this.#mark()];
  }

  /** Receives the parent that was fetched for a block, or what went wrong. */
  fill(child: B, parent: B | null | undefined, cause: unknown): readonly Output<K>[] {
    const { at, id, depth } = this.#options;
    const waiting = this.#held.find(({ source }) => source === child);
    // The parent has arrived on its own.
    if (waiting === undefined) return [];
    if (at === undefined) this.#now = Math.max(this.#now, this.#clock());
    this.#fetched += 1;
    const isRight = parent !== undefined && parent !== null && id(parent) === waiting.parent;
    const outputs = isRight && this.#fetched <= depth ? this.#accept(this.#read(parent, true)) : this.#giveUp(cause);
    if (this.#held.length > 0) return outputs;
    this.#fetched = 0;
    return [...outputs, this.#mark()];
  }

  #read(source: B, isLate: boolean): Block<B, K> {
    const { id, parent, height, entries } = this.#options;
    return {
      source,
      id: id(source),
      parent: parent(source),
      height: height(source),
      entries: entries(source),
      isLate,
    };
  }

  #mark(): Watermark {
    this.#markedAt = this.#now;
    return { type: 'watermark', at: this.#now };
  }

  #accept(block: Block<B, K>): Output<K>[] {
    const { id, parent, height } = block;
    if (this.#tree.has(id) || this.#held.some((held) => held.id === id)) return [];
    if (this.#tip === undefined) return this.#root(block);
    // A block at the end of the tree is not below it, so its parent does not matter.
    if (!this.#tree.has(parent) && height > this.#lowest) {
      this.#held.push(block);
      return [];
    }
    return this.#attach(block);
  }

  #root(block: Block<B, K>): Output<K>[] {
    this.#lowest = block.height;
    return this.#attach(block);
  }

  /** Adds a block to the tree, and the held ones above it. Follows the highest of them. */
  #attach(block: Block<B, K>): Output<K>[] {
    const fillsHole = this.#held.some(({ parent }) => parent === block.id);
    const added = [{ ...block, isLate: block.isLate || fillsHole }];
    for (const each of added) {
      this.#tree.set(each.id, each);
      for (const held of this.#held) if (held.parent === each.id) added.push({ ...held, isLate: true });
      this.#held = this.#held.filter(({ parent }) => parent !== each.id);
    }
    const highest = added.reduce((best, each) => (each.height >= best.height ? each : best));
    return highest.height >= (this.#tip?.height ?? -Infinity) ? this.#follow(highest) : [];
  }

  #follow(tip: Block<B, K>): Output<K>[] {
    const before = this.#tip;
    this.#tip = tip;
    const isNew = new Set(this.#branchOf(tip));
    const old = before === undefined ? [] : this.#branchOf(before);
    const reverted = old.filter((block) => !isNew.has(block));
    const known = new Set(old);
    const added = [...isNew].filter((block) => !known.has(block)).reverse();
    this.#prune(tip.height - this.#options.depth);
    const blocks = before === undefined ? 1 : tip.height - before.height;
    if (reverted.length === 0) return added.map((block) => this.#step([block], 1));
    const step = this.#step(added, blocks);
    return [{ ...step, reverted: reverted.flatMap(({ entries }) => entries) }];
  }

  #step(added: readonly Block<B, K>[], blocks: number): LedgerStep<K> {
    const isLate = added.some((block) => block.isLate);
    return {
      type: 'ledger',
      at: this.#now,
      confirmed: added.flatMap(({ entries }) => entries),
      depth: this.#options.depth,
      ...(blocks !== 1 && { blocks }),
      ...(isLate && { late: true }),
    };
  }

  /** Returns a block and those below it, from the highest. */
  #branchOf(tip: Block<B, K>): readonly Block<B, K>[] {
    const branch: Block<B, K>[] = [];
    for (let block: Block<B, K> | undefined = tip; block !== undefined; block = this.#tree.get(block.parent))
      branch.push(block);
    return branch;
  }

  #prune(lowest: number): void {
    if (lowest <= this.#lowest) return;
    this.#lowest = lowest;
    for (const [id, { height }] of this.#tree) if (height < lowest) this.#tree.delete(id);
  }

  #gap(cause: unknown): Gap {
    const failure = createFailure(blocksMissing, { stage: 'stream', endedAt: this.#markedAt, cause });
    return createGap(this.#markedAt, this.#now, failure);
  }

  /** The blocks between the tree and the held ones can't be had: begins a new tree with the highest held block. */
  #giveUp(cause: unknown): readonly Output<K>[] {
    const tip = this.#tip as Block<B, K>;
    const doubted = this.#branchOf(tip).flatMap(({ entries }) => entries);
    const held = this.#held;
    const highest = held.reduce((best, each) => (each.height >= best.height ? each : best));
    let root = highest;
    for (let next: Block<B, K> | undefined = root; next !== undefined;) {
      root = next;
      const { parent } = root;
      next = held.find(({ id }) => id === parent);
    }
    this.#held = held.filter((block) => block !== root);
    const gap = this.#gap(cause);
    this.#tree.clear();
    this.#tip = undefined;
    this.#fetched = 0;
    const [first, ...more] = this.#root(root) as LedgerStep<K>[];
    this.#held = [];
    const blocks = Math.max(0, root.height - tip.height);
    return [gap, { ...(first as LedgerStep<K>), doubted, gap, blocks }, ...more];
  }
}

const blocksMissing: Meaning = {
  code: 'connection-lost',
  verdict: 'backoff',
  meaning: 'Blocks are missing: the ledger has received a block, but not the one before it.',
  advice: 'Pass `fetchParent` to `ledger`, or see the cause of its failure.',
};
