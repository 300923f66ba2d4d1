import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { concat, NEVER, Subject } from 'rxjs';
import { logEvents, type EventRecord } from '../../src/index.js';
import { FeedWatch } from '../../src/operators/items/feed-watch.js';
import type { Waiting } from '../../src/protocol/event-record.js';
import { fakeTimers } from '../support/fake-timers.js';
import { disconnected, frameOf, issued, opened, reconnecting, requested, stopped } from './stream.js';

let time: Disposable;
beforeEach(() => void (time = fakeTimers()));
afterEach(() => time[Symbol.dispose]());

const seconds = (count: number) => jest.advanceTimersByTime(count * 1_000);

const started = () => {
  const reports: string[] = [];
  const watch = new FeedWatch(({ stage, waitedMs }: Waiting) => void reports.push(`${stage ?? 'source'} ${waitedMs}`));
  return { watch, reports };
};

describe('FeedWatch', () => {
  it('reports each stage of the first attempt once, after 5 s', () => {
    const { watch, reports } = started();
    seconds(4);
    expect(reports).toEqual([]);
    seconds(60);
    watch.event(requested(1));
    expect(watch.waiting).toBe(undefined);
    seconds(60);
    watch.event(issued(2));
    seconds(60);
    expect(reports).toEqual(['source 5000', 'ticket 5000', 'handshake 5000']);
    expect(watch.waiting).toMatchObject({ stage: 'handshake', code: 'handshake-unreachable' });
    watch.event(opened(3));
    expect(watch.waiting).toBe(undefined);
    watch.end();
  });

  it('reports nothing between a failure and the next attempt, because the failure is known', () => {
    const { watch, reports } = started();
    for (const event of [requested(1), disconnected(2), reconnecting(2, 60_000), requested(3), issued(4)])
      watch.event(event);
    seconds(120);
    watch.event(stopped(5));
    seconds(120);
    expect(reports).toEqual([]);
    watch.end();
  });

  it('reports a silence, and waits twice as long after each silence that a frame ends', () => {
    const { watch, reports } = started();
    watch.event(opened(1));
    for (const silence of [6, 6, 11, 15, 21]) {
      watch.item(frameOf('a'));
      seconds(silence);
    }
    expect(reports).toEqual(['stream 5000', 'stream 10000', 'stream 20000']);
    watch.end();
  });

  it('measures an outage on a monotonic clock, from the last bytes of a stalled connection on', () => {
    const { watch } = started();
    seconds(2);
    expect(watch.downMs).toBe(2_000);
    watch.event(opened(Date.now()));
    expect(watch.downMs).toBe(undefined);
    seconds(3);
    expect(watch.liveMs).toBe(3_000);
    const { failure } = disconnected(Date.now() - 2_000);
    watch.event({ type: 'disconnected', at: Date.now(), failure });
    jest.setSystemTime(Date.now() - 3_600_000);
    seconds(1);
    expect([watch.downMs, watch.liveMs]).toEqual([3_000, 0]);
    watch.end();
  });
});

describe('logEvents', () => {
  const run = (warn: (record: EventRecord) => void = () => undefined) => {
    const records: EventRecord[] = [];
    const store = (record: EventRecord) => void records.push(record);
    const errors: unknown[] = [];
    const source$ = new Subject<unknown>();
    const logger = {
      debug: store,
      info: store,
      error: store,
      warn: (record: EventRecord) => {
        store(record);
        warn(record);
      },
    };
    const subscription = concat([requested(1)], source$, NEVER)
      .pipe(logEvents(logger))
      .subscribe({ error: (error) => errors.push(error) });
    return { source$, records, errors, subscription };
  };

  it('logs that it waits for the ticket, with a code, the stage and what to do', () => {
    const { records, subscription } = run();
    seconds(60);
    expect(records.slice(1)).toEqual([
      {
        ...{ type: 'waiting', at: expect.any(Number), waitedMs: 5_000 },
        ...{ stage: 'ticket', code: 'ticket-endpoint-unreachable' },
        msg: expect.stringMatching(/^Waiting, ticket-endpoint-unreachable: No ticket after 5 s\. Check the network, /),
      },
    ]);
    subscription.unsubscribe();
  });

  it('logs an error that had no event, with its cause', () => {
    const { records, errors, source$ } = run();
    source$.next(frameOf('a'));
    const thrown = new RangeError('no space left');
    source$.error(thrown);
    expect(errors).toEqual([thrown]);
    expect(records.at(-1)).toMatchObject({
      ...{ type: 'stopped', code: 'relay-source-failed' },
      msg: expect.stringMatching(/^Stopped, relay-source-failed: .* Cause: RangeError: no space left$/),
    });
  });

  it('errors if the logger throws while it logs a wait', () => {
    const thrown = new Error('disk full');
    const { errors, source$ } = run(() => {
      throw thrown;
    });
    seconds(5);
    expect(errors).toEqual([thrown]);
    expect(source$.observed).toBe(false);
  });
});
