import { describe, expect, it } from '@jest/globals';
import type { LogRecord } from '../../src/log/index.js';
import { Recorder } from '../../src/log/recorder.js';
import { newLine, startOf } from '../../src/protocol/place.js';
import { stopped } from '../operators/stream.js';
import { frame, frames, opened, short } from './support.js';

/** A recorder of a new log, and what it records. */
const start = () => {
  const records: LogRecord[] = [];
  const recorder = new Recorder(
    startOf(newLine()),
    () => 2_000,
    (record, _time, at, { offset }) =>
      records.push({ ...record, at, offset, ...(record.type === 'frame' && { text: () => record.text() }) } as never),
  );
  const add = (...values: readonly unknown[]) => values.forEach((value) => recorder.add(value));
  return { recorder, add, recorded: () => short(records.splice(0)) };
};

describe('a recorder', () => {
  it('records frames and events, and ignores everything else', () => {
    const { add, recorded, recorder } = start();
    add(
      opened(),
      frame(1),
      7,
      undefined,
      { type: 'watermark', at: 1_001 },
      frame(2, NaN),
      { type: 'engine' },
      frame(2),
    );
    expect(recorded()).toEqual(['0:opened', '1:{"n":1}', '2:{"n":2}']);
    expect(recorder.end).toMatchObject({ offset: 3, frames: 2 });
  });

  it('counts exactly what is lost, and goes on with a gap at the same offset', () => {
    const { add, recorded, recorder } = start();
    recorder.goOn();
    add(opened(), frame(1));
    recorded();
    recorder.lose();
    add(...frames(2, 102));
    recorder.lose();
    expect(recorded()).toEqual([]);
    expect([recorder.isLosing, recorder.end.offset]).toEqual([true, 2]);
    recorder.goOn();
    add(frame(102));
    expect(recorded().filter((each) => !each.includes('opened'))).toEqual([
      expect.stringMatching(/^\d:gap log-write-failed 100$/),
      expect.stringMatching(/^\d:\{"n":102\}$/),
    ]);
    expect(recorder.end.frames).toBe(102);
  });

  it('adds a gap without a number if the feed had one while records were lost', () => {
    const { add, recorded, recorder } = start();
    add(opened(), frame(1));
    recorder.lose();
    add({ type: 'gap', from: 1_001, to: 1_050, at: 1_050, failure: { code: 'network', stage: 'stream' } });
    add(opened(1_050), frame(2, 1_050));
    recorded();
    recorder.goOn();
    expect(recorded().filter((each) => each.includes('gap')).length).toBeGreaterThan(0);
  });

  it('stops a feed once, if its source has said why', () => {
    const { add, recorded, recorder } = start();
    add(opened(), stopped(1_001));
    recorder.stopped(new Error('over'));
    expect(recorded()).toEqual(['0:opened', expect.stringMatching(/^1:stopped/)]);
  });

  it('stops a feed whose source fails without a word', () => {
    const { add, recorded, recorder } = start();
    add(opened());
    recorder.stopped(new Error('over'));
    expect(recorded()).toEqual(['0:opened', expect.stringMatching(/^1:stopped/)]);
  });
});
