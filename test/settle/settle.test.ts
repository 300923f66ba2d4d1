import { describe, expect, it } from '@jest/globals';
import { concat, firstValueFrom, from, lastValueFrom, map, NEVER, of, Subject, take, throwError, toArray } from 'rxjs';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import type { LedgerStep, Outcome } from '../../src/settle/outcome.js';
import { coverage, leadAt, outcomeStats } from '../../src/settle/outcome-stats.js';
import { settle } from '../../src/settle/settle.js';
import { disconnected, frameOf, gapOf, lost, opened, watermark } from '../operators/stream.js';
import { driven, entries, inWords, stepOf } from './support.js';

/** Runs a feed and a ledger that both began 100 ms ago. */
const settled = (options: Parameters<typeof driven>[0] = {}) => {
  const world = driven({ rememberMs: 20, ...options });
  world.open(0);
  return world;
};

/**
 * What happens, at which ms: `feed 100 ab` shows a and b; `ledger 106 A -a ?b late` is a step that confirms A, takes a
 * back, doubts b and fills a hole. `clock 112` passes time. `no feed 103 101` says that it has been down since 101;
 * `gap of ledger 120 145` is one of its gaps.
 */
const play = (history: string, options: Parameters<typeof driven>[0] = {}, depth?: number) => {
  const world = settled(options);
  const { feed, ledger, passTo, feed$, ledger$ } = world;
  const sides = { feed: feed$ as Subject<unknown>, ledger: ledger$ as Subject<unknown> };
  for (const moment of history.split(', ')) {
    const words = moment.split(' ');
    const [at, until] = words.slice(-2).map(Number) as [number, number];
    const side = sides[words.at(-3) as 'feed' | 'ledger'];
    if (moment.startsWith('no ')) side.next(disconnected(at, { endedAt: until }));
    else if (moment.startsWith('gap of ')) side.next(gapOf(at, until));
    else if (words[0] === 'clock') passTo(until);
    else if (words[0] === 'feed') feed(Number(words[1]), ...(words[2] as string));
    else {
      const of = (mark: string) =>
        entries(
          words
            .slice(2)
            .find((word) => word.startsWith(mark))
            ?.slice(1) ?? '',
        );
      const confirmed = words.slice(2).find((word) => /^[a-zA-Z]$|^(?!late)[a-z]{2,}$|^[a-zA-Z]{2}$/.test(word)) ?? '';
      const time = Number(words[1]);
      ledger(time, confirmed, {
        ...(moment.includes(' -') && { reverted: of('-') }),
        ...(moment.includes(' ?') && { doubted: of('?'), gap: gapOf(104, time) }),
        ...(moment.endsWith(' late') && { late: true }),
        ...(depth !== undefined && { depth }),
      });
    }
  }
  return world.lines();
};

describe('the outcome of a trade', () => {
  it('has the state, the value, the times and the lead', () => {
    const { feed, ledger, outcomes } = settled();
    feed(100, 'a');
    ledger(104, 'a');
    const times = { at: 104, seenAt: 100, confirmedAt: 104, leadMs: 4 };
    expect(outcomes()).toEqual([{ type: 'outcome', state: 'confirmed', key: 'a', value: 'a', ...times }]);
  });

  it.each<[title: string, history: string, lines: readonly string[], options?: object, depth?: number]>([
    ['is confirmed when the ledger has it', 'feed 100 a, ledger 104 a', ['104 confirmed a 4']],
    [
      'is confirmed with a negative lead when the feed shows it later, within graceMs',
      'ledger 104 a, feed 106 a, ledger 120',
      ['106 confirmed a -2'],
    ],
    [
      'is replaced when the ledger has another trade of the slot, also one that the feed has not shown',
      'feed 100 abB, ledger 104 Ab',
      ['104 replaced a by A', '104 confirmed b 4', '104 replaced B by b'],
    ],
    [
      'is replaced at once when it is shown after its rival was confirmed',
      'feed 100 A, ledger 104 A, feed 106 a, ledger 110',
      ['104 confirmed A 4', '106 replaced a by A'],
    ],
    [
      'is not replaced without the option slot, even if the ledger has slots',
      'feed 100 a, ledger 104 a, ledger 106 A -a, ledger 120',
      ['104 confirmed a 4', '106 reorged a, was confirmed', '109 unseen A', '116 expired a, was reorged'],
      { slot: undefined },
    ],
    [
      'is not replaced by a rival that the feed shows and the ledger does not have',
      'feed 100 a, feed 102 A, ledger 105 a',
      ['105 confirmed a 5', '105 replaced A by a'],
    ],
    ['does not expire before the ledger has passed withinMs', 'feed 100 a, ledger 110', []],
    ['expires when the ledger has passed withinMs without it', 'feed 100 a, ledger 110, ledger 111', ['110 expired a']],
    [
      'is confirmed, not expired, by a block of the last ms',
      'feed 100 a, ledger 110 a, ledger 111',
      ['110 confirmed a 10'],
    ],
    [
      'expires at the block of withinBlocks, if that is earlier than withinMs',
      'feed 100 a, ledger 102, ledger 104',
      ['104 expired a'],
      { withinBlocks: 2 },
    ],
    [
      'is confirmed after it expired, if a later block has it',
      'feed 100 a, ledger 111, ledger 115 a',
      ['110 expired a', '115 confirmed a 15, was expired'],
    ],
    [
      'is reorged when its block is taken back, as is the one it replaced, and both wait again from there',
      'feed 100 aB, ledger 104 ab, ledger 106 -ab, ledger 117',
      [
        ...['104 confirmed a 4', '104 replaced B by b', '106 reorged a, was confirmed', '106 reorged B, was replaced'],
        ...['116 expired a, was reorged', '116 expired B, was reorged'],
      ],
      {},
      64,
    ],
    [
      'does not change when one step takes its block back and confirms it again',
      'feed 100 a, ledger 104 a, ledger 106 a -a, ledger 108 -a',
      ['104 confirmed a 4', '108 reorged a, was confirmed'],
      {},
      64,
    ],
    [
      'is unseen when the feed has not shown it until graceMs after its block, and confirmed if it is shown later',
      'ledger 104 a, ledger 112, clock 112, feed 113 a, ledger 120',
      ['107 unseen a', '113 confirmed a -9, was unseen'],
    ],
    [
      'is emitted once, however often it is shown and confirmed',
      'feed 100 aa, ledger 104 a, ledger 105 a, feed 106 a, ledger 125',
      ['104 confirmed a 4'],
    ],
    ['is not emitted for an item whose key is undefined', 'feed 100 ?, ledger 120', []],
    [
      'is unknown when its block is doubted, and confirmed when a later step has it',
      'feed 100 aB, ledger 104 ab, ledger 106 ?ab, ledger 108 a',
      [
        ...['104 confirmed a 4', '104 replaced B by b'],
        ...['106 unknown a ledger gap, was confirmed', '106 unknown B ledger gap, was replaced'],
        ...['107 unknown b ledger gap', '108 confirmed a 8, was unknown'],
      ],
      {},
      64,
    ],
    [
      'is not decided by a ledger that stands still, whatever the clock says',
      'feed 100 a, clock 5000, ledger 5000 a',
      ['110 expired a'],
    ],
    [
      'is corrected from unseen to unknown when a stall of the feed becomes known later',
      'feed 100 a, ledger 104 b, ledger 110, clock 115, no feed 115 101',
      ['107 unseen b', '110 unknown b feed gap, was unseen'],
    ],
    [
      'is corrected from expired to unknown when a stall of the ledger becomes known later',
      'feed 100 a, ledger 112, no ledger 113 108',
      ['110 expired a', '112 unknown a ledger gap, was expired'],
    ],
    [
      'stays expired after a hole outside the time that it waited, though a late step came at its end',
      'feed 100 ab, ledger 105, ledger 140 b late, gap of ledger 120 145',
      ['140 confirmed b 40 late', '140 expired a'],
    ],
    [
      'is corrected from expired to unknown by a hole in the time that it waited',
      'feed 100 ab, ledger 105, ledger 140 b late, gap of ledger 108 146',
      ['140 confirmed b 40 late', '140 expired a', '140 unknown a ledger gap, was expired'],
    ],
    [
      'stays expired after a hole from before its block was taken back',
      'feed 100 a, ledger 104 a, ledger 106 -a, ledger 120, gap of ledger 101 103',
      ['104 confirmed a 4', '106 reorged a, was confirmed', '116 expired a, was reorged'],
    ],
    [
      'is confirmed late by a step that fills a hole, before the decisions in that hole',
      'feed 100 a, ledger 105, ledger 140 a late',
      ['140 confirmed a 40 late'],
    ],
    [
      'is remembered longer when the feed shows it again, and a new one when it is shown after that',
      'feed 100 a, ledger 104 a, feed 112 a, ledger 112, feed 121 a, ledger 121, feed 140 a, ledger 155',
      ['104 confirmed a 4', '150 expired a'],
      { rememberMs: 10 },
    ],
    [
      'is remembered until its block is depth steps deep',
      'feed 100 a, ledger 104 a, ledger 150, ledger 200 -a',
      ['104 confirmed a 4', '200 reorged a, was confirmed'],
      { rememberMs: 2 },
      3,
    ],
    [
      'is unknown when it is evicted: decided trades go first, then those that only the ledger has, then those that wait',
      'feed 100 ab, ledger 101 a, feed 102 cd, ledger 103 x, feed 104 e, ledger 120',
      [
        ...['101 confirmed a 1', '101 unknown b ledger evicted', '103 unknown x feed evicted'],
        // A step that waits counts as one, too.
        ...['103 unknown c ledger evicted', '112 unknown d ledger evicted', '114 unknown e ledger evicted'],
      ],
      { maxTrades: 3 },
    ],
    [
      'is unknown when more than maxTrades wait behind a ledger that stands still',
      'feed 100 abcd',
      ['100 unknown a ledger evicted'],
      { maxTrades: 3 },
    ],
    ['is not evicted by as many bytes as maxBytes', 'feed 100 abcd', [], { maxBytes: 8 }],
    [
      'is unknown when more than maxBytes wait behind a ledger that stands still',
      'feed 100 abcd, feed 101 ef',
      ['100 unknown a ledger evicted', '100 unknown b ledger evicted'],
      { maxBytes: 8 },
    ],
  ])('%s', (...[, history, lines, options, depth]) => {
    expect(play(history, options, depth)).toEqual(lines);
  });

  it('is unknown where the ledger had an outage, also one that is not over', () => {
    const { feed, ledger, ledger$, lines } = settled();
    feed(100, 'a');
    ledger(101);
    ledger$.next(disconnected(103, { endedAt: 101 }));
    feed(105, 'b');
    ledger$.next(opened(108));
    ledger$.next(gapOf(101, 108));
    ledger(130);
    expect(lines()).toEqual(['110 unknown a ledger gap', '115 unknown b ledger gap']);
  });

  it('is unknown where the feed had an outage', () => {
    const { feed, feed$, ledger, passTo, lines } = settled();
    feed(100, 'a');
    passTo(102);
    feed$.next(disconnected(102));
    ledger(104, 'ab');
    passTo(106);
    feed$.next(opened(106));
    feed$.next(gapOf(102, 106));
    ledger(130);
    expect(lines()).toEqual(['104 confirmed a 4', '107 unknown b feed gap']);
  });

  it('is unknown for the time before a side has begun', () => {
    const { feed, feed$, ledger, ledger$, lines } = driven({ rememberMs: 20 });
    feed$.next(opened(0));
    feed(100, 'a');
    ledger$.next(opened(101));
    ledger(104, 'b');
    feed(115, 'c');
    ledger(130);
    expect(lines()).toEqual(['107 unseen b', '110 unknown a ledger start', '125 expired c']);
  });

  it('is not decided before the other side has begun', () => {
    const { feed, feed$, passTo, emitted } = driven();
    feed$.next(opened(0));
    feed(100, 'a');
    passTo(1_000);
    expect(emitted.map(({ type }) => type)).toEqual(['opened']);
  });

  it('is unknown when the steps that wait for a feed that has not begun exceed maxTrades', () => {
    const { ledger, lines } = driven({ maxTrades: 2 });
    ledger(100, 'abc');
    expect(lines()).toEqual(['100 unknown a feed evicted']);
  });

  it('is doubted by a step that fills a hole only after the steps before it', () => {
    const { feed, ledger$, lines } = settled();
    feed(100, 'a');
    ledger$.next(stepOf(105, 'a'));
    feed(140, 'b');
    ledger$.next(stepOf(140, '', { late: true, doubted: entries('a'), gap: gapOf(104, 140) }));
    ledger$.next(watermark(140));
    expect(lines()).toEqual(['105 confirmed a 5', '140 unknown a ledger gap, was confirmed']);
  });

  it('counts an item that is late by less than allowedLatenessMs', () => {
    const { feed$, passTo, ledger, lines } = settled({ allowedLatenessMs: 5 });
    ledger(104, 'a');
    passTo(108);
    feed$.next(frameOf('a', 103));
    ledger(125);
    expect(lines()).toEqual(['104 confirmed a 1']);
  });
});

describe('settle', () => {
  it('copies the bytes of a frame that waits', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const frame = new Frame('raw', chunk.subarray(0, 4), false, 10, 1);
    const events = [opened(0), frame] as FeedEvent[];
    const ledger$ = of(watermark(0), stepOf(11, 'xxxx'), stepOf(12, ''), watermark(40));
    const key = () => 'x';
    const outcomes = from(events).pipe(settle(ledger$, { key, withinMs: 10 }));
    await lastValueFrom(outcomes);
    expect(frame.data.buffer.byteLength).toBe(4);
  });

  it('emits watermarks of the outcomes every 250 ms, none while the ledger is down, and its gap when the feed is open', () => {
    const { feed, feed$, ledger, ledger$, emitted, passTo } = settled();
    const marks = () => emitted.filter(({ type }) => type === 'watermark').map((event) => (event as { at: number }).at);
    feed(100, 'a');
    ledger(200);
    ledger(300);
    expect(marks()).toEqual([0, 300]);
    feed$.next(disconnected(301));
    ledger$.next(disconnected(302));
    ledger$.next(opened(600));
    ledger$.next(gapOf(302, 600));
    passTo(700);
    ledger(700);
    expect(marks()).toEqual([0, 300]);
    expect(emitted.at(-1)).toMatchObject({ type: 'disconnected', at: 301 });
    feed$.next(opened(800));
    feed$.next(gapOf(301, 800));
    ledger(900);
    expect(emitted.filter(({ type }) => type === 'gap')).toEqual([gapOf(301, 800), gapOf(302, 600)]);
    passTo(900);
    feed(950, 'b');
    ledger(960);
    expect(marks().at(-1)).toBeGreaterThan(300);
  });

  it('joins the oldest gaps of the ledger when more than 1,000 wait for the feed to open', () => {
    const { feed$, ledger$, emitted } = settled();
    feed$.next(disconnected(10));
    for (let n = 1; n <= 1_100; n += 1) ledger$.next(gapOf(10 * n, 10 * n + 5));
    feed$.next(opened(20_000));
    feed$.next(gapOf(10, 20_000));
    const gaps = emitted.filter((event) => event.type === 'gap').slice(1);
    expect(gaps).toHaveLength(1_000);
    expect(gaps[0]).toMatchObject({ from: 10, to: 1_015 });
    expect(gaps.at(-1)).toEqual(gapOf(11_000, 11_005));
  });

  it('goes on after the end of the feed until its trades are decided, and then completes', () => {
    const { feed, feed$, ledger, lines, ends } = settled();
    feed(100, 'a', 'b');
    feed$.complete();
    ledger(104, 'a');
    expect(ends).toEqual([]);
    ledger(120);
    expect(lines()).toEqual(['104 confirmed a 4', '110 expired b']);
    expect(ends).toEqual(['complete']);
  });

  it('makes open trades unknown when both are over', () => {
    const { feed, feed$, ledger, ledger$, lines, ends } = settled();
    feed(100, 'a');
    ledger(104, 'b');
    feed$.complete();
    ledger$.complete();
    expect(lines()).toEqual(['104 unknown a ledger end', '104 unknown b feed end']);
    expect(ends).toEqual(['complete']);
  });

  it.each(['feed$', 'ledger$'] as const)('makes open trades unknown when %s errors, and errors', (name) => {
    const world = settled();
    world.feed(100, 'a');
    world[name].error(new Error('over'));
    expect(world.lines()).toEqual(['100 unknown a ledger end']);
    expect(world.ends).toEqual(['Error: over']);
  });

  it('makes trades that wait longer than the ledger lasted unknown, because it ended', () => {
    const { feed, ledger, ledger$, passTo, lines } = settled();
    feed(100, 'a');
    ledger(104);
    ledger$.complete();
    passTo(130);
    expect(lines()).toEqual(['110 unknown a ledger end']);
  });

  it('errors when key, slot or keep throws, and unsubscribes from both', () => {
    for (const name of ['key', 'slot', 'keep'] as const) {
      const world = settled({
        [name]: () => {
          throw new RangeError(name);
        },
      });
      world.feed(100, 'a');
      expect(world.ends).toEqual([`RangeError: ${name}`]);
      expect([world.feed$.observed, world.ledger$.observed]).toEqual([false, false]);
    }
  });

  it('errors when the ledger emits something other than a step or an event', () => {
    const { ledger$, ends } = settled();
    ledger$.next({ ...stepOf(1, ''), at: NaN });
    expect(ends[0]).toMatch(/ledger\$/);
  });

  it('unsubscribes from both, also in next, and leaves no timer', () => {
    const world = driven();
    const seen: unknown[] = [];
    const subscription = world.settled$.subscribe((event) => {
      seen.push(event);
      if (event.type === 'outcome') subscription.unsubscribe();
    });
    world.subscription.unsubscribe();
    world.open(0);
    world.feed(100, 'a', 'b');
    world.ledger(104, 'ab');
    expect(seen.filter((event) => (event as { type: string }).type === 'outcome')).toHaveLength(1);
    expect([world.feed$.observed, world.ledger$.observed]).toEqual([false, false]);
  });

  it('keeps the trades of each subscriber apart', () => {
    const world = settled();
    world.feed(100, 'a');
    const second: string[] = [];
    world.settled$.subscribe((event) => event.type === 'outcome' && second.push(inWords(event)));
    world.feed(101, 'b');
    world.ledger(104, 'ab');
    world.ledger(130);
    expect(world.lines()).toEqual(['104 confirmed a 4', '104 confirmed b 3']);
    expect(second).toEqual(['104 confirmed b 3', '107 unknown a feed start']);
  });

  it('keeps the outcome when next pushes more values into the feed', () => {
    const world = settled();
    world.settled$.subscribe((event) => {
      if (event.type === 'outcome' && event.key === 'a') world.feed$.next(frameOf('b', 104));
    });
    world.feed(90, 'c');
    world.feed(100, 'a');
    world.ledger(104, 'a');
    world.ledger(110, 'b');
    expect(world.lines().at(-1)).toBe('110 confirmed b 6');
  });

  it('follows a ledger without watermarks by the clock', () => {
    const world = driven({ rememberMs: 20 });
    world.feed$.next(opened(0));
    world.ledger$.next(opened(0));
    world.feed(100, 'a');
    world.passTo(111);
    expect(world.lines()).toEqual(['110 expired a']);
    world.passTo(700);
    expect(world.emitted.filter(({ type }) => type === 'watermark').length).toBeGreaterThan(2);
  });

  it.each<[string, object, RegExp]>([
    ['key', { key: 'hash' }, /`?key`? must be a function/],
    ['withinMs', { withinMs: 0 }, /withinMs/],
    ['withinMs, if it is missing', { withinMs: undefined }, /withinMs/],
    ['slot', { slot: 1 }, /slot/],
    ['keep', { keep: 1 }, /keep/],
    ['withinBlocks', { withinBlocks: 0.5 }, /withinBlocks/],
    ['graceMs', { graceMs: -1 }, /graceMs/],
    ['rememberMs', { rememberMs: NaN }, /rememberMs/],
    ['allowedLatenessMs', { allowedLatenessMs: -1 }, /allowedLatenessMs/],
    ['maxTrades', { maxTrades: 0 }, /maxTrades/],
    ['maxBytes', { maxBytes: 0 }, /maxBytes/],
    ['scheduler', { scheduler: {} }, /scheduler/],
    ['an unknown option', { within: 1 }, /within/],
  ])('throws an error that names the wrong option: %s', (_name, wrong, expected) => {
    expect(() => settle(NEVER, { key: () => 'a', withinMs: 1, ...wrong })).toThrow(expected);
  });

  it('throws an error that names ledger$ when it is no Observable', () => {
    expect(() => settle(undefined as never, { key: () => 'a', withinMs: 1 })).toThrow(/ledger\$/);
  });
});

describe('windows with outcomeStats', () => {
  it('add up to the final state, whatever was corrected', async () => {
    const feed$ = new Subject<FeedEvent>();
    const ledger$ = new Subject<LedgerStep<string> | FeedEvent>();
    const outcomes: Outcome<unknown, string>[] = [];
    const windows = lastValueFrom(
      feed$.pipe(
        settle(ledger$ as Subject<LedgerStep<string>>, {
          key: (frame: Frame) => frame.text(),
          withinMs: 10,
          graceMs: 3,
          rememberMs: 40,
        }),
        map((event) => (event.type === 'outcome' && outcomes.push(event), event)),
        tumblingWindow({ lengthMs: 5, ...outcomeStats }),
        toArray(),
      ),
    );
    const steps: readonly [number, string, Partial<LedgerStep<string>>][] = [
      [104, 'ab', { depth: 9 }],
      [108, '', { reverted: entries('a'), depth: 9 }],
      [115, 'c', { depth: 9 }],
      [125, 'd', { depth: 9 }],
      [140, '', { depth: 9 }],
    ];
    for (const each of [opened(0), frameOf('a', 100), frameOf('b', 101), frameOf('c', 102), frameOf('e', 103)])
      feed$.next(each);
    ledger$.next(watermark(0));
    for (const [at, confirmed, more] of steps) {
      ledger$.next(stepOf(at, confirmed, more));
      ledger$.next(watermark(at));
      feed$.next(watermark(at));
    }
    feed$.complete();
    const closed = await windows;
    const last = new Map(outcomes.map(({ key, state }) => [key, state]));
    const sum = closed.reduce((all, { value }) => {
      for (const state of ['confirmed', 'replaced', 'expired', 'reorged', 'unseen', 'unknown'] as const)
        all[state] += value[state];
      return all;
    }, outcomeStats.seed());
    const counted = (state: string) => [...last.values()].filter((each) => each === state).length;
    for (const state of ['confirmed', 'replaced', 'expired', 'reorged', 'unseen', 'unknown'] as const)
      expect([state, sum[state]]).toEqual([state, counted(state)]);
    expect(outcomes.some(({ previous }) => previous !== undefined)).toBe(true);
  });

  it('know the coverage, and the leads to 19 %', () => {
    const outcome = (state: 'confirmed' | 'unseen', leadMs?: number, previous?: object) =>
      ({ type: 'outcome', state, key: 'a', at: 0, leadMs, previous }) as unknown as Outcome<string, string>;
    const stats = [10, 100, 1_000, -50, 0.5]
      .map((leadMs) => outcome('confirmed', leadMs))
      .concat(outcome('unseen'))
      .reduce((all, each) => outcomeStats.add(all, each), outcomeStats.seed());
    expect(coverage(stats)).toBeCloseTo(5 / 6);
    expect(leadAt(stats, 0)! / -50).toBeCloseTo(1, 0);
    for (const [share, lead] of [
      [0.6, 10],
      [0.8, 100],
      [1, 1_000],
    ] as const)
      expect(Math.abs(leadAt(stats, share)! / lead - 1)).toBeLessThan(0.19);
    expect(leadAt(stats, 0.4)).toBe(0);
    const corrected = outcomeStats.add(
      stats,
      outcome('unseen', undefined, { state: 'confirmed', at: 0, leadMs: 1_000 }),
    );
    expect(leadAt(corrected, 1)! / 100).toBeCloseTo(1, 0);
    expect(outcomeStats.add(corrected, 'another item')).toBe(corrected);
    const empty = outcomeStats.seed();
    expect([coverage(empty), leadAt(empty, 0.5)]).toEqual([undefined, undefined]);
  });
});

describe('settle with a feed that stopped', () => {
  it('knows nothing of the time until the feed is subscribed again', async () => {
    const events = concat(
      of(opened(0), frameOf('a', 100), { type: 'stopped', at: 101, failure: lost(101) } as FeedEvent),
      of(opened(110, 1), frameOf('b', 111), watermark(200)),
    );
    const ledger$ = of(watermark(0), stepOf(105, 'c'), watermark(300));
    const outcomes = events.pipe(
      settle(ledger$, { key: (frame: Frame) => frame.text(), withinMs: 10, graceMs: 3, rememberMs: 20 }),
      map((event) => (event.type === 'outcome' ? inWords(event) : '')),
      toArray(),
    );
    expect(await firstValueFrom(outcomes)).toContain('108 unknown c feed gap');
  });

  it('errors with the error of the feed after the outcomes', async () => {
    const events = concat(
      of(opened(0), frameOf('a', 100)),
      throwError(() => new Error('stop')),
    );
    const ledger$ = concat(of(watermark(0), watermark(101)), NEVER);
    const all: string[] = [];
    await new Promise<void>((done) => {
      (events as typeof NEVER).pipe(settle(ledger$, { key: () => 'a', withinMs: 10 }), take(9)).subscribe({
        next: (event: { type: string }) => all.push(event.type),
        error: (error: unknown) => {
          all.push(String(error));
          done();
        },
      });
    });
    expect(all.slice(-2)).toEqual(['outcome', 'Error: stop']);
  });
});

it('leadAt returns the longest lead for a share above 1, and undefined without leads', () => {
  const stats = outcomeStats.seed();
  expect(leadAt(stats, 0.5)).toBeUndefined();
  expect(leadAt({ leads: { 1: 1 } }, 1.5)).toBe(leadAt({ leads: { 1: 1 } }, 1));
});
