import { describe, expect, it } from '@jest/globals';
import { Follower } from '../../src/cluster/follower.js';
import type { FeedMessage, FeedHead } from '../../src/cluster/messages.js';
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
import { Publisher } from '../../src/cluster/publisher.js';
import { frameAt } from '../../src/protocol/frame.js';
import type { Place } from '../../src/protocol/place.js';

/** A message that arrives, or a cut of the engine, at a monotonic time. */
type Step = readonly [now: number, what: FeedMessage | 'away' | 'behind'];

/** Creates a follower to which the steps of a script happen, and then others. */
const follow = (script: string, ...steps: readonly Step[]) => {
  const events: (FeedEvent | OwnerChanged)[] = [];
  const positions: (Place | undefined)[] = [];
  let isTimed = false;
  const follower: Follower = new Follower('market', (event) => {
    // The time follows the first `opened`, whatever the message is.
    const before = events.at(-1);
    if (event.type === 'watermark' && before?.type === 'opened' && before.connection === 1 && !isTimed) {
      isTimed = true;
      return;
    }
    events.push(event);
    positions.push(follower.position);
  });
  for (const [now, what] of [...stepsOf(script), ...steps])
    if (typeof what === 'string') follower.away(what);
    else follower.receive(what, now);
  return { follower, events, positions, words: events.map(word).join(', ') };
};

const word = (event: FeedEvent | OwnerChanged): string => {
  if (event.type === 'frame') return `${event.text()}/${event.connection}`;
  if (event.type === 'gap') return `gap ${event.failure.code} ${event.missed ?? '?'}`;
  if (event.type === 'owner-changed') return `owner ${event.owner} ${event.generation}`;
  if (event.type === 'opened') return `opened ${event.connection}`;
  return event.type;
};

/** The time of a message at this offset is 1,000 ms later, unless it says another one. */
const head = (gen: number, offset: number, fields: Partial<FeedHead> = {}): FeedHead => {
  const at = fields.at ?? 1_000 + offset;
  return {
    ...{ line: 'l', gen, after: gen - 1, began: 0, owner: `r${gen}`, phase: 'open', revision: 1 },
    ...{ offset, frames: offset, holes: 0, count: 1, at, complete: at, settling: undefined },
    ...fields,
  };
};
const frameOf = (text: string, at: number): Frame => new Frame('market', Buffer.from(text), false, at, 0);
const framesOf = (...frames: readonly Frame[]) => ({
  kind: 'batch' as const,
  count: frames.length,
  framesOf: (connection: number, laterMs: number) =>
    frames.map((frame) => frameAt(frame, frame.receivedAt + laterMs, connection)),
});
const beat = (gen: number, offset: number, fields: Partial<FeedHead> = {}): FeedMessage => ({
  ...head(gen, offset, { count: 0, ...fields }),
  kind: 'beat',
});
const eventOf = (gen: number, offset: number, event: LifecycleEvent, fields: Partial<FeedHead>): FeedMessage => ({
  ...head(gen, offset, fields),
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
  REFUSED: { type: 'disconnected', at: 2, failure: refused },
  GAP: gap,
  CHANGED: { ...gap, failure: handedOver },
};

/**
 * Reads steps such as `10: 2.1 c d`: at 10 ms a message of generation 2 arrives, which begins at the offset 1, with the
 * frames c and d. `1.4/2` has 4 records before it, of which 2 are frames, and `1.4+1` one gap without a number. A
 * generation began at the offset of its first message, and `2.4^1` at 1. `3.1<1` comes after generation 1. `m:2.0` is of
 * the line m, `2.1@x` of the owner x, `2.0?` of one that is opening, `2.0~` of one whose connection settles, and
 * `2.0~900` of one that is complete from 900 on. `BEAT REFUSED` says why its owner has no connection.
 */
const stepsOf = (script: string): readonly Step[] => {
  const begun = new Map<string, number>();
  return script
    .split(', ')
    .filter(Boolean)
    .map((step): Step => {
      const { groups = {} } = format.exec(step) ?? {};
      const {
        now,
        gen,
        line = 'l',
        offset,
        frames = offset,
        holes,
        began,
        after,
        owner,
        opening,
        settles,
        what,
      } = groups;
      if (gen === undefined) return [Number(now), what as 'away'];
      if (!begun.has(gen)) begun.set(gen, Number(began ?? offset));
      const fields: Partial<FeedHead> = {
        ...{ line, began: begun.get(gen)!, frames: Number(frames), holes: Number(holes ?? 0) },
        phase: opening ? 'opening' : 'open',
        ...(owner && { owner }),
        ...(after && { after: Number(after) }),
        ...(settles !== undefined && { settling: settles === '' ? 'auto' : Number(settles), complete: 1_000 }),
      };
      return [Number(now), messageOf(what ?? '', Number(gen), Number(offset), fields)];
    });
};
const format =
  /^(?<now>\d+): (?:(?:(?<line>m):)?(?<gen>\d+)\.(?<offset>\d+)(?:\/(?<frames>\d+))?(?:\+(?<holes>\d+))?(?:\^(?<began>\d+))?(?:<(?<after>\d+))?(?:@(?<owner>\w+))?(?<opening>\?)?(?:~(?<settles>\d*))? )?(?<what>.*)$/;

const messageOf = (what: string, gen: number, offset: number, fields: Partial<FeedHead>): FeedMessage => {
  const [kind, reason] = what.split(' ');
  if (kind === 'BEAT') return { ...beat(gen, offset, fields), event: events[reason ?? ''] } as FeedMessage;
  if (kind === 'END') return { ...head(gen, offset, { count: 0, ...fields }), kind: 'end' };
  const event = events[what];
  const to = head(gen, offset).at;
  if (event?.type === 'gap') return eventOf(gen, offset, { ...event, from: to - 1, to }, fields);
  if (event) return eventOf(gen, offset, { ...event, at: to }, fields);
  const frames = what.split(' ').map((text) => frameOf(text, to));
  return { ...head(gen, offset, fields), ...framesOf(...frames) };
};

/** Folds events, as windows do. `begun`: when the outage of each gap began, as the events before it say. */
const folded = (events: readonly (FeedEvent | OwnerChanged)[]) => {
  const begun: (number | undefined)[] = [];
  let state = noFeed;
  let newestAt: number | undefined;
  for (const event of events) {
    const at = event.type === 'frame' ? event.receivedAt : event.type === 'gap' ? event.to : event.at;
    // Nothing is missing before the first frame, at 1,000.
    if (event.type === 'gap') begun.push(state.outage ? Math.max(state.outage.from, 1_000) : newestAt);
    state = event.type === 'frame' ? afterFrame(state, at) : afterEvent(state, event, newestAt);
    newestAt = at;
  }
  return { state, begun };
};

/** The words of a change of the owner. */
const changed = (gen: number, connection: number): string =>
  `owner r${gen} ${gen}, opened ${connection}, gap owner-changed ?`;

/** What happens to a follower, and what it emits. */
const rules = `
emits once why an owner has no connection, also if it joins later
  0: 1.0? BEAT REFUSED, 250: 1.0? BEAT REFUSED, 300: 1.0? LOST
  disconnected, watermark, watermark, disconnected
drops what it has, also if a message overlaps
  0: 1.0 a b, 1: 1.0 a b, 2: 1.1 b c, 3: 1.0 a, 4: 1.3 d
  opened 1, a/1, b/1, c/1, d/1
drops messages of another owner with the same generation
  0: 1.0 a, 0: 1.1@other x
  opened 1, a/1
emits the frames of one owner only, if a store that has lost data used a number twice
  0: 1.0 a, 1: 2.1 b, 2: 2.2@other x, 3: 2.2 c
  opened 1, a/1, ${changed(2, 2)}, b/2, c/2
drops what arrives after the end of a generation
  0: 1.0 a, 10: 1.3 END, 11: 1.1 b, 12: 1.3 BEAT, 13: 2.3 c
  opened 1, a/1, gap cluster-behind 2, ${changed(2, 2)}, c/2
drops what a replaced owner still sends
  0: 1.0 a, 10: 3.1<1 c, 20: 2.1@x b, 30: 1.1 b, 40: 3.2 d
  opened 1, a/1, ${changed(3, 2)}, c/2, d/2
reports exactly how many frames are missing, whether a frame or a beat shows it
  0: 1.0 a, 1: 1.4 b, 2: 1.7/6 BEAT
  opened 1, a/1, gap cluster-behind 3, b/1, gap cluster-behind 1, watermark
omits the number of missing frames if a gap without a number is among them
  0: 1.0 a, 1: 1.4/3+1 b
  opened 1, a/1, gap cluster-behind ?, b/1
reports frames that are missing before the end of the old generation
  0: 1.0 a, 10: 1.4 END, 20: 2.4 c
  opened 1, a/1, gap cluster-behind 3, ${changed(2, 2)}, c/2
reports one gap without a number if frames are missing on both sides of a change of the owner
  0: 1.0 a, 10: 2.6^4 c
  opened 1, a/1, ${changed(2, 2)}, c/2
reports one gap without a number for a generation that it has not heard of
  0: 1.0 a, 10: 3.4<2 c
  opened 1, a/1, ${changed(3, 2)}, c/2
reports a gap without a number if a new line begins, even at a lower offset
  0: 1.0 a b, 10: m:2.1 c
  opened 1, a/1, b/1, ${changed(2, 2)}, c/2
continues with a new owner that has not received the last frames of the previous one
  0: 1.0 a b c, 10: 2.1/1~ OPENED, 11: 2.2/1 CHANGED, 12: 2.3/1+1 d
  opened 1, a/1, b/1, c/1, ${changed(2, 2)}, d/2
has no gap if it was cut off and missed nothing
  0: 1.0 a, 1: away, 2: 1.1 b
  opened 1, a/1, disconnected, opened 2, b/2
has no gap if it was cut off and a beat shows that it missed nothing
  0: 1.0 a, 1: behind, 2: 1.1 BEAT
  opened 1, a/1, disconnected, opened 2, watermark
has the exact number of frames that it missed while it was cut off
  0: 1.0 a, 1: away, 2: 1.3 b
  opened 1, a/1, disconnected, opened 2, gap cluster-away 2, b/2
has the gap of the new owner if the owner changed while it was cut off
  0: 1.0 a, 1: away, 2: 2.1 b
  opened 1, a/1, disconnected, ${changed(2, 2)}, b/2
has the outage of the owner alone if the connection was lost while it was cut off
  0: 1.0 a, 1: away, 2: 1.1~ LOST, 3: 1.2/1~ OPENED, 4: 1.3/1 GAP
  opened 1, a/1, disconnected, disconnected, opened 2, gap connection-lost ?
opens with the opened of a new owner, not with the beat before it
  0: 1.0 a, 0: 1.1 END, 10: 2.1~ BEAT, 10: 2.1~900 OPENED
  opened 1, a/1, owner r2 2, watermark, opened 2
reports one gap if it missed the opened of a new owner
  0: 1.0 a, 0: 1.1 END, 10: 2.2/1^1 CHANGED, 20: 2.3/1+1 b
  opened 1, a/1, owner r2 2, opened 2, gap owner-changed ?, b/2
reports one gap if a new owner loses its connection before it is complete
  0: 1.0 a, 0: 1.1 END, 1: 2.1~ OPENED, 2: 2.2/1?~ LOST, 3: 2.3/1~ OPENED, 4: 2.4/1 CHANGED, 5: 2.5/1+1 b
  opened 1, a/1, owner r2 2, opened 2, disconnected, opened 3, gap owner-changed ?, b/3
drops the gap of its first owner, and none after that
  0: 1.0/0~ OPENED, 1: 1.1/0 CHANGED, 2: 1.2/0+1 a, 3: 1.3/1+1?~ LOST, 4: 1.4/1+1~ OPENED, 5: 1.5/1+1 GAP, 6: 1.6/1+2 b
  opened 1, a/1, disconnected, opened 2, gap connection-lost ?, b/2
drops the gap of an outage that had begun before it joined
  0: 1.7/3~ BEAT, 1: 1.7/3 GAP, 2: 1.8/3+1 a
  opened 1, watermark, a/1
is not complete when it has missed the end of a connection, and the next one settles
  0: 1.0 a, 1: 1.3/1~ BEAT, 2: 1.3/1 GAP, 3: 1.4/1+1 b
  opened 1, a/1, disconnected, opened 2, watermark, gap cluster-behind ?, b/2
stays away while the owner has no connection
  0: 1.0 a, 1: 1.2/1?~ BEAT, 2: 1.2/1?~ BEAT, 3: 1.2/1~ OPENED, 4: 1.3/1 GAP, 5: 1.4/1+1 b
  opened 1, a/1, disconnected, watermark, watermark, opened 2, gap cluster-behind ?, b/2
stays away until the next owner, if only the end of the owner arrives
  0: 1.0 a, 1: away, 2: 1.4/2? END, 3: 2.4/2~ OPENED, 4: 2.5/2 CHANGED, 5: 2.6/2+1 b
  opened 1, a/1, disconnected, owner r2 2, opened 2, gap owner-changed ?, b/2
lets no time pass until the opened of an owner that was replaced
  0: 1.0 a, 250: 1.1?~ BEAT, 299: 1.1~ BEAT, 300: 1.1~ OPENED, 301: 1.2/1 GAP
  opened 1, a/1, opened 2, gap connection-replaced ?
has the gap of a connection that was replaced before it was complete, for who joined then
  0: 1.5/0~ OPENED, 1: 1.6/0~ a, 2: 1.7/1?~ BEAT, 3: 1.7/1?~ REFUSED, 4: 1.8/1~ OPENED, 5: 1.9/1 GAP, 6: 1.10/1+1 b
  opened 1, a/1, disconnected, opened 2, gap connection-replaced ?, b/2
has the gap of a connection that was replaced while the owner was away
  0: 1.0 a, 300: away, 301: 1.1~ OPENED, 302: 1.2/1 GAP, 303: 1.3/1+1 b
  opened 1, a/1, disconnected, opened 2, gap connection-replaced ?, b/2
has a gap without a number if it returned while the connection settled, and was away again
  0: 1.0 a, 1: away, 2: 1.9/8~ BEAT, 3: away, 4: 1.10/8+1 BEAT
  opened 1, a/1, disconnected, opened 2, watermark, disconnected, opened 3, gap cluster-away ?, watermark
has a gap before a frame with a fixed delay, if others did not arrive
  0: 1.0 a, 1: 1.1/1?~ LOST, 2: 1.2/1~2000 OPENED, 3: 1.3/1~2000 b, 4: 1.6/4~2000 c, 5: 1.7/5 BEAT
  opened 1, a/1, disconnected, opened 2, gap connection-lost ?, b/2, disconnected, opened 3, gap cluster-behind ?, c/3, watermark
has another gap if a connection with a fixed delay is replaced before it is complete
  0: 1.0 a, 1: 1.1?~ LOST, 2: 1.2/1~2000 OPENED, 3: 1.3/1~2000 GAP, 4: 1.4/1+1~2100 OPENED, 5: 1.5/1+1~2100 b
  opened 1, a/1, disconnected, opened 2, gap connection-lost ?, opened 3, gap connection-lost ?, b/3
reports both gaps of a fixed delay, and frames between
  0: 1.0 a, 0: 1.1 END, 1: 2.1~900 OPENED, 2: 2.2/1~900 CHANGED, 3: 2.3/1+1~900 b, 4: 2.4/2+1 CHANGED
  opened 1, a/1, owner r2 2, opened 2, gap owner-changed ?, b/2, gap owner-changed ?
`;

describe('a follower', () => {
  it.each(
    rules
      .trim()
      .split(/\n(?=\S)/)
      .map((rule) => rule.split('\n  ')),
  )('%s', (_, script = '', words) => {
    expect(follow(script).words).toBe(words);
  });

  it('emits nothing before the first connection, or the failure of one', () => {
    expect(follow('0: away, 1: 1.0? BEAT').events).toEqual([]);
  });

  it.each([
    ['the next frame', '', head(1, 1), true],
    ['a frame after a missing one', '', head(1, 2), false],
    ['a frame of the next generation', '', head(2, 1), false],
    ['a frame of another owner', '', head(1, 1, { owner: 'x' }), false],
    ['the next frame while messages may be missing', ', 1: behind', head(1, 1), false],
  ])('says whether it emits next what its own replica publishes: %s', (_, script, place, isNext) => {
    const { follower } = follow(`0: 1.0 a${script}`);
    const publisher = new Publisher();
    Object.assign(publisher.place, place);
    expect(follower.expects(publisher)).toBe(isNext);
  });

  it.each<[string, string, readonly (number | undefined)[]]>([
    ['in its own times', '0: 1.0 a, 0: 1.1 END, 500: 2.1~5000 a', [1_000, 5_000]],
    ['when it returns to an owner that is complete', '0: 1.0 a, 0: away, 1: 1.4 a', [1_000, 1_004]],
  ])('says from when a connection is complete: %s', (_, script, expected) => {
    const { events } = follow(script);
    expect(events.flatMap((event) => (event.type === 'opened' ? [event.completeFrom] : []))).toEqual(expected);
  });

  it.each([
    ['of the service', '0: 1.0 a, 1: 1.1/1?~ LOST, 2: 1.2/1~ OPENED, 3: 1.3/1 GAP'],
    ['of a connection that was replaced', '0: 1.0 a, 300: 1.1~ OPENED, 301: 1.2/1~ BEAT, 302: 1.5/3+1 BEAT'],
    ['of which only the end arrives', '0: 1.0 a, 1: 1.3/2 GAP'],
  ])('has one outage and one end of it for all that fold its events: an outage %s', (_, script) => {
    const { events } = follow(script);
    const { state, begun } = folded(events);
    expect(events.at(-1)?.type).not.toBe('frame');
    expect(events.flatMap((event) => (event.type === 'gap' ? [event.from] : []))).toEqual(begun);
    expect(state).toMatchObject({ outage: undefined, settling: undefined, completeFrom: expect.any(Number) });
    expect(state.totals.gaps).toBe(1);
  });

  it.each([
    ['missed frames', '0: 1.0 a, 1: away, 2: 1.3 BEAT', 3],
    ['missed a change of the owner', '0: 1.0 a, 1: away, 2: 2.3 OPENED, 3: 2.4/3 GAP', 4],
  ])('has one gap for all that fold its events if it was cut off and %s', (_, script, lostMs) => {
    const { events } = follow(script);
    expect(events.filter(({ type }) => type === 'gap')).toMatchObject([{ from: 1_000, to: 1_000 + lostMs }]);
    expect(folded(events).state).toMatchObject({ outage: undefined, totals: { gaps: 1, lostMs } });
  });

  it('has one outage for all that fold its events if the connection ended while it was cut off', () => {
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 1_600 });
    const later: LifecycleEvent = { type: 'disconnected', at: 1_600, failure };
    const settling = { frames: 1, settling: 'auto', complete: 1_600 } as const;
    const { events } = follow(
      '0: 1.0 a, 1: away',
      [600, eventOf(1, 1, later, { ...settling, at: 1_600 })],
      [700, eventOf(1, 2, { ...opened, at: 1_700 }, { ...settling, at: 1_700 })],
      [800, eventOf(1, 3, { ...gap, from: 1_600, to: 1_700 }, { ...settling, at: 1_700, settling: undefined })],
    );
    expect(events.filter(({ type }) => type === 'gap')).toMatchObject([{ from: 1_000, to: 1_700, failure }]);
    expect(folded(events).state.totals).toMatchObject({ gaps: 1, lostMs: 700 });
  });

  it('has no gap for all that fold its events if it was cut off and missed nothing', () => {
    for (const script of ['0: 1.0 a, 1: away, 2: 1.1 b', '0: 1.0 a, 1: behind, 2: 1.1 BEAT, 3: 1.1 b']) {
      const { state } = folded(follow(script).events);
      expect(state).toMatchObject({ outage: undefined, totals: { gaps: 0, lostMs: 0 } });
    }
  });

  it('has times that never go back, also after a gap that ended before', () => {
    const settling = { began: 1, frames: 1, settling: 'auto' } as const;
    const { events } = follow(
      '0: 1.0 a, 0: 1.1 END',
      [600, eventOf(2, 1, { ...opened, at: 900 }, { ...settling, at: 900, complete: 900 })],
      [650, beat(2, 2, { ...settling, at: 950, complete: 900 })],
      [660, eventOf(2, 2, { ...gap, to: 900 }, { ...settling, at: 950, settling: undefined })],
      [661, beat(2, 3, { ...settling, at: 961, holes: 1, settling: undefined })],
    );
    expect(events.slice(2).map((event) => (event.type === 'gap' ? event.to : 'at' in event && event.at))).toEqual([
      1_001, 1_001, 1_051, 1_001, 1_062,
    ]);
  });

  it('emits no frame ahead of the time, although the first one of the message has to come later than it says', () => {
    const frames = [2_000, 2_500, 4_500].map((at) => frameOf('b', at));
    const { events } = follow(
      '0: 1.0 a',
      [500, beat(1, 1, { at: 3_000 })],
      [2_000, { ...beat(2, 1, { began: 1, at: 2_000 }), ...framesOf(...frames) }],
    );
    const times = events.flatMap((event) => (event.type === 'frame' ? [event.receivedAt] : []));
    expect(times).toEqual([1_000, 3_000, 3_500, 4_500]);
  });

  it('begins the gap of a new owner where the line was complete at the end of the previous one', () => {
    const end: FeedMessage = { ...head(1, 1, { at: 3_700, complete: 1_000, settling: 'auto', count: 0 }), kind: 'end' };
    const { events } = follow(
      '0: 1.0 a',
      [2_700, end],
      [2_710, { ...beat(2, 1, { began: 1, at: 3_710 }), ...framesOf(frameOf('b', 3_710)) }],
    );
    expect(events.find(({ type }) => type === 'gap')).toMatchObject({ from: 1_000, to: 3_710 });
  });

  it('has a gap from the last message to the next one', () => {
    const { events } = follow('0: 1.0 a, 0: 1.8 b, 0: away');
    expect(events[2]).toMatchObject({ type: 'gap', from: 1_000, to: 1_008, durationMs: 8 });
    expect(events.at(-1)).toMatchObject({ at: 1_008, failure: { code: 'cluster-away', endedAt: 1_008 } });
  });

  it.each([
    [
      'a new owner whose first messages did not arrive',
      '0: 1.0 a, 0: 1.1 END, 1: 2.5^1 b',
      'opened 0, frame 1, owner-changed 1, opened 1, gap 5, frame 6',
    ],
    ['missing messages', '0: 1.0 a, 0: away, 1: 1.5 b', 'opened 0, frame 1, disconnected 1, opened 1, gap 5, frame 6'],
  ])(
    'moves its position with the gap, so that a client that resumes before it receives the gap: %s',
    (_, script, expected) => {
      const { events, positions } = follow(script);
      expect(events.map(({ type }, n) => `${type} ${positions[n]?.frames}`).join(', ')).toBe(expected);
    },
  );

  it('moves its position back to where a new owner began, if it has more of the previous one', () => {
    const { events, positions } = follow('0: 1.0 a b c, 10: 2.1/1~ OPENED, 11: 2.2/1 CHANGED, 12: 2.3/1+1 d');
    expect(
      events
        .map(({ type }, n) => `${type} ${positions[n]?.offset}`)
        .slice(3)
        .join(', '),
    ).toBe('frame 3, owner-changed 3, opened 2, gap 3, frame 4');
  });

  it('counts what it has of an owner and the next one does not know, and what it had missed', () => {
    const counts = { fetched: 0, surplus: 0 };
    const follower = new Follower('market', () => undefined, counts);
    for (const [now, what] of stepsOf('0: 1.0 a b c, 10: 2.1/1 CHANGED')) follower.receive(what as FeedMessage, now);
    expect(counts).toEqual({ fetched: 0, surplus: 2 });
    const [[, past], [, missed]] = stepsOf('20: 2.2/1+1 d, 20: 2.2/1+1 d e') as [Step, Step];
    follower.receive(past as FeedMessage, 20, 'past');
    follower.receive(missed as FeedMessage, 20, 'missed');
    expect(counts).toEqual({ fetched: 1, surplus: 2 });
  });

  it('takes neither the time nor the life of an owner from what was stored', () => {
    const follower = new Follower('market', () => undefined);
    follower.receive(beat(1, 0, { at: 5_000 }), 100, 'past');
    expect([follower.heardAt, follower.timeAt(100)]).toEqual([-Infinity, undefined]);
    follower.receive(beat(1, 0, { at: 5_000 }), 100);
    follower.receive(beat(1, 0, { at: 5_001 }), 900, 'missed');
    expect([follower.heardAt, follower.timeAt(1_000)]).toEqual([100, 5_900]);
  });

  it('knows the time from the first live message on, also if that is a gap', () => {
    const { follower } = follow('100: 1.0 GAP');
    expect([follower.heardAt, follower.timeAt(200)]).toEqual([100, 1_100]);
  });

  it('is in the generation of a new owner from owner-changed on', () => {
    const owners: unknown[] = [];
    const follower: Follower = new Follower('market', ({ type }) => owners.push([type, follower.emitted.gen]));
    for (const [now, what] of stepsOf('0: 1.0 a, 10: 2.1 OPENED')) follower.receive(what as FeedMessage, now);
    expect(owners).toEqual([
      ['opened', 1],
      ['watermark', 1],
      ['frame', 1],
      ['owner-changed', 2],
      ['opened', 2],
    ]);
  });
});

describe('the times of a follower', () => {
  it('return to those of the owner if only its first messages were handled late', () => {
    const later = [[500, 5_000] as const, [5_500, 5_001] as const, [6_250, 5_250] as const];
    const { events } = follow('0: 1.0 BEAT, 0: 1.0 END', ...later.map(([at, now]): Step => [now, beat(2, 0, { at })]));
    expect(events.slice(-3)).toMatchObject([1_000, 5_996, 6_250].map((at) => ({ type: 'watermark', at })));
  });

  it('accept a clock that is ahead after the engine was away: the machine may have slept', () => {
    const { events } = follow('0: 1.0 BEAT, 0: away', [1_000, beat(1, 0, { at: 62_000 })]);
    expect(events.at(-1)).toEqual({ type: 'watermark', at: 62_000 });
  });

  it('shift the times of frames, gaps and failures of the next owner as well', () => {
    const frame = frameOf('a', 510);
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 1006, endedAt: 520 });
    const { events } = follow(
      '0: 1.0 BEAT, 0: 1.0 END',
      [1_000, eventOf(2, 0, { ...opened, at: 500 }, { at: 500, complete: 400, settling: 'auto' })],
      [1_010, eventOf(2, 1, { ...gap, to: 500 }, { at: 510 })],
      [1_011, { ...head(2, 2, { at: 510, holes: 1 }), ...framesOf(frame) }],
      [1_020, eventOf(2, 3, { type: 'disconnected', at: 520, failure }, { at: 520, settling: 'auto', holes: 1 })],
    );
    expect(events.slice(-3)).toMatchObject([
      { type: 'gap', from: 1_000, to: 1_000 },
      { type: 'frame', receivedAt: 1_010 },
      { type: 'disconnected', at: 1_020, failure: { endedAt: 1_020 } },
    ]);
    expect(frame.receivedAt).toBe(510);
  });
});
