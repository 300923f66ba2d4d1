import { of, Subject, VirtualTimeScheduler } from 'rxjs';
import type { FeedEvent } from '../../../src/protocol/event.js';
import { Frame } from '../../../src/protocol/frame.js';
import { ledger } from '../../../src/settle/ledger.js';
import type { Outcome } from '../../../src/settle/outcome.js';
import { settle } from '../../../src/settle/settle.js';
import { createChance } from '../../simulation/chance.js';

// A ledger that asks for the newest block of a node four times a second. The node falls back for some time, or the
// chain begins again. Nothing is lost, so a trade must not expire if the real chain has it in time.

export const nodeFaults = ['lagging', 'balancer', 'begun again'] as const;

export interface NodeWorld {
  readonly seed: number;
  readonly fault: (typeof nodeFaults)[number];
  readonly canFetch: boolean;
  readonly depth: number;
  /** How many blocks the node is behind that lags. */
  readonly lag: number;
  /** The height at which the fault begins. */
  readonly from: number;
  /** How many blocks later it ends. A node that lags for longer can't be told from a slow chain. */
  readonly length: number;
}

interface Block {
  readonly id: string;
  readonly parent: string;
  readonly height: number;
  readonly at: number;
  readonly entries: readonly { readonly key: string; readonly failed?: true }[];
}

interface Trade {
  readonly key: string;
  readonly seenAt: number;
  /** The real block that has it, if any. */
  readonly block?: Block;
}

const intervalMs = 1_000;
const pollMs = 250;
const begin = 1_000_000;
const limits = { withinMs: 5_000, graceMs: 500 };

export const createNodeWorld = (seed: number): NodeWorld => {
  const { oneOf, isTrue, whole } = createChance(seed);
  const depth = oneOf([6, 12]);
  const fault = oneOf(nodeFaults);
  const from = depth + whole(22, 40);
  const lag = isTrue(0.3) ? whole(2, depth) : depth + whole(2, 20);
  return { seed, fault, canFetch: isTrue(0.5), depth, lag, from, length: whole(1, Math.min(lag, depth)) };
};

/** Runs such a world. Returns what is wrong, the outcomes, and how often a parent was fetched. */
export const runNodes = (world: NodeWorld) => {
  const { blocks, trades } = createChain(world);
  const scheduler = new VirtualTimeScheduler(undefined, Infinity);
  const [feed$, blocks$] = [new Subject<FeedEvent>(), new Subject<Block>()];
  const byId = new Map(blocks.map((block) => [block.id, block]));
  const outcomes: Outcome<undefined, string>[] = [];
  let [fetched, gaps] = [0, 0];
  const fetchParent = ({ parent }: Block) => {
    fetched += 1;
    return of(byId.get(parent));
  };
  const ledger$ = blocks$.pipe(
    ledger<Block, string>({
      ...{ id: ({ id }) => id, parent: ({ parent }) => parent, height: ({ height }) => height },
      ...{ entries: ({ entries }) => entries, depth: world.depth, scheduler },
      ...(world.canFetch && { fetchParent }),
    }),
  );
  const options = { key: (frame: Frame) => frame.text(), keep: () => undefined, ...limits, scheduler };
  const subscription = feed$.pipe(settle(ledger$, options)).subscribe((event) => {
    if (event.type === 'outcome') outcomes.push(event);
    gaps += Number(event.type === 'gap');
  });
  feed$.next({ type: 'opened', at: begin, feed: 'raw', connection: 1 });
  for (const { key, seenAt } of trades)
    scheduler.schedule(() => feed$.next(new Frame('raw', Buffer.from(key), false, seenAt, 1)), seenAt);
  for (const { at, block } of shownBlocks(world, blocks)) scheduler.schedule(() => blocks$.next(block), at);
  scheduler.maxFrames = blocks.at(-1)!.at + 1;
  scheduler.flush();
  subscription.unsubscribe();
  const wrong = judge(world, { trades, outcomes });
  if (fetched > (gaps + 1) * (world.depth + 1)) wrong.push(`${fetched} parents fetched for ${gaps} gaps`);
  return { wrong, outcomes, fetched };
};

/** Creates the real chain, with two to four trades a block, and those that no block has. */
const createChain = ({ seed, fault, from, length, depth }: NodeWorld) => {
  const { between, isTrue } = createChance(seed + 1);
  const trades: Trade[] = [];
  const blocks: Block[] = [];
  const end = from + length + 3 * depth + 25;
  for (let n = 1; n <= end; n += 1) {
    const isNew = fault === 'begun again' && n >= from;
    const [name, height] = isNew ? ['b', n - from] : ['a', n];
    const at = begin + n * intervalMs;
    const keys = Array.from({ length: Math.floor(between(2, 5)) }, (_, index) => `${n}.${index}`);
    const entries = keys.map((key) => ({ key, ...(isTrue(0.3) && { failed: true as const }) }));
    const block = { id: `${name}${height}`, parent: `${name}${height - 1}`, height, at, entries };
    blocks.push(block);
    for (const key of keys) trades.push({ key, seenAt: Math.max(begin, Math.floor(at - between(-300, 2_500))), block });
    if (isTrue(0.3)) trades.push({ key: `${n}.dropped`, seenAt: Math.floor(at - between(0, 900)) });
  }
  return { blocks, trades };
};

/** Returns the newest block of a node, each time it is asked. */
const shownBlocks = ({ seed, fault, from, length, lag }: NodeWorld, blocks: readonly Block[]) => {
  const { isTrue } = createChance(seed + 2);
  const shown: { readonly at: number; readonly block: Block }[] = [];
  for (let at = begin + intervalMs; at <= blocks.at(-1)!.at; at += pollMs) {
    const newest = Math.floor((at - begin) / intervalMs) - 1;
    const isBehind =
      fault !== 'begun again' && newest >= from && newest < from + length && (fault === 'lagging' || isTrue(0.5));
    shown.push({ at, block: blocks[isBehind ? newest - lag : newest]! });
  }
  return shown;
};

interface Results {
  readonly trades: readonly Trade[];
  readonly outcomes: readonly Outcome<undefined, string>[];
}

const judge = ({ from, length, depth }: NodeWorld, { trades, outcomes }: Results): string[] => {
  const wrong: string[] = [];
  const byKey = new Map(trades.map((trade) => [trade.key, trade]));
  for (const { key, state, at } of outcomes) {
    const { seenAt, block } = byKey.get(key)!;
    const hasFailed = block?.entries.some((entry) => entry.key === key && entry.failed);
    // The ledger may ask a little later than the block was there.
    const isInTime = block !== undefined && block.at <= seenAt + limits.withinMs - pollMs;
    if (state === 'expired' && isInTime) wrong.push(`${key} expired at ${at}, and was in ${block.id} at ${block.at}`);
    if ((state === 'confirmed' || state === 'failed') && (hasFailed === true) !== (state === 'failed'))
      wrong.push(`${key} is ${state} at ${at}`);
  }
  // Once the node is back, or the new tree long enough, and its hole is older than what a trade waits for.
  const calm = begin + (from + length + depth + 8) * intervalMs + limits.withinMs;
  const end = trades.at(-1)!.seenAt - limits.withinMs - 2_000;
  const last = new Map(outcomes.map(({ key, state }) => [key, state]));
  for (const { key, seenAt, block } of trades) {
    if (seenAt < calm || seenAt > end) continue;
    const hasFailed = block?.entries.some((entry) => entry.key === key && entry.failed);
    const expected = block === undefined ? 'expired' : hasFailed ? 'failed' : 'confirmed';
    if (last.get(key) !== expected) wrong.push(`${key} is ${last.get(key)} in the end, not ${expected}`);
  }
  return wrong;
};
