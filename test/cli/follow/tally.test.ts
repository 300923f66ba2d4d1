import { describe, expect, it } from '@jest/globals';
import type { CliEvent } from '../../../src/cli/follow/event.js';
import {
  averageRate,
  currentRate,
  emptyTally,
  perTick,
  reconnectCount,
  tallied,
  type Tally,
} from '../../../src/cli/follow/tally.js';
import { ending, expired, frameAt, gap, opening, start } from '../support/events.js';

const tallyOf = (...events: readonly CliEvent[]): Tally => events.reduce(tallied, emptyTally('market', start));
const tick = (ms: number): CliEvent => ({ type: 'tick', at: start + ms });

describe('tallied', () => {
  it('follows the phases of an attempt', () => {
    const [requested, issued, opened] = opening(0, 1) as [CliEvent, CliEvent, CliEvent];
    expect(tallyOf().phase).toStrictEqual({ name: 'ticket' });
    expect(tallyOf(requested).phase).toStrictEqual({ name: 'ticket' });
    expect(tallyOf(requested, issued).phase).toStrictEqual({ name: 'handshake' });
    expect(tallyOf(requested, issued, opened)).toMatchObject({
      phase: { name: 'open' },
      connections: 1,
      now: start + 20,
    });
  });

  it('ignores a change of the owner of a cluster: the gap counts', () => {
    const changed: CliEvent = { type: 'owner-changed', at: start + 50, owner: 'b-1', generation: 2 };
    const before = tallyOf(...opening(0, 1));
    const after = tallyOf(...opening(0, 1), changed);
    expect({ ...after, log: before.log }).toEqual({ ...before, now: start + 50 });
  });

  it('counts frames and bytes, and stores the last frame', () => {
    const last = frameAt(40, 'four');
    const tally = tallyOf(...opening(0, 1), frameAt(30, 'one'), last);
    expect(tally).toMatchObject({ frames: 2, bytes: 7, now: start + 40 });
    expect(tally.lastFrame).toBe(last);
  });

  it('counts an outage by its cause, and the lost time when it is over', () => {
    const lost = tallyOf(...opening(0, 1), ...ending(10_000, expired, 0));
    expect(lost).toMatchObject({
      lostAt: start + 10_000,
      gaps: 0,
      reconnects: { 'access-expired': 1 },
      phase: { name: 'waiting' },
    });
    const back = [...opening(10_000, 2), gap(10_000, 10_020, expired)].reduce(tallied, lost);
    expect(back).toMatchObject({ lostAt: undefined, gaps: 1, lostMs: 20, connections: 2 });
    expect(reconnectCount(back)).toBe(1);
  });

  it('counts attempts that never opened, and keeps the time of the lost connection', () => {
    const full = { stage: 'handshake', status: 503 } as const;
    const tally = tallyOf(
      ...opening(0, 1),
      ...ending(5_000, expired, 0),
      ...ending(5_100, full, 100),
      ...ending(5_200, full, 200, 2),
    );
    expect(tally).toMatchObject({ lostAt: start + 5_000, reconnects: { 'access-expired': 1, 'capacity-full': 2 } });
    expect(tally.phase).toMatchObject({
      name: 'waiting',
      reconnecting: { delayMs: 200 },
      failure: { code: 'capacity-full' },
    });
  });

  it('keeps the events of one reconnect', () => {
    const outage: readonly CliEvent[] = [
      ...ending(10_000, expired, 0),
      ...opening(10_000, 2),
      gap(10_000, 10_020, expired),
    ];
    const tally = tallyOf(...opening(0, 1), ...outage);
    expect(tally.log).toStrictEqual(outage);
  });

  it('ignores a reconnect without a failure before it', () => {
    const [, reconnecting] = ending(0, expired, 0) as [CliEvent, CliEvent];
    expect(tallyOf(reconnecting).phase).toStrictEqual({ name: 'ticket' });
    expect(tallyOf(...opening(0, 1), reconnecting).phase).toStrictEqual({ name: 'open' });
  });

  it('ends at the time of the ending', () => {
    expect(tallyOf({ type: 'ended', at: start + 9, ending: { kind: 'time-up' } }).now).toBe(start + 9);
  });
});

describe('the rates', () => {
  it('are 0 at the start', () => {
    expect(currentRate(tallyOf())).toMatchObject({ frames: 0, bytes: 0 });
    expect(averageRate(tallyOf())).toMatchObject({ frames: 0, bytes: 0 });
  });

  it('are current over the last 3 s, and average over all time', () => {
    const seconds = Array.from({ length: 10 }, (_, s) => [
      frameAt(s * 1_000 + 1, s < 7 ? 'slow' : 'x'.repeat(40)),
      tick(s * 1_000 + 500),
      tick(s * 1_000 + 1_000),
    ]);
    const tally = tallyOf(...seconds.flat());
    expect(currentRate(tally)).toStrictEqual({ frames: 1, bytes: 40 });
    expect(averageRate(tally)).toStrictEqual({ frames: 1, bytes: (7 * 4 + 3 * 40) / 10 });
    expect(perTick(tally, 'bytes').slice(-4)).toStrictEqual([40, 0, 40, 0]);
    expect(perTick(tally, 'frames')).toHaveLength(20);
  });

  it('are stored for 20 s', () => {
    const tally = tallyOf(...Array.from({ length: 100 }, (_, n) => tick(n * 500)));
    expect(perTick(tally, 'frames')).toHaveLength(40);
  });
});
