import { describe, expect, it } from '@jest/globals';
import type { DropReport } from '../../../src/operators/bounded/drop-report.js';
import { DropTally } from '../../../src/operators/bounded/drop-tally.js';

describe('DropTally', () => {
  it('reports many drops at once, with their bytes and times, and continues the total', () => {
    const reports: DropReport[] = [];
    const tally = new DropTally((report) => reports.push(report));
    tally.count(1, 10, 100);
    tally.count(1, 20, 250);
    tally.report('overflow');
    tally.count(5, 7, 400);
    tally.report('ended');
    expect(reports).toEqual([
      { reason: 'overflow', dropped: 2, droppedBytes: 30, total: 2, from: 100, to: 250 },
      { reason: 'ended', dropped: 5, droppedBytes: 7, total: 7, from: 400, to: 400 },
    ]);
  });

  it('has nothing to report before a drop and after a report', () => {
    const reports: DropReport[] = [];
    const tally = new DropTally((report) => reports.push(report));
    tally.report('overflow');
    expect(tally.isOpen).toBe(false);
    tally.count(1, 0, 0);
    expect(tally.isOpen).toBe(true);
    tally.report('overflow');
    tally.report('overflow');
    expect([tally.isOpen, reports.length]).toEqual([false, 1]);
  });

  it('is overdue after a second of drops without a report', () => {
    const tally = new DropTally(undefined);
    tally.count(1, 0, 5_000);
    tally.count(1, 0, 5_999);
    expect(tally.isOverdue).toBe(false);
    tally.count(1, 0, 6_000);
    expect(tally.isOverdue).toBe(true);
    tally.report('overflow');
    expect(tally.isOverdue).toBe(false);
    tally.count(1, 0, 6_500);
    expect(tally.isOverdue).toBe(false);
  });

  it('is overdue when the clock was set back by a second', () => {
    const tally = new DropTally(undefined);
    tally.count(1, 0, 5_000);
    tally.count(1, 0, 4_001);
    expect(tally.isOverdue).toBe(false);
    tally.count(1, 0, 4_000);
    expect(tally.isOverdue).toBe(true);
  });

  it('has reset its counts before `onDrop` throws or drops more', () => {
    const dropped: number[] = [];
    const tally = new DropTally((report) => {
      dropped.push(report.dropped);
      if (report.total === 3) tally.count(4, 0, 0);
      throw new Error('mine');
    });
    tally.count(3, 0, 0);
    expect(() => tally.report('overflow')).toThrow('mine');
    expect(() => tally.report('overflow')).toThrow('mine');
    expect(dropped).toEqual([3, 4]);
  });
});
