import { type At, type Block, deliveredBlocks, maxHeld, type Period, type Result, type World } from './world.js';

/** A time in which the chain that a node followed had a trade. `to` is exclusive. */
interface Stay {
  readonly key: string;
  readonly block: string;
  readonly failed: boolean;
  readonly from: number;
  to: number;
}

/**
 * Checks outcomes against everything that happened, even in outages. It knows nothing of queues, watermarks or memory
 * and looks at the whole world each time. Returns the violations.
 */
export const judge = (world: World, results: readonly Result[]): readonly string[] => {
  const wrong: string[] = [];
  const truth = new Truth(world);
  const last = new Map<string, Result>();
  for (const each of results) {
    const before = last.get(each.key);
    const hasForgotten = before !== undefined && each.at - before.at > world.limits.rememberMs;
    if (before?.state !== each.previous?.state && !(each.previous === undefined && hasForgotten))
      wrong.push(`${each.key}: ${each.state} corrects ${each.previous?.state}, and was ${before?.state}`);
    const problem = truth.problemOf(each);
    if (problem !== undefined) wrong.push(`${each.key} at ${each.at}: ${each.state}, but ${problem}`);
    last.set(each.key, each);
  }
  for (let n = 1; n < results.length; n += 1)
    if (results[n]!.at < results[n - 1]!.at) wrong.push(`the time goes back at ${results[n]!.at}`);
  for (const key of world.slotOf.keys()) {
    const problem = truth.problemInTheEnd(key, last.get(key));
    if (problem !== undefined) wrong.push(`${key} in the end: ${last.get(key)?.state}, but ${problem}`);
  }
  return wrong;
};

class Truth {
  readonly #world: World;
  /** What this node would show without outages. */
  readonly #ideal: readonly Stay[];
  /** What this node does show. */
  readonly #actual: readonly Stay[];
  readonly #sights: readonly At<string>[];
  /** From when the feed is complete: its first frame, or 500 ms after it opened. */
  readonly #startOfFeed: number;
  readonly #startOfLedger: number;
  readonly #delivered: readonly At<Block>[];
  /** When it received a block that it follows, or its tip once more. Nothing else moves its time. */
  readonly #proofs: readonly number[];
  /** The last block before the first outage for which no block was missing. */
  readonly #holesFrom: number;
  readonly #rivals = new Map<string, string[]>();

  constructor(world: World) {
    this.#world = world;
    const delivered = deliveredBlocks(world);
    this.#delivered = delivered;
    this.#ideal = followed(world, world.blocks).stays;
    const { stays, proofs } = followed(world, delivered);
    this.#actual = stays;
    this.#proofs = proofs;
    this.#sights = world.sights.filter(({ at }) => !world.feedOutages.some(({ from, to }) => at >= from && at < to));
    this.#startOfFeed = Math.min(world.begin + 500, this.#sights[0]?.at ?? Infinity);
    this.#startOfLedger = delivered[0]?.at ?? Infinity;
    const down = world.ledgerOutages[0]?.from ?? Infinity;
    const lastWhole = proofs.findLast((at) => at < down && this.#isWhole(at, world.blocks));
    this.#holesFrom = down === Infinity ? down : (lastWhole ?? -Infinity);
    for (const [key, slot] of world.slotOf) this.#rivals.set(slot, [...(this.#rivals.get(slot) ?? []), key]);
  }

  problemOf(result: Result): string | undefined {
    const { key, at, state } = result;
    const { withinMs } = this.#world.limits;
    switch (state) {
      case 'confirmed':
      case 'failed': {
        if (!this.#sights.some((sight) => sight.what === key && sight.at === result.seenAt))
          return 'nobody saw it then';
        if (result.leadMs !== result.confirmedAt - result.seenAt) return 'its lead is wrong';
        if (at < result.seenAt || at < result.confirmedAt) return 'it is too early';
        if (!this.#wasIn(key, result.confirmedAt)) return 'it was not in the chain';
        return this.#wasIn(key, at, 0, state === 'failed') ? undefined : `it was not ${state} in the chain`;
      }
      case 'replaced':
        if (this.#slotOf(result.by) !== this.#slotOf(key)) return 'the other trade has another slot';
        // Outcomes can be stamped later than they happened, because their time never goes back.
        return this.#wasIn(result.by, at, 2_000) ? undefined : 'the other trade was not in the chain';
      case 'expired': {
        const begin = result.previous?.state === 'reorged' ? result.previous.at + 1 : result.seenAt;
        const rivals = this.#rivalsOf(key);
        // A node that catches up after an outage reports it later.
        const until = Math.min(at, begin + withinMs);
        const before = this.#blocksAfter(begin);
        // If a node has missed blocks, it counts from those it had.
        const had = this.#delivered.filter(({ at: arrivedAt }) => arrivedAt <= begin).map(({ what }) => what.height);
        const lastHeight = Math.max(0, ...had) + this.#world.limits.withinBlocks;
        const stay = this.#ideal.find(
          (each) =>
            rivals.includes(each.key) &&
            each.from <= until &&
            each.from < before &&
            this.#heightOf(each.block) <= lastHeight &&
            // What was taken back before doesn't count.
            (result.previous?.state === 'reorged' ? each.from >= begin : each.to > begin) &&
            !this.#isForgotten(each, result) &&
            !this.#isHidden(each, until) &&
            !this.#isTakenBackLate(each, begin),
        );
        return stay && `${stay.key} was in the chain from ${stay.from} to ${stay.to}`;
      }
      case 'unseen': {
        const { confirmedAt } = result;
        const isKnownLater = this.#world.feedOutages.some(({ from, knownAt }) => from <= at && knownAt >= at);
        const sight = this.#sightNear(key, confirmedAt);
        if (sight !== undefined && !isKnownLater) return `it was shown at ${sight.at}`;
        if (!this.#wasIn(key, confirmedAt)) return 'it was not in the chain';
        return this.#wasIn(key, at, 0, false) ? undefined : 'it was not executed';
      }
      case 'unknown':
        return this.#problemOfUnknown(result);
      case 'reorged': {
        // A failed trade that the feed has not shown has no other outcome.
        const isIn = this.#actual.some(
          ({ key: of, from, to, failed }) =>
            of === key && from <= at && to > at && !(failed && result.seenAt === undefined),
        );
        return isIn && !this.#isBehind(at) ? 'it is in the chain' : undefined;
      }
    }
  }

  problemInTheEnd(key: string, last: Result | undefined): string | undefined {
    const { ledgerOutages, canFetch, limits, end } = this.#world;
    const isShown = this.#sights.some(({ what }) => what === key);
    const inTheEnd = this.#actual.find((stay) => stay.to === Infinity && this.#rivalsOf(key).includes(stay.key));
    const state = last?.state;
    // The trade may be in one of the blocks that can't be fetched.
    const isHidden = !canFetch && ledgerOutages.length > 0;
    if (state === 'unknown') return undefined;
    if (last !== undefined && last.at > end - limits.withinMs) return undefined;
    if (inTheEnd === undefined) {
      if (state === 'confirmed' || state === 'failed' || state === 'unseen' || state === 'replaced')
        return isHidden && this.#standsStill(last!) ? undefined : 'it is not in the chain';
      const hasExpired =
        isShown && last?.state !== 'expired' && !(last?.state === 'reorged' && last.seenAt === undefined);
      return hasExpired && !isHidden ? 'it has expired' : undefined;
    }
    if ((state === 'confirmed' || state === 'failed') && inTheEnd.key !== key) return `${inTheEnd.key} is in the chain`;
    if (state === 'replaced' && inTheEnd.key === key) return 'it is in the chain';
    // Blocks below the first one were never received.
    const lowest = this.#delivered[0]?.what.height ?? 0;
    if (this.#heightOf(inTheEnd.block) < lowest) return undefined;
    // The trade had been forgotten by the time it was confirmed.
    const isForgotten = last !== undefined && inTheEnd.from - last.at > limits.rememberMs;
    if (isForgotten || isHidden || (last?.state === 'expired' && this.#isForgotten(inTheEnd, last))) return undefined;
    if (inTheEnd.key !== key) return isShown && state !== 'replaced' ? `${inTheEnd.key} is in the chain` : undefined;
    // It may have been shown outside the time that counts.
    if (last?.state === 'reorged' && last.seenAt === undefined && inTheEnd.failed)
      return this.#sightNear(key, inTheEnd.from, this.#sights) && 'it was shown';
    if (last?.state === 'unseen' && !inTheEnd.failed) return this.#sightNear(key, last.confirmedAt) && 'it was shown';
    const expected = inTheEnd.failed
      ? isShown
        ? ['failed']
        : [undefined, 'reorged']
      : [isShown ? 'confirmed' : 'unseen'];
    return expected.includes(state)
      ? undefined
      : `it is in the chain since ${inTheEnd.from}, failed: ${inTheEnd.failed}`;
  }

  /** Whether a trade was shown again later than it is remembered, so that it's a new one. */
  #isForgotten({ block, from }: Stay, { at, seenAt }: Result & { readonly state: 'expired' }): boolean {
    const shown = this.#world.blocks.filter((each) => each.at <= at).map(({ what }) => what.height);
    const { limits, depth } = this.#world;
    return seenAt - from > limits.rememberMs && Math.max(...shown) - this.#heightOf(block) >= depth;
  }

  /** Whether the ledger still waits for blocks missing since a trade was taken back. */
  #standsStill(last: Result): boolean {
    const key = last.state === 'replaced' ? last.by : last.key;
    const until = this.#actual.findLast((stay) => stay.key === key)?.to ?? -Infinity;
    const since = this.#delivered.filter(({ at }) => at >= until).map(({ what }) => what.id);
    if (new Set(since).size <= maxHeld) return true;
    // Blocks of another branch may have arrived meanwhile, but it has no watermark since one waits that isn't behind it.
    const lowest = this.#delivered[0]?.what.height ?? 0;
    const ids = new Set(this.#delivered.map(({ what }) => what.id));
    const lacksOne = ({ what }: At<Block>): boolean => {
      let each: Block | undefined = what;
      while (each !== undefined && ids.has(each.id)) each = this.#blockOf(each.parent);
      return each !== undefined && each.height >= lowest;
    };
    const tip = Math.max(...this.#delivered.filter((each) => !lacksOne(each)).map(({ what }) => what.height));
    const held = this.#delivered.filter((each) => lacksOne(each) && each.what.height > tip - maxHeld);
    return held.length > 0 && held[0]!.at <= until && new Set(held.map(({ what }) => what.id)).size <= maxHeld;
  }

  /** Returns when a feed, by default one without outages, shows a trade, within the time around its confirmation that counts. */
  #sightNear(key: string, confirmedAt: number, sights = this.#world.sights): At<string> | undefined {
    const { graceMs, rememberMs } = this.#world.limits;
    return sights.find(({ what, at }) => what === key && at >= confirmedAt - rememberMs && at <= confirmedAt + graceMs);
  }

  #problemOfUnknown(result: Result & { readonly state: 'unknown' }): string | undefined {
    const { because, at, key, seenAt } = result;
    const { feedOutages, canFetch, limits } = this.#world;
    const { graceMs, rememberMs } = limits;
    const confirmedAt = this.#actual.filter((each) => each.key === key && each.from <= at).map((each) => each.from);
    // If a node gives up a hole, it continues with the highest block it has.
    if (this.#isBehind(at))
      for (const { at: arrivedAt, what } of this.#delivered)
        if (arrivedAt <= at && what.entries.some((entry) => entry.key === key)) confirmedAt.push(arrivedAt);
    const overlaps = (periods: readonly Period[], from: number, to: number) =>
      periods.some((period) => period.from <= to && period.to >= from);
    switch (because.why) {
      case 'start':
        return because.side === 'feed'
          ? confirmedAt.some((each) => each - rememberMs < this.#startOfFeed)
            ? undefined
            : 'the feed had begun'
          : (seenAt ?? 0) - graceMs < this.#startOfLedger
            ? undefined
            : 'the ledger had begun';
      case 'gap':
        if (because.side === 'feed')
          return confirmedAt.some((each) =>
            // A node that holds blocks back learns it later.
            overlaps(feedOutages, each - rememberMs, (this.#isBehind(at) ? at : each) + graceMs),
          )
            ? undefined
            : 'the feed had no outage';
        if (canFetch) return 'no block is missing';
        // A hole lasts from the last whole chain before the outage to the block after it that reveals the hole.
        return this.#holesFrom <= at ? undefined : 'the ledger had no outage';
      case 'end':
      case 'evicted':
        return `${because.why} has no reason`;
    }
  }

  /** Whether this node's chain had a trade, or the chain of one that misses some blocks. */
  #wasIn(key: string, at: number, lateMs = 0, failed?: boolean): boolean {
    const slackMs = this.#isBehind(at) ? Infinity : lateMs;
    return this.#actual.some(
      (each) =>
        each.key === key &&
        (failed === undefined || each.failed === failed) &&
        each.from - slackMs <= at &&
        (each.to + slackMs > at || each.from === at),
    );
  }

  /** When a node without outages has received enough blocks for a trade to expire. */
  #blocksAfter(at: number): number {
    let height = 0;
    for (const { at: shownAt, what } of this.#world.blocks)
      if (shownAt <= at) height = Math.max(height, what.height);
      else if (what.height >= height + this.#world.limits.withinBlocks) return shownAt;
    return Infinity;
  }

  /**
   * Whether a block came while this node was down, and its chain has no such trade, or only after the decision: what
   * fills a hole counts from the last block before it, but what was only late doesn't.
   */
  #isHidden({ key, from, to }: Stay, until: number): boolean {
    if (!this.#world.ledgerOutages.some((outage) => from >= outage.from && from <= outage.to)) return false;
    const learned = this.#actual.find((stay) => stay.key === key && stay.from >= from && stay.from < to);
    if (learned === undefined) return true;
    const { from: learnedAt, block } = learned;
    // It may have been shown before, in a branch that was followed only now.
    const shown = this.#delivered.find(({ at, what }) => at <= learnedAt && what.id === block);
    if (shown !== undefined && this.#had(shown.what.parent, shown.at)) return learnedAt > until;
    const before = this.#proofs.findLast((at) => at < learnedAt && this.#isWhole(at, this.#delivered));
    return before !== undefined && before > until;
  }

  /** Whether a node had a block before a given time. */
  #had(id: string, before: number): boolean {
    return this.#delivered.some(({ at, what }) => {
      if (at >= before) return false;
      let each: Block | undefined = what;
      while (each !== undefined && each.id !== id) each = this.#world.canFetch ? this.#blockOf(each.parent) : undefined;
      return each !== undefined;
    });
  }

  /** Whether a trade first appeared in a hole whose late step takes its block back, counted from the hole's start. */
  #isTakenBackLate({ to }: Stay, seenAt: number): boolean {
    return !this.#proofs.some((at) => at > seenAt && at < to && this.#isWhole(at, this.#delivered));
  }

  /** Whether a node has all expected blocks below those it has. */
  #isWhole(at: number, expected: readonly At<Block>[]): boolean {
    if (this.#world.canFetch) return true;
    const lowest = this.#delivered[0]?.what.height ?? 0;
    const missing = new Set(expected.map(({ what }) => what.id));
    const arrived = this.#delivered.filter((each) => each.at <= at).map(({ what }) => what);
    for (const { id } of arrived) missing.delete(id);
    return !arrived.some((block) => {
      for (let each: Block | undefined = block; each !== undefined; each = this.#blockOf(each.parent))
        if (each.height >= lowest && missing.has(each.id)) return true;
      return false;
    });
  }

  #heightOf(id: string): number {
    return this.#blockOf(id)?.height ?? 0;
  }

  #blockOf(id: string): Block | undefined {
    return this.#world.blocks.find(({ what }) => what.id === id)?.what;
  }

  /** Whether blocks were missing before that this node can't fetch, so it holds back the ones after them. */
  #isBehind(at: number): boolean {
    return !this.#world.canFetch && this.#holesFrom <= at;
  }

  #slotOf(key: string): string | undefined {
    return this.#world.slotOf.get(key);
  }

  #rivalsOf(key: string): readonly string[] {
    return this.#rivals.get(this.#slotOf(key) ?? '') ?? [];
  }
}

const stayOf = ({ key, failed }: Block['entries'][number], block: string, from: number): Stay => ({
  ...{ key, block, failed: failed === true, from, to: Infinity },
});

/** Follows the highest block, or the later of equals. If blocks can't be fetched, all below must be there. */
const followed = ({ blocks, canFetch }: World, shown: readonly At<Block>[]) => {
  const byId = new Map(blocks.map(({ what }) => [what.id, what]));
  const lowest = shown[0]?.what.height ?? 0;
  const known = new Set<string>();
  const waiting: Block[] = [];
  const stays: Stay[] = [];
  const proofs: number[] = [];
  let branch: readonly Block[] = [];
  const branchOf = (tip: Block): readonly Block[] => {
    const below = byId.get(tip.parent);
    return below === undefined ? [tip] : [...branchOf(below), tip];
  };
  // Don't wait for blocks that never arrive.
  const received = new Set(shown.map(({ what }) => what.id));
  const isThere = (block: Block): boolean =>
    canFetch || branchOf(block).every(({ id, height }) => height < lowest || known.has(id) || !received.has(id));
  for (const { at, what } of shown) {
    if (known.has(what.id)) {
      if (what.id === branch.at(-1)?.id) proofs.push(at);
      continue;
    }
    known.add(what.id);
    waiting.push(what);
    const ready = waiting.filter(isThere);
    for (const block of ready) waiting.splice(waiting.indexOf(block), 1);
    const tip = ready.reduce(
      (best, each) => (best === undefined || each.height >= best.height ? each : best),
      ready[0],
    );
    if (tip === undefined || tip.height < (branch.at(-1)?.height ?? 0)) continue;
    proofs.push(at);
    const isNext = tip.parent === branch.at(-1)?.id;
    const next = isNext ? [...branch, tip] : branchOf(tip);
    if (isNext) {
      for (const entry of tip.entries) stays.push(stayOf(entry, tip.id, at));
      branch = next;
      continue;
    }
    const results = new Map(next.flatMap(({ entries }) => entries.map(({ key, failed }) => [key, failed === true])));
    for (const stay of stays) if (stay.to === Infinity && results.get(stay.key) !== stay.failed) stay.to = at;
    const staying = new Set(stays.filter(({ to }) => to === Infinity).map(({ key }) => key));
    for (const { id, entries } of next)
      for (const entry of entries) if (!staying.has(entry.key)) stays.push(stayOf(entry, id, at));
    branch = next;
  }
  return { stays, proofs };
};
