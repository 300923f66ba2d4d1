import type { Gap, Watermark } from '../protocol/event.js';
import { createFailure } from '../protocol/failures/trade-feed-error.js';
import type { Meaning } from '../protocol/failures/meanings.js';
import { createGap } from '../protocol/feed-state.js';
import type { LedgerEntry, LedgerStep } from './outcome.js';

export interface ChainOptions<B, K> {
  readonly id: (block: B) => unknown;
  readonly parent: (block: B) => unknown;
  readonly height: (block: B) => number;
  readonly entries: (block: B) => readonly LedgerEntry<K>[];
  readonly at?: (block: B) => number;
  readonly fetchParent?: unknown;
  readonly depth: number;
  readonly maxHeld: number;
}

interface Block<B, K> {
  readonly source: B;
  readonly id: unknown;
  readonly parent: unknown;
  readonly height: number;
  readonly entries: readonly LedgerEntry<K>[];
  readonly isLate: boolean;
}

type Output<K> = LedgerStep<K> | Gap | Watermark;

/** The tree of the last blocks. It follows the highest, and holds those whose parent is missing. */
export class Chain<B, K> {
  readonly #options: ChainOptions<B, K>;
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

  constructor(options: ChainOptions<B, K>, clock: () => number) {
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

  /** Nobody knows what is between the tree and the held blocks: begins a new tree with the highest of them. */
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
