import type { Outcome } from '../../../src/settle/outcome.js';
import { type Chance, createChance } from '../../simulation/chance.js';

/** A block as a node knows it. */
export interface Block {
  readonly id: string;
  readonly parent: string;
  readonly height: number;
  readonly entries: readonly { readonly key: string; readonly slot: string; readonly failed?: true }[];
}

export interface At<T> {
  readonly at: number;
  readonly what: T;
}

export interface Period {
  readonly from: number;
  readonly to: number;
  /** When the outage is noticed. */
  readonly knownAt: number;
}

/** Everything that happens, even if neither stream shows it. Times are in epoch ms. */
export interface World {
  readonly seed: number;
  readonly limits: {
    readonly withinMs: number;
    readonly withinBlocks: number;
    readonly graceMs: number;
    readonly rememberMs: number;
  };
  readonly depth: number;
  readonly canFetch: boolean;
  readonly slotOf: ReadonlyMap<string, string>;
  /** When the feed shows a trade if it has no outages. */
  readonly sights: readonly At<string>[];
  /** When the node shows a block if it has no outages. */
  readonly blocks: readonly At<Block>[];
  readonly feedOutages: readonly Period[];
  readonly ledgerOutages: readonly Period[];
  readonly begin: number;
  readonly end: number;
}

interface Pending {
  readonly key: string;
  readonly slot: string;
  mineAt: number;
}

const begin = 1_000_000;

/** How many blocks may wait for a missing one that can't be fetched. */
export const maxHeld = 12;

/** Creates the world for a seed. */
export const createWorld = (seed: number): World => {
  const chance = createChance(seed);
  const { oneOf, isTrue, whole } = chance;
  const withinMs = oneOf([3_000, 6_000, 10_000]);
  const graceMs = oneOf([500, 1_500]);
  const rememberMs = oneOf([1, 2]) * withinMs;
  const withinBlocks = isTrue(0.3) ? oneOf([4, 8]) : Infinity;
  const intervalMs = oneOf([400, 1_000, 2_000]);
  const busyUntil = begin + whole(20_000, 40_000);
  const end = busyUntil + 3 * withinMs + rememberMs + graceMs + 8_000;

  const slotOf = new Map<string, string>();
  const pending: Pending[] = [];
  const sights: At<string>[] = [];
  const drop = oneOf([0, 0.05, 0.2]);
  const repeat = oneOf([0, 0.1, 0.3]);
  const broadcast = (key: string, slot: string, at: number): void => {
    slotOf.set(key, slot);
    if (isTrue(drop)) return;
    sights.push({ at, what: key });
    if (isTrue(repeat)) sights.push({ at: at + whole(10, 2_500), what: key });
  };
  let number = 0;
  for (let at = begin + whole(0, 300); at < busyUntil; at += whole(20, 350)) {
    const slot = `s${(number += 1)}`;
    const mineAt = at + whole(-400, withinMs * 1.3);
    broadcast(`t${number}`, slot, at);
    const hasRival = isTrue(0.15);
    if (hasRival) broadcast(`t${number}r`, slot, at + whole(20, 2_000));
    if (!isTrue(0.8)) continue;
    pending.push({ key: hasRival && isTrue(0.5) ? `t${number}r` : `t${number}`, slot, mineAt });
  }
  const blocks = mine(chance, { pending, intervalMs, end, busyUntil });
  return {
    seed,
    limits: { withinMs, withinBlocks, graceMs, rememberMs },
    depth: oneOf([18, 24]),
    canFetch: isTrue(0.6),
    slotOf,
    sights: sights.sort((a, b) => a.at - b.at),
    blocks,
    feedOutages: outages(chance, busyUntil),
    ledgerOutages: outages(chance, busyUntil),
    begin,
    end,
  };
};

const outages = ({ between, isTrue, oneOf }: Chance, busyUntil: number): readonly Period[] => {
  const count = oneOf([0, 0, 1, 2, 3]);
  let at = begin + 2_000;
  return Array.from({ length: count }, () => {
    const from = Math.floor(at + between(500, (busyUntil - begin) / 3));
    const to = Math.floor(from + between(300, 6_000));
    at = to + 1_000;
    return { from, to, knownAt: isTrue(0.5) ? from : Math.floor(between(from, to)) };
  });
};

interface Mining {
  readonly pending: readonly Pending[];
  readonly intervalMs: number;
  readonly busyUntil: number;
  readonly end: number;
}

/** Mines blocks with reorganizations. Returns them as a node shows them: late, out of order, doubled. */
const mine = (chance: Chance, { pending, intervalMs, busyUntil, end }: Mining): readonly At<Block>[] => {
  const { isTrue, oneOf, whole } = chance;
  const shown: At<Block>[] = [];
  const delayMs = oneOf([0, 0, 200, 900]);
  const reorgs = oneOf([0, 0.05, 0.2]);
  const failing = oneOf([0, 0.1, 0.4]);
  let branch: Block[] = [];
  let number = 0;
  const add = (at: number): void => {
    const taken = new Set(branch.flatMap(({ entries }) => entries.map(({ slot }) => slot)));
    const entries = pending
      .filter(({ slot, mineAt }) => mineAt <= at && !taken.has(slot))
      .map(({ key, slot }) => ({ key, slot, ...(isTrue(failing) && { failed: true as const }) }));
    const block: Block = {
      id: `b${(number += 1)}`,
      parent: branch.at(-1)?.id ?? 'b0',
      height: branch.length + 1,
      entries,
    };
    branch.push(block);
    shown.push({ at: at + whole(0, delayMs), what: block });
    if (isTrue(0.05)) shown.push({ at: at + whole(0, 1_500), what: block });
  };
  for (let at = begin + intervalMs; at < end; at += intervalMs) {
    const back = whole(1, 4);
    if (at < busyUntil && isTrue(reorgs) && branch.length > back + 2) {
      const dropped = new Set(branch.slice(-back).flatMap(({ entries }) => entries.map(({ key }) => key)));
      branch = branch.slice(0, -back);
      for (const each of pending)
        if (dropped.has(each.key) && isTrue(0.4)) each.mineAt = isTrue(0.3) ? Infinity : at + whole(0, 8_000);
      const count = back + (isTrue(0.5) ? 1 : 0);
      for (let n = 0; n < count; n += 1) add(at + n);
    } else add(at);
  }
  return shown.sort((a, b) => a.at - b.at);
};

/** Returns the blocks that arrive: those in an outage don't. */
export const deliveredBlocks = ({ blocks, ledgerOutages }: World): readonly At<Block>[] =>
  blocks.filter(({ at }) => !ledgerOutages.some(({ from, to }) => at >= from && at < to));

/** Returns what `settle` emits in a world. */
export type Result = Outcome<undefined, string>;
