import { describe, expect, it } from '@jest/globals';
import { filter, firstValueFrom, from, lastValueFrom, NEVER, of, type Subject } from 'rxjs';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { FeedEvent } from '../../src/protocol/event.js';
import { Frame } from '../../src/protocol/frame.js';
import { coverage, leadAt, outcomeStats, type OutcomeStats } from '../../src/settle/outcome-stats.js';
import { settle } from '../../src/settle/settle.js';
import { disconnected, frameOf, gapOf, opened, opening, stopped, watermark } from '../operators/stream.js';
import { driven, entries, type Options, scenarios, stepOf } from './support.js';

/** Runs a feed and a ledger that both began 100 ms ago. */
const settled = (options: Options = {}) => {
  const world = driven({ rememberMs: 20, ...options });
  world.open(0);
  return world;
};

/**
 * What happens, at which ms: `feed 100 ab` shows a and b; `ledger 106 +A !c -a ?b late` is a step that confirms A, has
 * c as failed, takes a back, doubts b and fills a hole. `clock 112` passes time. `lost feed 103 101` says that it has
 * been down since 101; `gap ledger 120 145` is one of its gaps. `begin feed 10` opens it, but it has still to show from
 * when it is complete. `stop`, `end` and `fail` end a side. A history that begins with `open` begins with sides that
 * have not begun.
 */
const play = (history: string, { depth = 0, ...options }: Options & { readonly depth?: number } = {}) => {
  const world = history.startsWith('open ') ? driven({ rememberMs: 20, ...options }) : settled(options);
  for (const moment of history.split(', ')) {
    const [what = '', first = '', ...rest] = moment.split(' ');
    const [at, to] = rest.map(Number) as [number, number];
    const side = world[`${first}$` as 'feed$' | 'ledger$'] as Subject<unknown>;
    const marked = (mark: string) => entries(rest.find((word) => word.startsWith(mark))?.slice(1) ?? '');
    if (what === 'clock') world.passTo(Number(first));
    else if (what === 'open') side.next(opened(at));
    else if (what === 'begin') side.next(opening(at));
    else if (what === 'lost') side.next(disconnected(at, { endedAt: to }));
    else if (what === 'stop') side.next(stopped(at));
    else if (what === 'end') side.complete();
    else if (what === 'fail') side.error(new Error('over'));
    else if (what === 'gap') side.next(gapOf(at, to));
    else if (what === 'feed') world.feed(Number(first), ...(rest[0] as string));
    else {
      const [executed = [], failed = [], removed = [], doubted = []] = ['+', '!', '-', '?'].map(marked);
      const confirmed = [...executed, ...failed.map((entry) => ({ ...entry, failed: true as const }))];
      const hole = {
        ...(doubted.length > 0 && { gap: gapOf(104, Number(first)) }),
        ...(rest.at(-1) === 'late' && { late: true as const }),
      };
      world.ledger(Number(first), '', { confirmed, removed, doubted, depth, ...hole });
    }
  }
  return [...world.lines(), ...world.ends];
};

/** What the outcome of a trade is, with the options in brackets: the history of {@link play}, and the outcomes. */
const outcomes = `
is confirmed or failed with a negative lead when the feed shows it later, within graceMs
  ledger 104 +a !b, feed 106 ab, ledger 120
  106 confirmed a -2; 106 failed b -2
is replaced when the ledger has another trade of the slot, also one that the feed has not shown
  feed 100 abB, ledger 104 +Ab
  104 replaced a by A; 104 confirmed b 4; 104 replaced B by b
is replaced at once when it is shown after its rival was confirmed
  feed 100 A, ledger 104 +A, feed 106 a, ledger 110
  104 confirmed A 4; 106 replaced a by A
expires when the ledger has passed withinMs without it, and is confirmed by a block of the last ms
  feed 100 ab, ledger 110 +b, ledger 111
  110 confirmed b 10; 110 expired a
expires at the block of withinBlocks, if that is earlier than withinMs (withinBlocks 2)
  feed 100 a, ledger 102, ledger 104
  104 expired a
is reorged when its block is taken back, as is the one it replaced, and both wait again from there (depth 64)
  feed 100 aB, ledger 104 +ab, ledger 106 -ab, ledger 117
  104 confirmed a 4; 104 replaced B by b; 106 reorged a, was confirmed; 106 reorged B, was replaced;
  116 expired a, was reorged; 116 expired B, was reorged
is unseen when the feed has not shown it until graceMs after its block, and confirmed if it is shown later
  ledger 104 +a, ledger 112, clock 112, feed 113 a, ledger 120
  107 unseen a; 113 confirmed a -9, was unseen
is unseen also when its block moves meanwhile
  ledger 104 +x, ledger 106 +x -x, ledger 112
  107 unseen x
is not emitted for an item whose key is undefined
  feed 100 ?, ledger 120
  nothing
is reorged when the block in which it failed is taken back, as is its rival, and then confirmed (depth 64)
  feed 100 aA, ledger 104 !a, ledger 106 -a, ledger 108 +a, ledger 130
  104 failed a 4; 104 replaced A by a; 106 reorged a, was failed; 106 reorged A, was replaced;
  108 confirmed a 8, was reorged; 108 replaced A by a, was reorged
is confirmed, since it was failed, when one step takes the block back in which it failed and confirms it (depth 64)
  feed 100 aA, ledger 104 !a, ledger 106 +a -a, ledger 108 +a -a, ledger 110 !a -a, ledger 130
  104 failed a 4; 104 replaced A by a; 106 confirmed a 4, was failed; 110 failed a 4, was confirmed
is not emitted for a failed one that the feed never shows, however it ends
  ledger 104 !a, ledger 106 !b, ledger 107 -b, ledger 108 !c, ledger 109 ?c, lost feed 112 112, ledger 120 !d, ledger 140
  nothing
is remembered for graceMs after it failed, even if rememberMs is less (rememberMs 1)
  ledger 104 !a, ledger 106, feed 107 a, ledger 130
  107 failed a -3
is unknown when its block is doubted, and confirmed when a later step has it (depth 64)
  feed 100 aB, ledger 104 +ab, ledger 106 ?ab, ledger 108 +a
  104 confirmed a 4; 104 replaced B by b; 106 unknown a ledger gap, was confirmed;
  106 unknown B ledger gap, was replaced; 107 unknown b ledger gap; 108 confirmed a 8, was unknown
is not decided by a ledger that stands still, whatever the clock says
  feed 100 a, clock 5000, ledger 5000 +a
  110 expired a
is corrected from unseen to unknown when a stall of the feed becomes known later
  feed 100 a, ledger 104 +b, ledger 110, clock 115, lost feed 115 101
  107 unseen b; 110 unknown b feed gap, was unseen
stays expired after a hole outside the time that it waited, though a late step came at its end
  feed 100 ab, ledger 105, ledger 140 +b late, gap ledger 120 145
  140 confirmed b 40 late; 140 expired a
is corrected from expired to unknown by a hole in the time that it waited
  feed 100 ab, ledger 105, ledger 140 +b late, gap ledger 108 146
  140 confirmed b 40 late; 140 expired a; 140 unknown a ledger gap, was expired
stays expired after a hole from before its block was taken back
  feed 100 a, ledger 104 +a, ledger 106 -a, ledger 120, gap ledger 101 105
  104 confirmed a 4; 106 reorged a, was confirmed; 116 expired a, was reorged
is replaced by what was in the ledger when it was shown, although a step that fills the hole took that back
  ledger 104 !A, feed 108 a, ledger 120 -A late, ledger 140
  108 replaced a by A; 120 reorged a, was replaced; 130 expired a, was reorged
is unknown when the ledger may have its rival
  feed 100 a, ledger 104, gap ledger 104 112, feed 118 A, ledger 140
  110 unknown a ledger gap; 128 unknown A ledger gap
is remembered longer when the feed shows it again, and a new one when it is shown after that (rememberMs 10)
  feed 100 a, ledger 104 +a, feed 112 a, ledger 112, feed 121 a, ledger 121, feed 140 a, ledger 155
  104 confirmed a 4; 150 expired a
is unknown when it is evicted: decided trades go first, then those that only the ledger has, then those that wait (maxTrades 3)
  feed 100 ab, ledger 101 +a, feed 102 cd, ledger 103 +x, feed 104 e, ledger 120
  101 confirmed a 1; 101 unknown b ledger evicted; 103 unknown x feed evicted; 103 unknown c ledger evicted;
  112 unknown d ledger evicted; 114 unknown e ledger evicted
is unknown instead of unseen until its block is depth steps above the last eviction (maxBytes 2, rememberMs 1, depth 3)
  feed 100 a, ledger 101 +a, feed 102 b, ledger 114, ledger 120 +x, ledger 130 +y, ledger 140
  101 confirmed a 1; 112 unknown b ledger evicted; 123 unknown x feed evicted; 133 unseen y
is unknown when more than maxBytes wait behind a ledger that stands still (maxBytes 8)
  feed 100 abcd, feed 101 ef
  100 unknown a ledger evicted; 100 unknown b ledger evicted
is unknown where the feed had stopped, until it is subscribed again
  feed 100 a, stop feed 101, ledger 105 +c, open feed 110, feed 111 b, ledger 130
  108 unknown c feed gap; 110 expired a; 121 expired b
is unknown for the time before a side has begun
  open feed 0, feed 100 a, open ledger 101, ledger 104 +b, feed 115 c, ledger 130
  107 unseen b; 110 unknown a ledger start; 125 expired c
is unknown where the feed may have missed it before it was complete (withinMs 50, graceMs 5)
  open ledger 0, begin feed 10, ledger 100 +a, feed 520 b, ledger 560 +b, ledger 700 +x, feed 900 d, ledger 2000
  105 unknown a feed start; 560 confirmed b 40; 705 unseen x; 950 expired d
is unknown when the steps that wait for a feed that has not begun exceed maxTrades (maxTrades 2)
  open ledger 0, ledger 100 +abc
  100 unknown a feed evicted
is decided after the end of the feed, and then settle completes
  feed 100 ab, end feed, ledger 104 +a, ledger 120
  104 confirmed a 4; 110 expired b; complete
is unknown when it is open and both sides are over
  feed 100 a, ledger 104 +b, end feed, end ledger
  104 unknown a ledger end; 104 unknown b feed end; complete
is unknown when it is open and the ledger errors, as settle does
  feed 100 a, fail ledger
  100 unknown a ledger end; Error: over
is unknown when it waits longer than the ledger lasted
  feed 100 a, ledger 104, end ledger, clock 130
  110 unknown a ledger end
`;

describe('the outcome of a trade', () => {
  it('has the state, the value, the times and the lead', () => {
    const { feed, ledger, outcomes } = settled();
    feed(100, 'a');
    ledger(104, 'a');
    const times = { at: 104, seenAt: 100, confirmedAt: 104, leadMs: 4 };
    expect(outcomes()).toEqual([{ type: 'outcome', state: 'confirmed', key: 'a', value: 'a', ...times }]);
  });

  it.each(scenarios(outcomes))('%s', (_title, history, lines, options) => {
    expect(play(history, options).join('; ') || 'nothing').toBe(lines);
  });

  it('is decided by the time of the feed, also after the engine of its cluster was away: what it missed follows', () => {
    const { feed$, ledger$, lines } = driven({ rememberMs: 20 }, 300);
    const refused = { type: 'engine-refused', at: 300, since: 300, operation: 'connect', message: '', advice: '' };
    feed$.next(refused as unknown as FeedEvent);
    for (const event of [opened(0), stepOf(104, 'a'), watermark(300)]) ledger$.next(event);
    for (const event of [opened(0), watermark(0), frameOf('a', 106), watermark(300)]) feed$.next(event);
    expect(lines()).toEqual(['106 confirmed a -2']);
  });

  it('is not replaced without the option slot, even if the ledger has slots', () => {
    const lines = play('feed 100 a, ledger 104 +a, ledger 106 +A -a, ledger 120', { slot: undefined });
    expect(lines.slice(1)).toEqual(['106 reorged a, was confirmed', '109 unseen A', '116 expired a, was reorged']);
  });

  it('is not decided before the other side has begun', () => {
    const { feed, feed$, passTo, emitted } = driven();
    feed$.next(opened(0));
    feed(100, 'a');
    passTo(1_000);
    expect(emitted.map(({ type }) => type)).toEqual(['opened']);
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

  it('is unknown while a ledger that is a feed, too, is not complete after an outage, without an `expired` before', () => {
    const { feed$, ledger$, feed, passTo, lines } = driven({ withinMs: 100, rememberMs: 500 });
    feed$.next(opened(0));
    for (const event of [opened(0), stepOf(0, 'z'), disconnected(2_000), opening(2_050)]) {
      passTo('at' in event ? event.at : 0);
      ledger$.next(event);
    }
    feed(2_100, 'a');
    passTo(2_500);
    expect(lines().at(-1)).toBe('2200 unknown a ledger gap');
  });

  it('is unknown for the first of two outages, whether or not the second one is over', () => {
    const { feed$, ledger, passTo, outcomes } = settled();
    for (const event of [disconnected(102), opened(104), gapOf(102, 104), disconnected(108)]) {
      passTo('at' in event ? event.at : event.to);
      feed$.next(event);
    }
    ledger(110, 'a');
    ledger(120);
    expect(outcomes()).toMatchObject([{ key: 'a', state: 'unknown', because: { gap: { from: 102, to: 104 } } }]);
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
    const outcomes = from(events).pipe(
      settle(ledger$, { key, withinMs: 10 }),
      filter((event) => event.type === 'outcome'),
    );
    const { value } = (await firstValueFrom(outcomes)) as { readonly value: Frame };
    expect([value.text(), value.data.buffer.byteLength]).toEqual(['xxxx', 4]);
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

  it.each(['key', 'slot', 'keep'])('errors when %s throws, and unsubscribes from both', (name) => {
    const throwIt = () => {
      throw new RangeError(name);
    };
    const world = settled({ [name]: throwIt });
    world.feed(100, 'a');
    expect(world.ends).toEqual([`RangeError: ${name}`]);
    expect([world.feed$.observed, world.ledger$.observed]).toEqual([false, false]);
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

  it.each<[option: string, wrong: object]>([
    ['key', { key: 'hash' }],
    ['withinMs', { withinMs: 0 }],
    ['withinMs, if it is missing', { withinMs: undefined }],
    ['slot', { slot: 1 }],
    ['keep', { keep: 1 }],
    ['withinBlocks', { withinBlocks: 0.5 }],
    ['graceMs', { graceMs: -1 }],
    ['rememberMs', { rememberMs: NaN }],
    ['allowedLatenessMs', { allowedLatenessMs: -1 }],
    ['maxTrades', { maxTrades: 0 }],
    ['maxBytes', { maxBytes: 0 }],
    ['scheduler', { scheduler: {} }],
    ['within, which does not exist', { within: 1 }],
  ])('throws an error that names the wrong option: %s', (option, wrong) => {
    const name = new RegExp(`\\b${option.split(',')[0]}\\b`);
    expect(() => settle(NEVER, { key: () => 'a', withinMs: 1, ...wrong })).toThrow(name);
  });

  it('throws an error that names ledger$ when it is no Observable', () => {
    expect(() => settle(undefined as never, { key: () => 'a', withinMs: 1 })).toThrow(/ledger\$/);
  });
});

describe('windows with outcomeStats', () => {
  it('count the failed trades apart: the coverage and the leads are those of the executed ones', async () => {
    const world = driven({ rememberMs: 40 });
    const windows = lastValueFrom(world.settled$.pipe(tumblingWindow({ lengthMs: 1_000, ...outcomeStats })));
    world.open(0);
    world.feed(100, ...'abcf');
    const failed = (keys: string) => entries(keys).map((entry) => ({ ...entry, failed: true as const }));
    // The feed shows a, b, c and f. It never shows d, e and g: only d is missed, because the others failed.
    world.ledger(104, '', { confirmed: [...entries('abd'), ...failed('cefg')], depth: 9 });
    world.ledger(106, '', { confirmed: entries('f'), removed: entries('f'), depth: 9 });
    world.ledger(140);
    world.feed$.complete();
    const { value } = await windows;
    expect(value).toMatchObject({ confirmed: 3, failed: 1, unseen: 1, unknown: 0 });
    expect(coverage(value)).toBe(3 / 4);
    expect(Object.values(value.leads).reduce((sum, count) => sum + count, 0)).toBe(3);
    const correction = world.outcomes().find(({ previous }) => previous !== undefined);
    expect(correction?.previous).toEqual({ state: 'failed', at: 104, leadMs: 4 });
  });

  it('know the coverage, and the leads to 19 %', () => {
    const add = (all: OutcomeStats, state: 'confirmed' | 'unseen', more: object) =>
      outcomeStats.add(all, { type: 'outcome', state, key: 'a', at: 0, ...more });
    const leads = [10, 100, 1_000, -50, 0.5];
    const confirmed = leads.reduce((all, leadMs) => add(all, 'confirmed', { leadMs }), outcomeStats.seed());
    const stats = add(confirmed, 'unseen', {});
    expect(coverage(stats)).toBeCloseTo(5 / 6);
    expect(leadAt(stats, 0.4)).toBe(0);
    for (const [share, lead] of Object.entries({ 0: -50, 0.6: 10, 0.8: 100, 1: 1_000, 1.5: 1_000 }))
      expect(Math.abs(leadAt(stats, Number(share))! / lead - 1)).toBeLessThan(0.19);
    const corrected = add(stats, 'unseen', { previous: { state: 'confirmed', at: 0, leadMs: 1_000 } });
    expect(Math.abs(leadAt(corrected, 1)! / 100 - 1)).toBeLessThan(0.19);
    expect(outcomeStats.add(corrected, 'another item')).toBe(corrected);
    const empty = outcomeStats.seed();
    expect([coverage(empty), leadAt(empty, 0.5)]).toEqual([undefined, undefined]);
  });
});
