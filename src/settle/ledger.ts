import {
  asyncScheduler,
  concat,
  concatMap,
  defer,
  EMPTY,
  materialize,
  mergeMap,
  type Observable,
  type ObservableInput,
  type OperatorFunction,
  type SchedulerLike,
  take,
} from 'rxjs';
import type { Gap, Watermark } from '../protocol/event.js';
import type { Meaning } from '../protocol/failures/meanings.js';
import { createFailure, type TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { createGap } from '../protocol/feed-state.js';
import { isNumber, isTime } from '../protocol/type-guards.js';
import { aFunction, aScheduler, checkRequired, invalidOption, positiveCount, validated } from '../protocol/validate.js';
import type { LedgerEntry, LedgerStep } from './outcome.js';

/** The options of {@link ledger}. The functions are called each time a block arrives, `entries` only if it's new. */
export interface LedgerOptions<B, K> {
  /** Returns the id of a block, such as its hash. Ids are compared as the keys of a `Map`. */
  readonly id: (block: B) => unknown;
  /** Returns the id of the block before. The lowest block may have none. */
  readonly parent: (block: B) => unknown;
  /** Returns the number of the block. That of its parent is lower. */
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
 * because the ledger goes by the time of its blocks: only one that it follows, or its highest block once more, proves
 * that time has passed. While a block is missing, it emits nothing. If `fetchParent` finds the block, its step is `late`.
 * If not, it emits a {@link Gap} and a step with the `doubted` trades.
 *
 * So it does for a block more than `depth` below its highest one: the node has fallen back, or the chain began again. It
 * begins a new tree, and each step comes with a gap until the tree is `depth` blocks long or higher than the old one.
 *
 * Errors with the source, and when one of the functions throws, except `fetchParent`: that counts as not found. Errors
 * with code `invalid-options` if one returns something wrong, such as the id `undefined` because its field is misspelt.
 * Completes with the source. Put `retry` before it, so that it keeps the tree. Memory: the entries of at most
 * `6 * depth` blocks.
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
 *     // t1; t2; t3, and t2 is taken back
 *     if (step.type === 'ledger') console.log(step.confirmed, step.removed);
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

interface Place {
  readonly id: unknown;
  readonly parent: unknown;
  readonly height: number;
}

interface Block<B, K> extends Place {
  readonly source: B;
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
  /** The followed blocks, from the highest. */
  #branch: Blocks<B, K> = [];
  #now = -Infinity;
  /** When it followed a block or received its tip, if there was no watermark since. */
  #provenAt: number | undefined;
  /** The last watermark: up to then no block is missing. */
  #markedAt = -Infinity;
  /** A tip that isn't higher may be old: the tree began below one that had been followed. */
  #oldUntil = -Infinity;
  #fetched = 0;

  constructor(options: LedgerOptions<B, K> & Readonly<typeof defaults>) {
    this.#options = options;
  }

  /** The block whose parent is to be fetched. */
  get orphan(): B | undefined {
    return this.#held.find((block) => !this.#held.some((other) => isParent(other, block)))?.source;
  }

  receive(source: B): readonly Output<K>[] {
    const { at, scheduler, depth, maxHeld, fetchParent } = this.#options;
    this.#now = Math.max(this.#now, at === undefined ? scheduler.now() : checkedTime(at(source)));
    const outputs = this.#accept(source, false);
    const mostHeld = fetchParent === undefined ? maxHeld : depth;
    // A branch that stays behind: what is followed is certain, what was missing is not.
    const ahead = this.#held.filter(({ height }) => height > (this.#tip?.height ?? 0) - mostHeld);
    if (ahead.length < this.#held.length) outputs.push(this.#gap(blocksMissing));
    this.#held = ahead;
    return this.#marked(ahead.length > mostHeld ? [...outputs, ...this.#beginAgain(blocksMissing)] : outputs);
  }

  /** Receives the parent that was fetched for a block, or what went wrong. */
  fill(child: B, parent: B | null | undefined, cause: unknown): readonly Output<K>[] {
    const { at, id, height, scheduler, depth } = this.#options;
    const waiting = this.#held.find(({ source }) => source === child);
    // The parent has arrived on its own.
    if (waiting === undefined) return [];
    if (at === undefined) this.#now = Math.max(this.#now, scheduler.now());
    this.#fetched += 1;
    const isFound =
      parent !== undefined && parent !== null && isParent({ id: id(parent), height: height(parent) }, waiting);
    const isRight = isFound && this.#fetched <= depth;
    return this.#marked(isRight ? this.#accept(parent, true) : this.#beginAgain(blocksMissing, cause));
  }

  /** Adds a watermark if there's new proof, and no block is missing. */
  #marked(outputs: readonly Output<K>[]): readonly Output<K>[] {
    if (this.#held.length > 0) return outputs;
    this.#fetched = 0;
    const at = this.#provenAt;
    if (at === undefined) return outputs;
    const needsGap = this.#isOld && !outputs.some(({ type }) => type === 'gap');
    const gap = needsGap ? [this.#gap(fellBack)] : [];
    this.#provenAt = undefined;
    this.#markedAt = at;
    return [...gap, ...outputs, { type: 'watermark', at }];
  }

  #accept(source: B, isLate: boolean): Output<K>[] {
    const { id: idOf, parent: parentOf, height: heightOf, entries: entriesOf, depth } = this.#options;
    const place = { id: idOf(source), parent: parentOf(source), height: heightOf(source) };
    const { id, height } = place;
    checkPlace(place, this.#lowest);
    if (this.#tree.has(id) || this.#held.some((held) => held.id === id)) {
      // The chain is still the same.
      if (id === this.#tip?.id && !this.#isOld) this.#provenAt = this.#now;
      return [];
    }
    const block = { ...place, source, entries: checkedEntries(entriesOf(source)), isLate };
    const least = (this.#tip?.height ?? height) - depth;
    if (!isLate && height < least) {
      this.#held = [block];
      return this.#beginAgain(fellBack);
    }
    if (this.#isConnected(block, least)) return this.#attach(block);
    // Nothing is known of its branch. If that's ever followed, `fetchParent` asks for the block.
    if (isLate || height >= this.#lowest) this.#held = [...this.#held, block];
    return [];
  }

  /** Whether it is known where the branch of a block begins. */
  #isConnected(block: Place, least: number): boolean {
    const root = this.#branch.at(-1);
    if (root === undefined || this.#parentOf(block) !== undefined) return true;
    // At the end of a tree of `depth` blocks, the parent doesn't matter. Below that of a younger one, it does.
    return (
      block.height <= least || isParent(block, root) || (block.parent === root.parent && block.height <= root.height)
    );
  }

  /** Adds a block to the tree, and the held ones above it. Follows the highest of them. */
  #attach(block: Block<B, K>): LedgerStep<K>[] {
    const added = [block];
    for (const below of added) added.push(...this.#held.filter((held) => isParent(below, held)));
    this.#held = this.#held.filter((held) => !added.includes(held));
    for (const each of added) {
      this.#tree.set(each.id, each);
      // It fills a hole, or came after one.
      each.isLate ||= added.length > 1;
    }
    const highest = highestOf(added);
    const tip = this.#tip;
    const steps = this.#follow(tip === undefined || highest.height >= tip.height ? highest : tip);
    this.#prune();
    return steps;
  }

  #follow(tip: Block<B, K>): LedgerStep<K>[] {
    const [before, after] = [new Set(this.#branch), new Set(this.#branchOf(tip))];
    const added = [...after].filter((block) => !before.has(block)).reverse();
    const removed = [...before].filter((block) => !after.has(block));
    if (added.length === 0) return [];
    const blocks = tip.height - (this.#tip?.height ?? tip.height - 1);
    const least = tip.height - this.#options.depth;
    const isBelow = tip === this.#tip;
    this.#branch = [...after].filter(({ height }) => height >= least);
    // The block before the lowest, out of order.
    if (isBelow) return [{ ...this.#step(added), late: true, blocks }];
    this.#provenAt = this.#now;
    if (removed.length === 0) return added.map((block) => this.#step([block]));
    return [{ ...this.#step(added), removed: entriesOf(removed), ...(blocks !== 1 && { blocks }) }];
  }

  /** Removes the blocks below the lowest, and the oldest of the other branches if there are too many. */
  #prune(): void {
    const [tree, lowest] = [this.#tree, this.#lowest];
    for (const [id, { height }] of tree) if (height < lowest) tree.delete(id);
    const most = maxBlocksPerHeight * this.#options.depth;
    if (tree.size <= most) return;
    const branch = new Set(this.#branch);
    for (const [id, block] of tree) if (tree.size > most && !branch.has(block)) tree.delete(id);
  }

  #step(added: Blocks<B, K>): LedgerStep<K> {
    const isLate = added.some(({ isLate }) => isLate);
    const step = { type: 'ledger', at: this.#now, confirmed: entriesOf(added), depth: this.#options.depth } as const;
    return isLate ? { ...step, late: true } : step;
  }

  get #tip(): Block<B, K> | undefined {
    return this.#branch[0];
  }

  /** The height of the lowest followed block. The chain below it is unknown. */
  get #lowest(): number {
    return this.#branch.at(-1)?.height ?? Infinity;
  }

  /** Whether the followed blocks may be older than the last watermark. */
  get #isOld(): boolean {
    return (this.#tip?.height ?? Infinity) <= this.#oldUntil;
  }

  #parentOf(block: Place): Block<B, K> | undefined {
    const found = this.#tree.get(block.parent);
    return found !== undefined && isParent(found, block) ? found : undefined;
  }

  /** Returns a block and those below it, from the highest. */
  #branchOf(tip: Block<B, K>): Blocks<B, K> {
    const branch: Block<B, K>[] = [];
    for (let block: typeof tip | undefined = tip; block !== undefined; block = this.#parentOf(block))
      branch.push(block);
    return branch;
  }

  #gap(meaning: Meaning, cause?: unknown): Gap {
    const failure = createFailure(meaning, { stage: 'stream', endedAt: this.#markedAt, cause });
    return createGap(this.#markedAt, this.#now, failure);
  }

  /** The blocks between the tree and the held ones can't be had: begins a new tree with the highest held block. */
  #beginAgain(meaning: Meaning, cause?: unknown): Output<K>[] {
    const doubted = entriesOf(this.#branch);
    const gap = this.#gap(meaning, cause);
    let root = highestOf(this.#held);
    for (let below: typeof root | undefined = root; below !== undefined;) {
      root = below;
      below = this.#held.find((held) => isParent(held, root));
    }
    const tipHeight = this.#tip?.height ?? -Infinity;
    this.#oldUntil = Math.min(tipHeight, root.height + this.#options.depth);
    this.#tree.clear();
    this.#branch = [];
    this.#held = this.#held.filter((block) => block !== root);
    const [first, ...more] = this.#attach(root) as [LedgerStep<K>];
    this.#held = [];
    return [gap, { ...first, doubted, gap, blocks: Math.max(0, root.height - tipHeight) }, ...more];
  }
}

/** How many blocks the tree has at most, as a multiple of `depth`. */
const maxBlocksPerHeight = 4;

/** A parent is lower than its child, so a walk from a block to its parent ends, whatever the ids are. */
const isParent = (below: Pick<Place, 'id' | 'height'>, { parent, height }: Place): boolean =>
  below.id === parent && below.height < height;

/** Throws if a block can't have its place because a function reads the wrong field. */
const checkPlace = ({ id, parent, height }: Place, lowest: number): void => {
  if (isMissing(id)) throw misread('id', 'the id of the block', id);
  if (!Number.isFinite(height)) throw misread('height', 'the number of the block', height);
  if (height <= lowest) return;
  if (isMissing(parent)) throw misread('parent', 'the id of the block before', parent);
  if (parent === id) throw misread('parent', 'the id of the block before', parent, "the block's own id");
};

const checkedEntries = <K>(entries: readonly LedgerEntry<K>[]): readonly LedgerEntry<K>[] => {
  const allowed = 'the trades of the block as an array, each with its `key`';
  const given: unknown = entries;
  if (!Array.isArray(given)) throw misread('entries', allowed, given);
  const wrong = given.findIndex((entry: Partial<LedgerEntry<K>> | undefined) => isMissing(entry?.key));
  if (wrong >= 0) throw misread('entries', allowed, undefined, `one without a key at index ${wrong}`);
  return entries;
};

const checkedTime = (at: number): number => {
  if (!isTime(at)) throw misread('at', 'a time in epoch ms', at);
  return at;
};

const isMissing = (value: unknown): boolean => value === undefined || value === null;

const misread = (option: string, what: string, value: unknown, name = nameOf(value)): TradeFeedError =>
  invalidOption(option, `a function that returns ${what}, but it returned ${name}; check the fields that it reads`);

/** Returns what a value is, and not the value itself, which may be a secret. */
const nameOf = (value: unknown): string =>
  isMissing(value) || isNumber(value) ? `${value as number}` : Array.isArray(value) ? 'an array' : `a ${typeof value}`;

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

const fellBack: Meaning = {
  code: 'connection-lost',
  verdict: 'backoff',
  meaning: 'The ledger has received a block far below its highest one: the node is behind, or the chain began again.',
  advice: 'Check the height of your node, or of each node behind your load balancer.',
};
