import { asyncScheduler, catchError, concat, concatMap, defaultIfEmpty, defer, EMPTY, from, map, mergeMap } from 'rxjs';
import { type Observable, type ObservableInput, of, type OperatorFunction, type SchedulerLike, take } from 'rxjs';
import type { Gap, Watermark } from '../protocol/event.js';
import { aFunction, aScheduler, checkRequired, positiveCount, validated } from '../protocol/validate.js';
import { Chain } from './chain.js';
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
