import { describe, expect, it } from '@jest/globals';
import { Follower } from '../../src/cluster/follower.js';
import type { FeedMessage, MessageHead } from '../../src/cluster/messages.js';
import { Publisher } from '../../src/cluster/publisher.js';
import {
  createTradeFeedError,
  type FeedEvent,
  Frame,
  type LifecycleEvent,
  type OwnerChanged,
} from '../../src/index.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { createFailure } from '../../src/protocol/failures/trade-feed-error.js';
import { afterEvent, afterFrame, noFeed } from '../../src/protocol/feed-state.js';
import { frameAt } from '../../src/protocol/frame.js';

/** A message that arrives, or something else that happens, at a monotonic time. */
type Step = readonly [now: number, what: FeedMessage | 'tick' | 'away' | 'behind'];

/** Creates a follower to which the steps of a script happen, and then others. */
const follow = (script: string, ...steps: readonly Step[]) => {
  const events: (FeedEvent | OwnerChanged)[] = [];
  const follower = new Follower('market', (event) => events.push(event));
  const go = (...more: readonly Step[]): void => {
    for (const [now, what] of more) {
      if (what === 'tick') follower.tick(now);
      else if (typeof what === 'string') follower.away(what);
      else follower.receive(what, now);
    }
  };
  go(...stepsOf(script), ...steps);
  return { follower, events, go };
};

const word = (event: FeedEvent | OwnerChanged): string => {
  if (event.type === 'frame') return `${event.text()}/${event.connection}`;
  if (event.type === 'gap') return `gap ${event.failure.code} ${event.missed ?? '?'}`;
  if (event.type === 'owner-changed') return `owner ${event.owner} ${event.generation}`;
  if (event.type === 'opened') return `opened ${event.connection}`;
  return event.type;
};

const head = (gen: number, sequence: number, fields: Partial<MessageHead> = {}): MessageHead => ({
  ...{ epoch: 1, gen, owner: `r${gen}`, phase: 'open', revision: 1, sequence, frames: sequence, at: 1_000 + sequence },
  settling: undefined,
  ...fields,
});
const framesOf = (...frames: readonly Frame[]) => ({
  kind: 'batch' as const,
  bytes: frames.reduce((sum, { byteLength }) => sum + byteLength, 0),
  framesOf: (connection: number, laterMs: number) =>
    frames.map((frame) => frameAt(frame, frame.receivedAt + laterMs, connection)),
});
const batch = (gen: number, sequence: number, texts: string, fields: Partial<MessageHead> = {}): FeedMessage => ({
  ...head(gen, sequence, fields),
  ...framesOf(...texts.split(' ').map((text) => new Frame('market', Buffer.from(text), false, 1_000, 0))),
});
const beat = (gen: number, sequence: number, fields: Partial<MessageHead> = {}): FeedMessage => ({
  ...head(gen, sequence, fields),
  kind: 'beat',
});
const eventOf = (gen: number, sequence: number, event: LifecycleEvent, fields: Partial<MessageHead>): FeedMessage => ({
  ...head(gen, sequence, fields),
  ...{ kind: 'event', event },
});

const lost = createTradeFeedError({ stage: 'stream', closeCode: 1006 });
const handedOver = createFailure(clusterMeanings.ownerChanged, { stage: 'stream', endedAt: 2 });
const refused = createTradeFeedError({ stage: 'ticket', status: 403 });
const opened = { type: 'opened', at: 1, feed: 'market', connection: 1 } as const;
const gap = { type: 'gap', from: 2, to: 3, durationMs: 1, failure: lost } as const;
const events: Readonly<Record<string, LifecycleEvent>> = {
  OPENED: opened,
  LOST: { type: 'disconnected', at: 2, failure: lost },
  GAP: gap,
  CHANGED: { ...gap, failure: handedOver },
};

/**
 * Reads steps such as `10: 2.1 c d`: at 10 ms a message of generation 2 arrives, before which it has 1 item, with the
 * frames c and d. `1.4/2` has 4 items of which 2 are frames, `2.1@x` is of the owner x, `2.0?` of one that is opening,
 * `2.0~` of one whose connection settles, and `2.0~900` of one that is complete from 900 on.
 */
const stepsOf = (script: string): readonly Step[] =>
  script
    .split(', ')
    .filter(Boolean)
    .map((step): Step => {
      const [, now = '', gen, sequence, frames = sequence, owner = `r${gen}`, opening, settles, what = ''] =
        /^(\d+): (?:(\d+)\.(\d+)(?:\/(\d+))?(?:@(\w+))?(\?)?(~\d*)? )?(.*)$/.exec(step) ?? [];
      if (gen === undefined) return [Number(now), what as 'tick'];
      const phase = opening ? ('opening' as const) : ('open' as const);
      const settling = settles === '~' ? ('auto' as const) : settles && Number(settles.slice(1));
      const fields = { frames: Number(frames), owner, phase, ...(settling && { settling }) };
      return [Number(now), messageOf(what, Number(gen), Number(sequence), fields)];
    });

const messageOf = (what: string, gen: number, sequence: number, fields: Partial<MessageHead>): FeedMessage => {
  const event = events[what];
  const to = head(gen, sequence).at;
  if (event?.type === 'gap') return eventOf(gen, sequence, { ...event, from: to - 1, to }, fields);
  if (event) return eventOf(gen, sequence, event, fields);
  if (what === 'BEAT' || what === 'END')
    return { ...head(gen, sequence, fields), kind: what === 'BEAT' ? 'beat' : 'end' };
  if (!what.startsWith('REPORT')) return batch(gen, sequence, what, fields);
  const at = Number(what.slice('REPORT'.length));
  return {
    ...head(gen, sequence, { ...fields, at }),
    kind: 'report',
    event: { type: 'disconnected', at, failure: refused },
  };
};

/** The words of a change of the owner. */
const changed = (gen: number, connection: number): string =>
  `owner r${gen} ${gen}, opened ${connection}, gap owner-changed ?`;

describe('a follower', () => {
  it.each([
    ['begins with no message of an owner that has lost its connection', '0: 1.4? LOST', ''],
    ['has no outage before the first message', '0: away', ''],
    ['drops messages of another owner with the same generation', '0: 1.0 a, 0: 1.1@other x', 'opened 1, a/1'],
    [
      'emits the frames of one owner only, if a store that has lost data used a number twice',
      '0: 1.0 a, 1: 2.0 b, 2: 2.1@other x, 3: 2.1 c, 101: tick',
      `opened 1, a/1, ${changed(2, 2)}, b/2, c/2`,
    ],
    [
      'reports frames that are missing before the end of the old generation',
      '0: 1.0 a, 10: 2.0 c, 30: 1.4 END',
      `opened 1, a/1, gap cluster-behind 3, ${changed(2, 2)}, c/2`,
    ],
    [
      'holds a new generation for 100 ms at most',
      '0: 1.0 a, 10: 2.0 c, 109: tick, 109: 1.1 b, 110: tick, 111: 1.2 late',
      `opened 1, a/1, b/1, ${changed(2, 2)}, c/2`,
    ],
    [
      'does not hold a generation when the old owner has been silent for longer than the time between two beats',
      '0: 1.0 a, 250: 1.1 BEAT, 651: 2.0 c, 700: 3.0 held',
      `opened 1, a/1, watermark, ${changed(2, 2)}, c/2`,
    ],
    [
      'drops a message of a generation between the current one and the one that it holds',
      '0: 1.0 a, 10: 3.0@x c, 20: 2.1@x b, 110: tick',
      'opened 1, a/1, owner x 3, opened 2, gap owner-changed ?, c/2',
    ],
    [
      'emits once what an owner without a connection reports, also before the first frame',
      '0: 1.0? REPORT5, 250: 1.0? REPORT5, 300: 1.0? REPORT300',
      'disconnected, disconnected',
    ],
    [
      'has a gap if the previous owner continues after a report',
      '0: 1.0 a, 500: 2.0? REPORT1500, 600: 1.3 b',
      'opened 1, a/1, disconnected, opened 2, gap cluster-away 2, b/2',
    ],
    [
      'begins a generation with its opened, not with the beat before it',
      '0: 1.0 a, 0: 1.1 END, 10: 2.0~ BEAT, 10: 2.0/0~900 OPENED',
      'opened 1, a/1, owner r2 2, opened 2',
    ],
    [
      'reports one gap if it missed the opened of a new owner',
      '0: 1.0 a, 0: 1.1 END, 10: 2.1/0 CHANGED, 20: 2.2/0 b',
      'opened 1, a/1, owner r2 2, opened 2, gap owner-changed ?, b/2',
    ],
    [
      'reports one gap if a new owner loses its connection before it is complete',
      '0: 1.0 a, 0: 1.1 END, 1: 2.0/0~ OPENED, 2: 2.1/0?~ LOST, 3: 2.2/0~ OPENED, 4: 2.3/0 CHANGED, 5: 2.4/0 b',
      'opened 1, a/1, owner r2 2, opened 2, disconnected, opened 3, gap owner-changed ?, b/3',
    ],
    [
      'drops the gap of its first owner, and none after that',
      '0: 1.0/0~ OPENED, 1: 1.1/0 CHANGED, 2: 1.2/0 a, 3: 1.3/1?~ LOST, 4: 1.4/1~ OPENED, 5: 1.5/1 GAP, 6: 1.6/1 b',
      'opened 1, a/1, disconnected, opened 2, gap connection-lost ?, b/2',
    ],
    [
      'drops the gap of an outage that had begun before it joined',
      '0: 1.7/3~ BEAT, 1: 1.7/3 GAP, 2: 1.8/3 a',
      'opened 1, watermark, a/1',
    ],
    [
      'is not complete when it has missed the end of a connection, and the next one settles',
      '0: 1.0 a, 1: 1.3/1~ BEAT, 2: 1.3/1 GAP, 3: 1.4/1 b',
      'opened 1, a/1, disconnected, opened 2, watermark, gap cluster-behind ?, b/2',
    ],
    [
      'stays away while the owner has no connection',
      '0: 1.0 a, 1: 1.2/1? BEAT, 2: 1.2/1? BEAT, 3: 1.2/1~ OPENED, 4: 1.3/1 GAP, 5: 1.4/1 b',
      'opened 1, a/1, disconnected, opened 2, gap cluster-behind ?, b/2',
    ],
    [
      'stays away until the next owner, if only the end of the owner arrives',
      '0: 1.0 a, 1: away, 2: 1.4/2? END, 3: 2.0/0~ OPENED, 4: 2.1/0 CHANGED, 5: 2.2/0 b',
      'opened 1, a/1, disconnected, owner r2 2, opened 2, gap owner-changed ?, b/2',
    ],
    [
      'lets no time pass until the opened of an owner that was replaced',
      '0: 1.0 a, 250: 1.1?~ BEAT, 299: 1.1~ BEAT, 300: 1.1~ OPENED, 301: 1.2/1 GAP',
      'opened 1, a/1, opened 2, gap connection-replaced ?',
    ],
    [
      'has a gap without a number if it returned while the connection settled, and was away again',
      '0: 1.0 a, 1: away, 2: 1.9/8~ BEAT, 3: away, 4: 1.9/8 BEAT',
      'opened 1, a/1, disconnected, opened 2, watermark, disconnected, opened 3, gap cluster-away ?, watermark',
    ],
    [
      'has a gap before a frame with a fixed delay, if others did not arrive',
      '0: 1.0 a, 1: 1.1/1?~ LOST, 2: 1.2/1~2000 OPENED, 3: 1.3/1~2000 b, 4: 1.6/4~2000 c, 5: 1.7/5 BEAT',
      'opened 1, a/1, disconnected, opened 2, gap connection-lost ?, b/2, gap connection-lost ?, c/2, watermark',
    ],
    [
      'lets no time pass while an owner that was replaced has no connection',
      '0: 1.0 a, 250: 1.1? BEAT, 300: 1.1~ OPENED, 301: 1.2/1 GAP',
      'opened 1, a/1, opened 2, gap connection-replaced ?',
    ],
    [
      'reports both gaps of a fixed delay, and frames between',
      '0: 1.0 a, 0: 1.1 END, 1: 2.0/0~900 OPENED, 2: 2.1/0~900 CHANGED, 3: 2.2/0~900 b, 4: 2.3/1 CHANGED',
      'opened 1, a/1, owner r2 2, opened 2, gap owner-changed ?, b/2, gap owner-changed ?',
    ],
  ])('%s', (_, script, words) => {
    expect(follow(script).events.map(word).join(', ')).toBe(words);
  });

  it.each<[string, string, readonly (number | undefined)[]]>([
    ['in its own times', '0: 1.0 a, 0: 1.1 END, 500: 2.0~5000 a', [1_000, 5_001]],
    ['when it returns to an owner that is complete', '0: 1.0 a, 0: away, 1: 1.4 a', [1_000, 1_004]],
  ])('says from when a connection is complete: %s', (_, script, expected) => {
    const { events } = follow(script);
    expect(events.flatMap((event) => (event.type === 'opened' ? [event.completeFrom] : []))).toEqual(expected);
  });

  it.each([
    ['of the service', '0: 1.0 a, 1: 1.1/1?~ LOST, 2: 1.2/1~ OPENED, 3: 1.3/1 GAP'],
    ['of a connection that was replaced', '0: 1.0 a, 300: 1.1~ OPENED, 301: 1.2/1~ BEAT, 302: 1.5/3 BEAT'],
    ['of which only the end arrives', '0: 1.0 a, 1: 1.3/2 GAP'],
  ])('has one outage and one end of it for all that fold its events: an outage %s', (_, script) => {
    const { events } = follow(script);
    let state = noFeed;
    let newestAt: number | undefined;
    for (const event of events) {
      const at = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
      // Nothing is missing before the first frame, at 1,000.
      const from = state.outage && Math.max(state.outage.from, 1_000);
      if (event.type === 'gap') expect(event.from).toBe(from ?? newestAt);
      state = event.type === 'frame' ? afterFrame(state, at) : afterEvent(state, event, newestAt);
      newestAt = at;
    }
    expect(events.at(-1)?.type).not.toBe('frame');
    expect(state).toMatchObject({ outage: undefined, settling: undefined, completeFrom: expect.any(Number) });
  });

  it('has times that never go back, also after a gap that ended before', () => {
    const { events } = follow(
      '0: 1.0 a, 0: 1.1 END',
      [600, eventOf(2, 0, { ...opened, at: 1_000 }, { at: 1_000, settling: 'auto' })],
      [650, beat(2, 1, { at: 1_050, settling: 'auto', frames: 0 })],
      [660, eventOf(2, 1, { ...gap, to: 1_000 }, { at: 1_000, frames: 0 })],
      [661, beat(2, 2, { at: 1_061, frames: 0 })],
    );
    expect(events.slice(2).map((event) => (event.type === 'gap' ? event.to : 'at' in event && event.at))).toEqual([
      1_001, 1_001, 1_051, 1_001, 1_062,
    ]);
  });

  it('begins the gap of a new owner at the last frame of one that stood still before its end: it may have been replaced meanwhile', () => {
    const end: FeedMessage = { ...head(1, 1, { at: 3_700 }), kind: 'end' };
    const { events } = follow('0: 1.0 a', [2_700, end], [2_710, beat(2, 0, { at: 3_710 })]);
    expect(events.find(({ type }) => type === 'gap')).toMatchObject({ from: 1_000, to: 3_710 });
  });

  it('has a gap from the last message to the next one', () => {
    const { events } = follow('0: 1.0 a, 0: 1.8 b, 0: away');
    expect(events[2]).toMatchObject({ type: 'gap', from: 1_000, to: 1_008, durationMs: 8 });
    expect(events.at(-1)).toMatchObject({ at: 1_008, failure: { code: 'cluster-away', endedAt: 1_008 } });
  });

  it('moves its position with the gap of a new owner, so that a client that resumes before it receives the gap', () => {
    const positions: unknown[] = [];
    const follower: Follower = new Follower('market', ({ type }) => positions.push([type, follower.position?.frames]));
    for (const [now, what] of stepsOf('0: 1.0 a, 0: 1.1 END, 1: 2.5 b')) follower.receive(what as FeedMessage, now);
    const expected = 'opened 0, frame 1, owner-changed 1, opened 1, gap 5, frame 6';
    expect(positions.map((each) => (each as unknown[]).join(' ')).join(', ')).toBe(expected);
  });

  it('has the generation of its newest message, even one that waits, and needs a tick while one waits', () => {
    const { follower, go } = follow('');
    expect([follower.followed.gen, follower.nextTick]).toEqual([0, undefined]);
    go(...stepsOf('0: 1.0 a, 10: 3.0 b'));
    expect([follower.followed.gen, follower.nextTick]).toEqual([3, 110]);
    go([110, 'tick']);
    expect([follower.followed.gen, follower.nextTick]).toEqual([3, undefined]);
  });

  it.each([
    ['64 MiB of frames', 9, () => framesOf(new Frame('market', Buffer.alloc(8 * 1024 * 1024), true, 1, 0))],
    ['10,000 messages', 10_001, () => framesOf(new Frame('market', Buffer.alloc(1), true, 1, 0))],
  ])('does not hold more than %s', (_, count, create) => {
    const { follower, events, go } = follow('0: 1.0 a');
    const content = create();
    for (let n = 0; n < count - 1; n += 1) go([10, { ...head(2, n), ...content }]);
    expect(follower.nextTick).toBe(110);
    go([10, { ...head(2, count - 1), ...content }]);
    expect(follower.nextTick).toBeUndefined();
    expect(events.filter(({ type }) => type === 'frame')).toHaveLength(count + 1);
  });
});

describe('the times of a follower', () => {
  it('return to those of the owner if only its first messages were handled late', () => {
    const later = [[500, 5_000] as const, [5_500, 5_001] as const, [6_250, 5_250] as const];
    const { events } = follow('0: 1.0 BEAT, 0: 1.0 END', ...later.map(([at, now]): Step => [now, beat(2, 0, { at })]));
    expect(events.slice(-3)).toMatchObject([1_000, 5_996, 6_250].map((at) => ({ type: 'watermark', at })));
  });

  it('accept a clock that is ahead after the engine was away: the machine may have slept', () => {
    const { events } = follow('0: 1.0 BEAT, 0: away', [1_000, beat(2, 0, { at: 62_000 })]);
    expect(events.at(-1)).toEqual({ type: 'watermark', at: 62_000 });
  });

  it('shift the times of frames, gaps and failures of the next owner as well', () => {
    const frame = new Frame('market', Buffer.from('a'), false, 62_010, 0);
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 62_020 });
    const gap = { type: 'gap', from: 62_020, to: 62_030, durationMs: 10, failure } as const;
    const { events } = follow(
      '0: 1.0 BEAT, 0: 1.0 END',
      [1_000, { ...head(2, 0, { at: 62_000 }), ...framesOf(frame) }],
      [1_030, eventOf(2, 1, gap, { at: 62_030 })],
    );
    expect(events.slice(-2)).toMatchObject([
      { type: 'frame', receivedAt: 2_010 },
      { type: 'gap', from: 2_020, to: 2_030, failure: { endedAt: 2_020 } },
    ]);
    expect(frame.receivedAt).toBe(62_010);
  });
});

describe('a new owner', () => {
  it('is not complete once its connection was replaced, although no event says so', () => {
    const publisher = new Publisher();
    const report = { gen: 1, owner: 'r1', revision: 1 };
    publisher.report({ ...report, phase: 'open' }, 1);
    publisher.event(opened);
    publisher.event(gap);
    expect(publisher.beat(5).settling).toBeUndefined();
    publisher.report({ ...report, phase: 'opening' }, 1);
    expect(publisher.beat(6).settling).toBe('auto');
    publisher.report({ ...report, phase: 'open' }, 1);
    expect(publisher.beat(7).settling).toBe('auto');
  });

  it('adds to its clock what continues the time of the stream, until that is right again', () => {
    const publisher = new Publisher();
    const times = [undefined, 9_800, 70_000, 70_000, 10_300].map((time, n) => {
      publisher.continue(time, 10_000 + n);
      return publisher.beat(10_000 + n).at;
    });
    expect(times).toEqual([10_000, 10_001, 70_000, 70_001, 10_004]);
  });
});
