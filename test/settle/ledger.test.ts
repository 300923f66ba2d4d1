import { describe, expect, it } from '@jest/globals';
import { from, NEVER, type ObservableInput, of, Subject, throwError, timeout, VirtualTimeScheduler } from 'rxjs';
import type { Gap, Watermark } from '../../src/protocol/event.js';
import { ledger, type LedgerOptions } from '../../src/settle/ledger.js';
import type { LedgerStep } from '../../src/settle/outcome.js';

interface Block {
  readonly id: string;
  readonly parent: string;
  readonly height: number;
}

// 1 - 2 - 3 - 4, and 3' - 4' - 5' on top of 2. Each block has one trade, with the block's id.
const blocks: Readonly<Record<string, Block>> = Object.fromEntries(
  ['1 0 1', '2 1 2', '3 2 3', '4 3 4', "3' 2 3", "4' 3' 4", "5' 4' 5"].map((text): [string, Block] => {
    const [id = '', parent = '', height] = text.split(' ');
    return [id, { id, parent, height: Number(height) }];
  }),
);

type Options = Partial<LedgerOptions<Block, string>>;

const driven = (options: Options = {}) => {
  const time = new VirtualTimeScheduler();
  const blocks$ = new Subject<Block>();
  const lines: string[] = [];
  const steps: LedgerStep<string>[] = [];
  const subscription = blocks$
    .pipe(
      ledger<Block, string>({
        id: ({ id }) => id,
        parent: ({ parent }) => parent,
        height: ({ height }) => height,
        entries: ({ id }) => [{ key: id }],
        scheduler: time,
        ...options,
      }),
    )
    .subscribe({
      next: (step) => {
        if (step.type === 'ledger') steps.push(step);
        lines.push(inWords(step));
      },
      error: (error: unknown) => lines.push(String(error)),
      complete: () => lines.push('complete'),
    });
  const receive = (...ids: readonly string[]): void => {
    for (const id of ids) {
      time.frame += 1;
      blocks$.next(blocks[id]!);
    }
  };
  return { blocks$, receive, lines, steps, time, subscription };
};

const inWords = (event: LedgerStep<string> | Gap | Watermark): string => {
  if (event.type === 'watermark') return `| ${event.at}`;
  if (event.type === 'gap') return `gap ${event.from}-${event.to}`;
  const { at, confirmed, reverted = [], doubted = [], late } = event;
  const marked = Object.entries({ '+': confirmed, '-': reverted, '?': doubted });
  const keys = marked.flatMap(([mark, list]) => list.map(({ key }) => mark + key));
  return [`${at}:`, ...keys, ...(late ? ['late'] : [])].join(' ');
};

/** Returns the trades confirmed after some steps. */
const confirmedBy = (steps: readonly LedgerStep<string>[]): string => {
  const all = new Set<string>();
  for (const { confirmed, reverted = [] } of steps) {
    for (const { key } of reverted) all.delete(key);
    for (const { key } of confirmed) all.add(key);
  }
  return [...all].sort().join(' ');
};

const permutations = <T>(values: readonly T[]): readonly (readonly T[])[] =>
  values.length < 2
    ? [values]
    : values.flatMap((value, n) => permutations(values.toSpliced(n, 1)).map((rest) => [value, ...rest]));

const fetchParent = ({ parent }: Block) => of(blocks[parent]);

describe('ledger', () => {
  it.each<[title: string, received: string, lines: string, options?: Options]>([
    [
      'takes back what is not on the higher branch, in one step',
      "1 2 3 4 3' 4' 5'",
      "1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +4, | 4, | 5, 6: +3' +4' -4 -3, | 6, 7: +5', | 7",
    ],
    [
      'follows the later of two equal heights, and does not switch back',
      "1 2 3 3' 3 3",
      "1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +3' -3, | 4, | 5, | 6",
    ],
    [
      'holds a block out of order, without a watermark, until the one before it arrives',
      '1 3 2',
      '1: +1, | 1, 3: +2 late, 3: +3 late, | 3',
    ],
    [
      'fetches missing parents, and their steps are late',
      '1 4',
      '1: +1, | 1, 2: +2 late, 2: +3 late, 2: +4 late, | 2',
      { fetchParent },
    ],
    [
      'shows a reorganization of equal height with the next block, as viem does',
      "1 2 3 4'",
      "1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +3' +4' -3 late, | 4",
      { fetchParent },
    ],
    [
      'takes everything back for a branch that begins below its first block',
      "3 4 5'",
      "1: +3, | 1, 2: +4, | 2, 3: +3' +4' +5' -4 -3 late, | 3",
      { fetchParent },
    ],
    ['waits for a missing block while maxHeld blocks are above it', "1 2 4' 5'", '1: +1, | 1, 2: +2, | 2'],
    [
      'doubts what it has confirmed when more than maxHeld blocks wait for a missing one',
      "1 2 4' 5'",
      "1: +1, | 1, 2: +2, | 2, gap 2-4, 4: +4' ?2 ?1 late, 4: +5' late, | 4",
      { maxHeld: 1 },
    ],
    [
      'follows another branch while a block waits for a missing one',
      "1 2 4 3' 4' 5'",
      "1: +1, | 1, 2: +2, | 2, 4: +3', 5: +4', 6: +5'",
    ],
    [
      'has a gap when the branch of a block that waits stays behind',
      "1 2 4 3' 4' 5'",
      "1: +1, | 1, 2: +2, | 2, 4: +3', 5: +4', 6: +5', gap 2-6, | 6",
      { maxHeld: 1 },
    ],
    [
      'forgets blocks that are deeper than depth, and follows no fork of them',
      "1 2 3 4 3'",
      '1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +4, | 4, | 5',
      { depth: 1 },
    ],
  ])('%s', (...[, received, lines, options]) => {
    const world = driven(options);
    world.receive(...received.split(' '));
    expect(world.lines.join(', ')).toBe(lines);
  });

  it('says how many blocks longer it is after a reorganization or a hole', () => {
    const reorganized = driven();
    reorganized.receive('1', '2', '3', '4', "3'", "4'", "5'");
    expect(reorganized.steps.map(({ blocks }) => blocks)).toEqual([...Array<undefined>(4), 0, undefined]);
    const doubting = driven({ maxHeld: 1 });
    doubting.receive('1', '2', "4'", "5'");
    expect(doubting.steps.at(-2)).toMatchObject({ blocks: 2, gap: { from: 2, to: 4 } });
  });

  it.each<[string, Options]>([
    ['without fetchParent', { maxHeld: 6 }],
    ['with fetchParent', { fetchParent }],
  ])('ends at the same branch for each order of 6 blocks with a fork, %s', (_name, options) => {
    const orders = permutations(['2', '3', '4', "3'", "4'", "5'"]);
    expect(orders).toHaveLength(720);
    for (const order of orders) {
      const { receive, steps, lines } = driven(options);
      receive('1', ...order);
      expect([order, confirmedBy(steps)]).toEqual([order, "1 2 3' 4' 5'"]);
      expect(lines.at(-1)).toMatch(/^\|/);
    }
  });

  it.each<[string, () => ObservableInput<Block | null | undefined>]>([
    ['finds nothing', () => of(undefined)],
    ['finds null', () => Promise.resolve(null)],
    ['completes without a value', () => from([])],
    ['errors', () => throwError(() => new Error('no node'))],
    [
      'throws',
      () => {
        throw new Error('no node');
      },
    ],
    ['returns a wrong block', () => of(blocks['1'])],
    ['hangs, with a timeout', () => NEVER.pipe(timeout(1))],
  ])('doubts what it has confirmed when fetchParent %s', async (_name, fetchParent) => {
    const { receive, lines } = driven({ fetchParent });
    receive('1', '2', "4'");
    for (let n = 0; n < 500 && lines.length < 7; n += 1) await new Promise((done) => setImmediate(done));
    expect(lines.slice(4, 6)).toEqual(['gap 2-3', "3: +4' ?2 ?1"]);
  });

  it('emits nothing while fetchParent hangs, and goes on when the block arrives on its own', () => {
    const { receive, lines } = driven({ fetchParent: () => NEVER });
    receive('1', '3', '4');
    expect(lines).toEqual(['1: +1', '| 1']);
    receive('2');
    expect(lines.slice(2)).toEqual(['4: +2 late', '4: +3 late', '4: +4 late', '| 4']);
  });

  it('gives up after depth fetched blocks', () => {
    const fetched: string[] = [];
    const { receive, lines } = driven({
      depth: 2,
      fetchParent: ({ parent, height }) => {
        fetched.push(parent);
        return of({ id: parent, parent: `${parent}x`, height: height - 1 });
      },
    });
    receive('1');
    receive("5'");
    expect(fetched.length).toBeLessThanOrEqual(3);
    expect(lines.some((line) => line.startsWith('gap'))).toBe(true);
  });

  it('takes the time of a step from the option at, and never goes back', () => {
    const times = [5, 3, 9];
    const { receive, steps } = driven({ at: () => times.shift()! });
    receive('1', '2', '3');
    expect(steps.map(({ at }) => at)).toEqual([5, 5, 9]);
  });

  it('errors when an option throws, and completes with the source', () => {
    const failing = driven({
      entries: () => {
        throw new RangeError('entries');
      },
    });
    failing.receive('1');
    expect(failing.lines).toEqual(['RangeError: entries']);
    const { blocks$, lines } = driven();
    blocks$.complete();
    expect(lines).toEqual(['complete']);
  });

  it.each<[string, object]>([
    ['id', { id: 1 }],
    ['parent', { parent: undefined }],
    ['height', { height: 1 }],
    ['entries', { entries: 1 }],
    ['fetchParent', { fetchParent: 1 }],
    ['at', { at: 1 }],
    ['depth', { depth: 0 }],
    ['maxHeld', { maxHeld: 0 }],
    ['scheduler', { scheduler: 1 }],
  ])('throws an error that names %s when it is wrong', (name, wrong) => {
    const fine = { id: String, parent: String, height: Number, entries: () => [] };
    expect(() => ledger({ ...fine, ...wrong })).toThrow(new RegExp(name));
  });
});
