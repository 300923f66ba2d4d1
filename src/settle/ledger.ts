import { asyncScheduler, concat, concatMap, defer, EMPTY, materialize, mergeMap, type Observable } from 'rxjs';
import { type ObservableInput, type OperatorFunction, type SchedulerLike, take } from 'rxjs';
import type { Gap, Watermark } from '../protocol/event.js';
import type { Meaning } from '../protocol/failures/meanings.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import { createGap } from '../protocol/feed-state.js';
import { aFunction, aScheduler, checkRequired, positiveCount, validated } from '../protocol/validate.js';
import type { LedgerEntry, LedgerStep } from './outcome.js';

/** The options of {@link ledger}. The functions are called once for each block. */
export interface LedgerOptions<B, K> {
  /** Returns the id of a block, such as its hash. Ids are compared as the keys of a `Map`. */
  readonly id: (block: B) => unknown;
  /** Returns the id of the block before. */
  readonly parent: (block: B) => unknown;
  /** Returns the number of the block. */
  readonly height: (block: B) => number;
  /** Returns the trades of a block. */
  readonly entries: (block: B) => readonly LedgerEntry<K>[];
  /**
   * Returns the parent of a block. Called when the parent is missing, up to `depth` times in a row. If you leave it
   * out, a hole makes the outcomes around it `unknown`. Don't let it hang: the ledger stands still until it answers.
   */
  readonly fetchParent?: ((block: B) => ObservableInput<B | null | undefined>) | undefined;
  /** Returns when you learned of a block, in epoch ms, for recordings. @defaultValue the clock, when it arrives */
  readonly at?: ((block: B) => number) | undefined;
  /** How many blocks a reorganization can take back. @defaultValue 64 */
  readonly depth?: number | undefined;
  /** If there's no `fetchParent`: how many blocks wait for a missing one before it counts as lost. @defaultValue 2 */
  readonly maxHeld?: number | undefined;
  /** The clock. @defaultValue `asyncScheduler` */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Turns the blocks of a chain into the steps of a ledger: what each confirms, and what a reorganization takes back.
 *
 * Keeps a tree of the last `depth` blocks and follows the highest one, or the later of two with the same height. Blocks
 * may come out of order or twice. Emits one step per block, one for a whole reorganization, and a watermark after them,
 * because the ledger goes by the time of its blocks. While a block is missing, it emits nothing. If `fetchParent` finds
 * the block, its step is `late`. If not, it emits a {@link Gap} and a step with the `doubted` trades.
 *
 * Errors with the source, and when one of the functions throws, except `fetchParent`: that counts as not found.
 * Completes with the source. Put `retry` before it, so that it keeps the tree. Memory: the entries of `depth` blocks.
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
  const { fetchParent } = checked;
  return (source) =>
    defer(() => {
      const chain = new Chain<B, K>(checked);
      let isFilling = false;
      const fill$: Observable<Output<K>> = defer(() => {
        const child = isFilling ? undefined : chain.orphan;
        if (child === undefined || fetchParent === undefined) return EMPTY;
        isFilling = true;
        return defer(() => fetchParent(child)).pipe(
          materialize(),
          take(1),
          concatMap(({ value, error }) => {
            isFilling = false;
            return concat(chain.fill(child, value, error), fill$);
          }),
        );
      });
      return source.pipe(mergeMap((block) => concat(chain.receive(block), fill$)));
    });
};

const defaults = { depth: 64, maxHeld: 2, scheduler: asyncScheduler as SchedulerLike };
const required = { id: aFunction, parent: aFunction, height: aFunction, entries: aFunction };
const counts = { depth: positiveCount, maxHeld: positiveCount };
const optional = { ...counts, fetchParent: aFunction, at: aFunction, scheduler: aScheduler };

type Output<K> = LedgerStep<K> | Gap | Watermark;

interface Block<B, K> {
  readonly source: B;
  readonly id: unknown;
  readonly parent: unknown;
  readonly height: number;
  readonly entries: readonly LedgerEntry<K>[];
  isLate: boolean;
}

type Blocks<B, K> = readonly Block<B, K>[];

/** The tree of the last blocks. It follows the highest one, and holds those whose parent is missing. */
class Chain<B, K> {
  readonly #options: LedgerOptions<B, K> & Readonly<typeof defaults>;
  readonly #tree = new Map<unknown, Block<B, K>>();
  /** Blocks without a known parent, in the order of arrival. */
  #held: Blocks<B, K> = [];
  #tip: Block<B, K> | undefined;
  /** The height of the lowest block. The chain below it is unknown. */
  #lowest = Infinity;
  #now = -Infinity;
  /** The last watermark: up to then no block is missing. */
  #markedAt = -Infinity;
  #fetched = 0;

  constructor(options: LedgerOptions<B, K> & Readonly<typeof defaults>) {
    this.#options = options;
  }

  /** The block whose parent is to be fetched. */
  get orphan(): B | undefined {
    return this.#held.find(({ parent }) => !this.#held.some(({ id }) => id === parent))?.source;
  }

  receive(source: B): readonly Output<K>[] {
    const { at, scheduler, depth, maxHeld, fetchParent } = this.#options;
    this.#now = Math.max(this.#now, at?.(source) ?? scheduler.now());
    const outputs = this.#accept(source, false);
    const mostHeld = fetchParent === undefined ? maxHeld : depth;
    // A branch that stays behind: what is followed is certain, what was missing is not.
    const ahead = this.#held.filter(({ height }) => height > (this.#tip?.height ?? 0) - mostHeld);
    if (ahead.length < this.#held.length) outputs.push(this.#gap(undefined));
    this.#held = ahead;
    return this.#marked(ahead.length > mostHeld ? [...outputs, ...this.#giveUp(undefined)] : outputs);
  }

  /** Receives the parent that was fetched for a block, or what went wrong. */
  fill(child: B, parent: B | null | undefined, cause: unknown): readonly Output<K>[] {
    const { at, id, scheduler, depth } = this.#options;
    const waiting = this.#held.find(({ source }) => source === child);
    // The parent has arrived on its own.
    if (waiting === undefined) return [];
    if (at === undefined) this.#now = Math.max(this.#now, scheduler.now());
    this.#fetched += 1;
    const isRight = parent !== undefined && parent !== null && id(parent) === waiting.parent;
    return this.#marked(isRight && this.#fetched <= depth ? this.#accept(parent, true) : this.#giveUp(cause));
  }

  /** Adds a watermark if no block is missing. */
  #marked(outputs: readonly Output<K>[]): readonly Output<K>[] {
    if (this.#held.length > 0) return outputs;
    this.#fetched = 0;
    this.#markedAt = this.#now;
    return [...outputs, { type: 'watermark', at: this.#now }];
  }

  #accept(source: B, isLate: boolean): Output<K>[] {
    const { id: idOf, parent: parentOf, height: heightOf, entries } = this.#options;
    const [id, parent, height] = [idOf(source), parentOf(source), heightOf(source)];
    if (this.#tree.has(id) || this.#held.some((held) => held.id === id)) return [];
    const block = { source, id, parent, height, entries: entries(source), isLate };
    if (this.#tip === undefined) this.#lowest = height;
    // A block at the end of the tree is not below it, so its parent does not matter.
    if (height <= this.#lowest || this.#tree.has(parent)) return this.#attach(block);
    this.#held = [...this.#held, block];
    return [];
  }

  /** Adds a block to the tree, and the held ones above it. Follows the highest of them. */
  #attach(block: Block<B, K>): LedgerStep<K>[] {
    const added = [block];
    for (const { id } of added) added.push(...this.#held.filter(({ parent }) => parent === id));
    this.#held = this.#held.filter((held) => !added.includes(held));
    for (const each of added) {
      this.#tree.set(each.id, each);
      // It fills a hole, or came after one.
      each.isLate ||= added.length > 1;
    }
    const tip = highestOf(added);
    return tip.height >= (this.#tip?.height ?? -Infinity) ? this.#follow(tip) : [];
  }

  #follow(tip: Block<B, K>): LedgerStep<K>[] {
    const [before, after] = [this.#branchOf(this.#tip), this.#branchOf(tip)];
    const added = [...after].filter((block) => !before.has(block)).reverse();
    const reverted = [...before].filter((block) => !after.has(block));
    const blocks = tip.height - (this.#tip?.height ?? tip.height - 1);
    this.#tip = tip;
    this.#lowest = Math.max(this.#lowest, tip.height - this.#options.depth);
    for (const [id, { height }] of this.#tree) if (height < this.#lowest) this.#tree.delete(id);
    if (reverted.length === 0) return added.map((block) => this.#step([block]));
    return [{ ...this.#step(added), reverted: entriesOf(reverted), ...(blocks !== 1 && { blocks }) }];
  }

  #step(added: Blocks<B, K>): LedgerStep<K> {
    const isLate = added.some(({ isLate }) => isLate);
    const step = { type: 'ledger', at: this.#now, confirmed: entriesOf(added), depth: this.#options.depth } as const;
    return isLate ? { ...step, late: true } : step;
  }

  /** Returns a block and those below it, from the highest. */
  #branchOf(tip: Block<B, K> | undefined): ReadonlySet<Block<B, K>> {
    const branch = new Set<Block<B, K>>();
    for (let block = tip; block !== undefined; block = this.#tree.get(block.parent)) branch.add(block);
    return branch;
  }

  #gap(cause: unknown): Gap {
    const failure = createFailure(blocksMissing, { stage: 'stream', endedAt: this.#markedAt, cause });
    return createGap(this.#markedAt, this.#now, failure);
  }

  /** The blocks between the tree and the held ones can't be had: begins a new tree with the highest held block. */
  #giveUp(cause: unknown): readonly Output<K>[] {
    const doubted = entriesOf([...this.#branchOf(this.#tip)]);
    const gap = this.#gap(cause);
    let root = highestOf(this.#held);
    for (let below: typeof root | undefined = root; below !== undefined;) {
      root = below;
      const { parent } = root;
      below = this.#held.find(({ id }) => id === parent);
    }
    const blocks = Math.max(0, root.height - (this.#tip?.height ?? 0));
    this.#tree.clear();
    this.#tip = undefined;
    this.#lowest = root.height;
    this.#held = this.#held.filter((block) => block !== root);
    const [first, ...more] = this.#attach(root) as [LedgerStep<K>];
    this.#held = [];
    return [gap, { ...first, doubted, gap, blocks }, ...more];
  }
}

const entriesOf = <B, K>(blocks: Blocks<B, K>): readonly LedgerEntry<K>[] => blocks.flatMap(({ entries }) => entries);

/** Returns the highest block, of two equal heights the later. */
const highestOf = <B, K>(blocks: Blocks<B, K>): Block<B, K> =>
  blocks.reduce((best, each) => (each.height >= best.height ? each : best));

const blocksMissing: Meaning = {
  code: 'connection-lost',
  verdict: 'backoff',
  meaning: 'Blocks are missing: the ledger has received a block, but not the one before it.',
  advice: 'Pass `fetchParent` to `ledger`, or see the cause of its failure.',
};
