import { describe, expect, it } from '@jest/globals';
import { from, NEVER, type ObservableInput, of, Subject, throwError, timeout, VirtualTimeScheduler } from 'rxjs';
import type { Gap, Watermark } from '../../src/protocol/event.js';
import { ledger, type LedgerOptions } from '../../src/settle/ledger.js';
import type { LedgerStep } from '../../src/settle/outcome.js';
import { scenarios } from './support.js';

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

/** Returns the options of {@link LedgerOptions} that `ledger` needs, for blocks of any shape. */
const anyBlocks = {
  ...{ id: ({ id }: Block) => id, parent: ({ parent }: Block) => parent, height: ({ height }: Block) => height },
  entries: ({ id }: Block) => [{ key: id }],
};

const driven = (options: Options = {}) => {
  const time = new VirtualTimeScheduler();
  const blocks$ = new Subject<Block>();
  const lines: string[] = [];
  const steps: LedgerStep<string>[] = [];
  const subscription = blocks$.pipe(ledger<Block, string>({ ...anyBlocks, scheduler: time, ...options })).subscribe({
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
  const { at, confirmed, removed = [], doubted = [], late } = event;
  const marked = Object.entries({ '+': confirmed, '-': removed, '?': doubted });
  const keys = marked.flatMap(([mark, list]) => list.map(({ key }) => mark + key));
  return [`${at}:`, ...keys, ...(late ? ['late'] : [])].join(' ');
};

/** Returns the trades confirmed after some steps. */
const confirmedBy = (steps: readonly LedgerStep<string>[]): string => {
  const all = new Set<string>();
  for (const { confirmed, removed = [] } of steps) {
    for (const { key } of removed) all.delete(key);
    for (const { key } of confirmed) all.add(key);
  }
  return [...all].sort().join(' ');
};

const fetched = (own: string) => ({ fetchParent: () => of(block(own, own, 2)) });

const permutations = <T>(values: readonly T[]): readonly (readonly T[])[] =>
  values.length < 2
    ? [values]
    : values.flatMap((value, n) => permutations(values.toSpliced(n, 1)).map((rest) => [value, ...rest]));

const fetchParent = ({ parent }: Block) => of(blocks[parent]);

const block = (id: unknown, parent: unknown, height: unknown): Block => ({ id, parent, height }) as Block;

/** What `ledger` makes of the blocks that it receives, with the options in brackets. */
const steps = `
takes back what is not on the higher branch, in one step
  1 2 3 4 3' 4' 5'
  1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +4, | 4, 6: +3' +4' -4 -3, | 6, 7: +5', | 7
moves its time with a block that equals its tip, and with no other one that it has
  1 2 3 3 2 1 3' 3 3'
  1: +1, | 1, 2: +2, | 2, 3: +3, | 3, | 4, 7: +3' -3, | 7, | 9
holds a block out of order, without a watermark, until the one before it arrives
  1 3 2
  1: +1, | 1, 3: +2 late, 3: +3 late, | 3
fetches missing parents, and their steps are late (fetchParent)
  1 4
  1: +1, | 1, 2: +2 late, 2: +3 late, 2: +4 late, | 2
shows a reorganization of equal height with the next block, as viem does (fetchParent)
  1 2 3 4'
  1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +3' +4' -3 late, | 4
takes everything back for a branch that begins below its first block (fetchParent)
  3 4 5'
  1: +3, | 1, 2: +4, | 2, 3: +3' +4' +5' -4 -3 late, | 3
adds the block before its lowest one when that comes out of order, which moves no time
  3 4 1 2 1 4
  1: +3, | 1, 2: +4, | 2, 4: +2 late, 5: +1 late, | 6
waits to learn where a branch begins that leaves below its lowest block (maxHeld 1)
  4 4' 3' 5'
  1: +4, | 1, gap 1-4, 4: +4' ?4 late, 4: +5' late, | 4
doubts its only block when the branch that it fetches leaves even deeper (fetchParent)
  4 5'
  1: +4, | 1, gap 1-2, 2: +1 ?4 late, 2: +2 late, 2: +3' late, 2: +4' late, 2: +5' late, | 2
doubts what it has confirmed when more than maxHeld blocks wait for a missing one (maxHeld 1)
  1 2 4' 5'
  1: +1, | 1, 2: +2, | 2, gap 2-4, 4: +4' ?2 ?1 late, 4: +5' late, | 4
forgets blocks that are deeper than depth, and follows no fork of them (depth 1)
  1 2 3 4 3'
  1: +1, | 1, 2: +2, | 2, 3: +3, | 3, 4: +4, | 4
takes a block deeper than depth as a gap and a new tree, whose time has gaps until it is long or high enough (depth 2, fetchParent)
  2 3 4 1 1 2 2 3 4 4 5'
  1: +2, | 1, 2: +3, | 2, 3: +4, | 3, gap 3-4, 4: +1 ?4 ?3 ?2, | 4, gap 4-6, 6: +2, | 6, gap 6-8, 8: +3, | 8, 9: +4,
  | 9, | 10, 11: +3' +4' +5' -4 -3 late, | 11
`;

describe('ledger', () => {
  it.each(scenarios(steps))('%s', (_title, received, lines, options) => {
    const world = driven({ ...options, ...('fetchParent' in options && { fetchParent }) });
    world.receive(...received.split(' '));
    expect(world.lines.join(', ')).toBe(lines);
  });

  it('follows a branch that it has fetched down to a block at the end of the tree', () => {
    const branch = [block('x4', 'x3', 4), block('x3', 'x2', 3), block('x2', 'x1', 2)];
    const fetchParent = ({ parent }: Block) => of(branch.find(({ id }) => id === parent));
    const world = driven({ depth: 2, fetchParent });
    world.receive('1', '2', '3', '4');
    world.time.frame += 1;
    world.blocks$.next(branch[0]!);
    expect(world.lines.slice(8).join(', ')).toBe('5: +x2 +x3 +x4 -4 -3 -2 late, | 5');
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

  it.each<[title: string, blocks: readonly Block[], lines: string, options?: Options]>([
    ['its own parent', [block('a', 'a', 5), block('b', 'a', 6)], '1: +a, | 1, 2: +b, | 2'],
    [
      'two that name each other and wait',
      [block('a', 0, 1), block('x', 'y', 6), block('y', 'x', 6)],
      '1: +a, | 1, gap 1-3, 3: +y ?a, | 3',
      { maxHeld: 1 },
    ],
    [
      'one that fetchParent returns for itself',
      [block('a', 0, 1), block('x', 'y', 6)],
      '1: +a, | 1, gap 1-2, 2: +x ?a, | 2',
      { fetchParent: (child) => of(child) },
    ],
    [
      'two that name each other, and that fetchParent returns',
      [block('a', 0, 1), block('x', 'y', 6)],
      '1: +a, | 1, gap 1-2, 2: +y ?a late, 2: +x late, | 2',
      { fetchParent: ({ parent }) => of(block(parent, parent === 'y' ? 'z' : 'y', 5)) },
    ],
  ])('ends at a cycle of blocks: %s', (...[, cycle, lines, options]) => {
    const world = driven(options);
    for (const each of cycle) {
      world.time.frame += 1;
      world.blocks$.next(each);
    }
    expect(world.lines.join(', ')).toBe(lines);
  });

  it.each<[option: string, title: string, blocks: readonly Block[], options?: object]>([
    ['id', 'is undefined', [block(undefined, 'a', 1)]],
    ['id', 'is null, as that of a pending block', [block('a', 0, 1), block(null, 'a', 2)]],
    ['parent', 'is the id of the block itself', [block('a', 0, 1), block('b', 'b', 2)]],
    ['parent', 'is undefined above the lowest block', [block('a', undefined, 1), block('b', undefined, 2)]],
    ['height', 'is undefined', [block('a', 0, undefined)]],
    ['height', 'is a bigint', [block('a', 0, 1), block('b', 'a', 2n)]],
    ['height', 'is not finite', [block('a', 0, NaN)]],
    ['entries', 'is not an array', [block('a', 0, 1)], { entries: () => undefined }],
    ['entries', 'has a trade without a key', [block('a', 0, 1)], { entries: () => [{ key: 'a' }, { hash: 'b' }] }],
    ['at', 'is not a time', [block('a', 0, 1)], { at: () => NaN }],
    ['parent', 'is the id of the block that fetchParent returns', [block('a', 0, 1), block('c', 'b', 3)], fetched('b')],
  ])('errors, and names the option %s, when what it returns %s', (...[option, , received, options]) => {
    const errors: unknown[] = [];
    from(received)
      .pipe(ledger({ ...anyBlocks, ...options }))
      .subscribe({ error: (error: unknown) => errors.push(error) });
    expect(errors).toMatchObject([{ code: 'invalid-options', option }]);
    expect(String(errors[0])).toMatch(new RegExp(`\`${option}\` must .*, but it returned`));
  });

  it('accepts a lowest block that is its own parent, such as slot 0 of Solana, also when the chain begins again', () => {
    const { blocks$, lines, time } = driven({ depth: 2 });
    for (const slot of [0, 1, 2, 3, 4, 0, 1]) {
      time.frame += 1;
      blocks$.next({ id: `${slot}`, parent: `${Math.max(0, slot - 1)}`, height: slot });
    }
    expect(lines.at(-1)).toBe('| 7');
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
    expect(() => ledger({ ...anyBlocks, ...wrong })).toThrow(new RegExp(name));
  });
});
