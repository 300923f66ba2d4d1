import { describe, expect, it } from '@jest/globals';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { advance, type ClientProgress, firstStep, isBehind, skip } from '../../src/relay/client-progress.js';
import { EventLog } from '../../src/relay/event-log.js';
import { startPosition } from '../../src/relay/start-position.js';
import { disconnected, opened, reconnecting } from '../operators/stream.js';
import { frame, range } from './support.js';

const now = 2_000;

/** A log of numbered frames after `opened`, one each ms. */
const logOf = (count: number, { capacity = 100, from = 1 }: { capacity?: number; from?: number } = {}): EventLog => {
  const log = new EventLog({ capacity, capacityBytes: 1e6, maxReplayBytes: 1e6 }, () => now);
  add(log, opened(1_000), ...range(from, from + count - 1).map((n) => frame(n, 1_000 + n)));
  return log;
};
const add = (log: EventLog, ...events: readonly RelayedEvent[]): void => {
  for (const event of events) if (event.type !== 'stopped') log.append(event);
};
const start = (log: EventLog, id?: string) =>
  firstStep(log, startPosition(log, { epoch: 'mine', isInCluster: false }, id, now), now);
const at = (log: EventLog, seq: number, changes: Partial<ClientProgress> = {}): ClientProgress => ({
  ...start(log).progress,
  position: log.positionAt(seq)!,
  ...changes,
});
const gap = (from: number, to: number, missed?: number) =>
  expect.objectContaining({ type: 'gap', from, to, ...(missed !== undefined && { missed }) });

describe('firstStep', () => {
  it('sends the state of the feed to a new client, as of now', () => {
    const log = logOf(5);
    const { progress, events } = start(log);
    expect(events).toEqual([opened(now)]);
    expect(progress).toMatchObject({ position: log.newest, sent: 0, missed: 0, seenUntil: undefined });
  });

  it('sends the state at its position to a client that resumes', () => {
    const log = logOf(5);
    const { progress, events } = start(log, 'mine.3.2.1002');
    expect([progress.position.seq, events]).toEqual([3, [opened(1_002)]]);
  });

  it('sends a gap to a client whose position is removed, and counts its frames', () => {
    const { progress, events } = start(logOf(9, { capacity: 4 }), 'mine.3.2.1002');
    expect(events).toEqual([opened(1_005), gap(1_002, 1_005, 3)]);
    expect(progress).toMatchObject({ missed: 3, missingSince: undefined });
  });

  it('postpones the gap while the feed has not been open', () => {
    const log = new EventLog({ capacity: 9, capacityBytes: 1e6, maxReplayBytes: 1e6 }, () => now);
    const { progress, events } = start(log, 'other.3.2.1002');
    expect([progress.missingSince, events]).toEqual([1_002, []]);
  });
});

describe('skip', () => {
  it('returns the same progress and no events when there is nothing to skip', () => {
    const log = logOf(5);
    const progress = at(log, 2);
    expect(skip(progress, log, now)).toEqual({ progress, events: [] });
  });

  it('moves a client that is behind to the oldest position, with a gap', () => {
    const log = logOf(3, { capacity: 4 });
    const progress = at(log, 2);
    add(log, ...range(4, 8).map((n) => frame(n, 1_000 + n)));
    expect(isBehind(progress, log)).toBe(true);
    const step = skip(progress, log, now);
    expect(step.events).toEqual([gap(1_001, 1_004, 3)]);
    expect(step.progress).toMatchObject({ position: log.oldest, missed: 3 });
    expect(isBehind(step.progress, log)).toBe(false);
  });

  it('also sends the state of the feed if that has changed in between', () => {
    const log = logOf(1, { capacity: 2 });
    const progress = at(log, 2);
    add(log, disconnected(1_010), reconnecting(1_011, 5), opened(1_020, 2), frame(2, 1_021), frame(3, 1_022));
    expect(skip(progress, log, now).events).toEqual([opened(1_020, 2), gap(1_001, 1_020, 0)]);
  });

  it('skips events that another relay has sent, with one gap for all of them', () => {
    const log = logOf(3);
    const first = skip(at(log, 2, { seenUntil: 1_005 }), log, now);
    expect(first.events).toEqual([gap(1_002, 1_005)]);
    expect(first.progress).toMatchObject({ position: log.newest, isSkipReported: true, missed: 0 });
    add(log, frame(4, 1_004), frame(5, 1_005), frame(6, 1_006));
    const second = skip(first.progress, log, now);
    expect([second.events, second.progress.position.seq]).toEqual([[], 6]);
    const third = skip(advance(second.progress, log.newest), log, now);
    expect(third.progress.seenUntil).toBeUndefined();
  });

  it('does not wait for a time that the log does not reach soon', () => {
    const log = logOf(3);
    const { progress, events } = skip(at(log, 2, { seenUntil: now + 60_000 }), log, now);
    expect([events, progress.seenUntil, progress.position.seq]).toEqual([[], undefined, 2]);
  });
});

describe('advance', () => {
  it('counts the frames up to a position', () => {
    const log = logOf(5);
    expect(advance(at(log, 2, { sent: 7, missed: 3 }), log.newest)).toMatchObject({
      ...{ position: log.newest, sent: 11, missed: 3 },
    });
  });
});
