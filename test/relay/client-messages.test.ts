import { describe, expect, it } from '@jest/globals';
import { interval, Observable, ReplaySubject, share, Subject } from 'rxjs';
import { clientMessages$ } from '../../src/relay/client-messages.js';
import type { RelayMessage } from '../../src/relay/relay-message.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import type { SentAway } from '../../src/relay/relay-client.js';
import { opened } from '../operators/stream.js';
import { Clock, frame, range, Response, watermarkIn } from './support.js';

/** One client of a run, in virtual time: a heartbeat each second. */
const one = (
  receiver: { readonly response?: Response; readonly lastEventId?: string } = { response: new Response() },
) => {
  const clock = new Clock();
  const run = new RelayRun({ capacity: 100, capacityBytes: 1e6, maxReplayBytes: 1e6 }, () => clock.now);
  const run$ = new ReplaySubject<RelayRun>(1);
  let beating = 0;
  const beats$ = interval(1_000, clock.scheduler).pipe(share());
  const heartbeats$ = new Observable<number>((subscriber) => {
    beating += 1;
    subscriber.add(beats$.subscribe(subscriber));
    subscriber.add(() => (beating -= 1));
  });
  const watermarks$ = interval(250, clock.scheduler);
  const sentAway$ = new Subject<SentAway>();
  const told: string[] = [];
  const messages: RelayMessage[] = [];
  let end: string | undefined;
  const subscription = clientMessages$(run$, { heartbeats$, watermarks$ }, receiver, sentAway$, clock.scheduler, {
    joined: ({ joined }) => told.push(joined),
    behind: ({ missed }) => told.push(`behind ${missed}`),
    stuck: () => told.push('stuck'),
  }).subscribe({
    next: (message) => messages.push(message),
    complete: () => (end = 'complete'),
    error: (error: unknown) => (end = String(error)),
  });
  return {
    ...{ clock, run, run$, sentAway$, told, subscription },
    response: receiver.response ?? new Response(),
    push: (...payloads: readonly (string | number)[]) => {
      for (const payload of payloads) run.append(frame(payload));
      run$.next(run);
    },
    /** The types of what came since the last time. */
    news: () => messages.splice(0).map(({ type }) => type ?? 'events'),
    /** The watermarks of what came since the last time. */
    marks: () => messages.splice(0).flatMap((message) => (message.type === undefined ? [watermarkIn(message)] : [])),
    end: () => end,
    beating: () => beating,
  };
};

const full = (response: Response): void => {
  response.writableNeedDrain = true;
};

describe('clientMessages$', () => {
  it('waits for the run, then greets; sends what is new with each sign of it', () => {
    const { run, run$, news, push, told } = one();
    expect([news(), told]).toEqual([[], []]);
    run$.next(run);
    expect([news(), told]).toEqual([['hello'], ['new']]);
    push('a', 'b');
    push('c');
    expect(news()).toEqual(['events', 'events']);
    run$.next(run);
    expect(news()).toEqual([]);
  });

  it('sends a heartbeat now and then, but not into a full response', () => {
    const { clock, run, run$, news, response } = one();
    run$.next(run);
    clock.pass(2_500);
    expect(news()).toEqual(['hello', 'heartbeat', 'heartbeat']);
    full(response);
    clock.pass(2_000);
    expect(news()).toEqual([]);
    response.drain();
    clock.pass(1_000);
    expect(news()).toEqual(['heartbeat']);
  });

  it('sends a watermark four times a second while no event comes, once there was one, and not into a full response', () => {
    const { clock, run, run$, marks, response } = one();
    run$.next(run);
    clock.pass(900);
    expect(marks()).toEqual([]);
    run.append(opened(clock.now));
    run$.next(run);
    const at = clock.now;
    clock.pass(850);
    expect(marks()).toEqual([at, at + 100, at + 350, at + 600, at + 850]);
    full(response);
    clock.pass(500);
    expect(marks()).toEqual([]);
  });

  it('sends the watermarks of a source that is late, and not the time of this machine', () => {
    const { clock, run, run$, marks } = one();
    run$.next(run);
    run.append(opened(clock.now - 500));
    run.append({ type: 'watermark', at: clock.now - 300 });
    run$.next(run);
    const at = clock.now;
    clock.pass(1_000);
    expect(marks()).toEqual([at - 300]);
    run.append({ type: 'watermark', at: at + 700 });
    clock.pass(250);
    expect(marks()).toEqual([at + 700]);
  });

  it('sends nothing while the response is full; all of it once it has drained', () => {
    const { run, run$, news, push, response } = one();
    run$.next(run);
    news();
    full(response);
    for (const n of range(1, 50)) push(n);
    expect(news()).toEqual([]);
    response.drain();
    expect(news()).toEqual(['events']);
  });

  it('tells of what went by when it was full for too long', () => {
    const { run, run$, news, push, response, told } = one();
    run$.next(run);
    full(response);
    for (const n of range(1, 250)) push(n);
    news();
    response.drain();
    expect(news()).toEqual(['events', 'events']);
    expect(told).toEqual(['new', 'behind 150']);
  });

  it('gives up a client that reads nothing for four heartbeats', () => {
    const { beating, clock, end, response, run, run$, told } = one();
    run$.next(run);
    clock.pass(500);
    full(response);
    clock.pass(3_500);
    expect([told, response.isDestroyed, end()]).toEqual([['new', 'stuck'], true, 'complete']);
    expect([beating(), response.listenerCount('drain'), run$.observed]).toEqual([0, 0, false]);
  });

  it('does not give up one that reads now and then', () => {
    const { clock, end, response, run, run$ } = one();
    run$.next(run);
    for (let n = 0; n < 10; n += 1) {
      full(response);
      clock.pass(3_000);
      response.drain();
    }
    expect([response.isDestroyed, end()]).toEqual([false, undefined]);
  });

  it('does not give up one that reads slowly: it drains in between, and is full again at once', () => {
    const { clock, end, response, run, run$ } = one();
    run$.next(run);
    full(response);
    for (let n = 0; n < 10; n += 1) {
      clock.pass(1_900);
      response.drain();
      full(response);
      clock.pass(100);
    }
    expect([response.isDestroyed, end()]).toEqual([false, undefined]);
    clock.pass(4_000);
    expect([response.isDestroyed, end()]).toEqual([true, 'complete']);
  });

  it.each(['connect-again', 'complete'] as const)(
    'completes behind the message `%s`, once it has been sent',
    (type) => {
      const { beating, end, news, response, run, run$, push } = one();
      run$.next(run);
      full(response);
      push('a');
      if (type === 'connect-again') run.stop(new Error());
      else run.complete();
      run$.next(run);
      expect([news(), end()]).toEqual([['hello'], undefined]);
      response.drain();
      expect([news(), end()]).toEqual([['events', type], 'complete']);
      expect([beating(), response.listenerCount('drain'), run$.observed]).toEqual([0, 0, false]);
    },
  );

  it('hands out messages as they come when there is no response to look at', () => {
    const { clock, news, push, end } = one({});
    push(...range(1, 50));
    expect(news()).toEqual(['hello', 'events']);
    clock.pass(9_000);
    expect([news().filter((type) => type === 'heartbeat').length, end()]).toEqual([9, undefined]);
  });

  it('leaves nothing behind when it is unsubscribed from', () => {
    const { beating, response, run, run$, subscription } = one();
    run$.next(run);
    expect([beating() > 0, response.listenerCount('drain') > 0]).toEqual([true, true]);
    subscription.unsubscribe();
    expect([beating(), response.listenerCount('drain'), run$.observed]).toEqual([0, 0, false]);
  });

  it('takes up the place that it is given', () => {
    const { run, run$, news, told } = one({ lastEventId: 'otherrun.1.1.1' });
    run$.next(run);
    expect([news(), told]).toEqual([['hello'], ['behind']]);
  });
});
