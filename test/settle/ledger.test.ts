import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, from, NEVER, type ObservableInput, of, Subject, throwError, timeout, toArray } from 'rxjs';
import { VirtualTimeScheduler } from 'rxjs';
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
        lines.push(
          step.type === 'ledger' ? inWords(step) : step.type === 'gap' ? `gap ${step.from}-${step.to}` : `| ${step.at}`,
        );
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

const inWords = ({ at, confirmed, reverted = [], doubted = [], late }: LedgerStep<string>): string =>
  [
    `${at}:`,
    ...confirmed.map(({ key }) => `+${key}`),
    ...reverted.map(({ key }) => `-${key}`),
    ...doubted.map(({ key }) => `?${key}`),
    ...(late ? ['late'] : []),
  ].join(' ');

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

describe('ledger', () => {
  it('emits a step and a watermark for each block', () => {
    const { receive, lines } = driven();
    receive('1', '2');
    expect(lines).toEqual(['1: +1', '| 1', '2: +2', '| 2']);
  });

  it('takes back what is not on the higher branch, in one step', () => {
    const { receive, steps } = driven();
    receive('1', '2', '3', '4', "3'", "4'", "5'");
    expect(steps.map(inWords)).toEqual(['1: +1', '2: +2', '3: +3', '4: +4', "6: +3' +4' -4 -3", "7: +5'"]);
    expect(steps.map(({ blocks }) => blocks)).toEqual([undefined, undefined, undefined, undefined, 0, undefined]);
  });

  it('follows the later of two equal heights, and does not switch back', () => {
    const { receive, steps } = driven();
    receive('1', '2', '3', "3'", '3', '3');
    expect(steps.map(inWords)).toEqual(['1: +1', '2: +2', '3: +3', "4: +3' -3"]);
  });

  it('ends at the same branch for each order of 6 blocks with a fork', () => {
    const orders = permutations(['2', '3', '4', "3'", "4'", "5'"]);
    expect(orders).toHaveLength(720);
    for (const order of orders) {
      const { receive, steps, lines } = driven({ maxHeld: 6 });
      receive('1', ...order);
      expect([order, confirmedBy(steps)]).toEqual([order, "1 2 3' 4' 5'"]);
      expect(lines.at(-1)).toMatch(/^\|/);
    }
  });

  it('ends at the same branch for each order, with fetchParent', () => {
    for (const order of permutations(['2', '3', '4', "3'", "4'", "5'"])) {
      const { receive, steps } = driven({ fetchParent: ({ parent }) => of(blocks[parent]) });
      receive('1', ...order);
      expect([order, confirmedBy(steps)]).toEqual([order, "1 2 3' 4' 5'"]);
    }
  });

  it('holds a block out of order, without a watermark, until the one before it arrives', () => {
    const { receive, lines } = driven();
    receive('1', '3', '2');
    expect(lines).toEqual(['1: +1', '| 1', '3: +2 late', '3: +3 late', '| 3']);
  });

  it('fetches missing parents, and their steps are late', () => {
    const { receive, lines } = driven({ fetchParent: ({ parent }) => of(blocks[parent]) });
    receive('1', '4');
    expect(lines).toEqual(['1: +1', '| 1', '2: +2 late', '2: +3 late', '2: +4 late', '| 2']);
  });

  it('shows a reorganization of equal height with the next block, as viem does', () => {
    const { receive, steps } = driven({ fetchParent: ({ parent }) => of(blocks[parent]) });
    receive('1', '2', '3', "4'");
    expect(steps.map(inWords).at(-1)).toBe("4: +3' +4' -3 late");
  });

  it('takes everything back for a branch that begins below its first block', () => {
    const { receive, steps } = driven({ fetchParent: ({ parent }) => of(blocks[parent]) });
    receive('3', '4', "5'");
    expect(confirmedBy(steps)).toBe("3' 4' 5'");
  });

  it('doubts what it has confirmed after maxHeld blocks without the one before them', () => {
    const { receive, lines } = driven();
    receive('1', '2', "4'", "5'");
    expect(lines).toEqual(['1: +1', '| 1', '2: +2', '| 2']);
    const held = driven({ maxHeld: 1 });
    held.receive('1', '2', "4'", "5'");
    expect(held.lines.slice(4)).toEqual(['gap 2-4', "4: +4' ?2 ?1 late", "4: +5' late", '| 4']);
    expect(held.steps.at(-2)).toMatchObject({ blocks: 2, gap: { from: 2, to: 4 } });
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

  it('goes on when the branch of a held block stays behind', () => {
    const { receive, lines } = driven();
    receive('1', '2', '4', "3'", "4'", "5'");
    expect(lines.slice(4)).toEqual(["4: +3'", "5: +4'", "6: +5'"]);
    const side = driven({ maxHeld: 1 });
    side.receive('1', '2', '4', "3'", "4'", "5'");
    expect(side.lines.slice(4)).toEqual(["4: +3'", "5: +4'", "6: +5'", 'gap 2-6', '| 6']);
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

  it('has the time of the option at, which never decreases', () => {
    const times = [5, 3, 9];
    const { receive, steps } = driven({ at: () => times.shift()! });
    receive('1', '2', '3');
    expect(steps.map(({ at }) => at)).toEqual([5, 5, 9]);
  });

  it('forgets blocks that are deeper than depth', () => {
    const { receive, steps } = driven({ depth: 1 });
    receive('1', '2', '3', '4', "4'");
    expect(steps.map(inWords).at(-1)).toMatch(/4/);
  });

  it('errors when an option throws, and completes with the source', async () => {
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
    const both = from([blocks['1']!, blocks['2']!]).pipe(
      ledger<Block, string>({ id: (b) => b.id, parent: (b) => b.parent, height: (b) => b.height, entries: () => [] }),
      toArray(),
    );
    expect(await firstValueFrom(both)).toHaveLength(4);
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
  ])('names %s when it is wrong', (name, wrong) => {
    const fine = { id: String, parent: String, height: Number, entries: () => [] };
    expect(() => ledger({ ...fine, ...wrong })).toThrow(new RegExp(name));
  });
});
