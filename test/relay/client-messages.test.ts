import { describe, expect, it } from '@jest/globals';
import { interval, Observable, ReplaySubject, share, Subject } from 'rxjs';
import { clientMessages$ } from '../../src/relay/client-messages.js';
import type { RelayMessage } from '../../src/relay/relay-message.js';
import { RelayRun } from '../../src/relay/relay-run.js';
import type { EndReason } from '../../src/relay/relay-client.js';
import { opened } from '../operators/stream.js';
import { Clock, frame, range, Response, watermarkIn } from './support.js';

/** One client of a run, in virtual time, with a heartbeat each second. */
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
  const ended$ = new Subject<EndReason>();
  const reports: string[] = [];
  const messages: RelayMessage[] = [];
  let end: string | undefined;
  const subscription = clientMessages$(run$, { heartbeats$, watermarks$ }, receiver, ended$, clock.scheduler, {
    joined: ({ joined }) => reports.push(joined),
    behind: ({ missed }) => reports.push(`behind ${missed}`),
    stuck: () => reports.push('stuck'),
  }).subscribe({
    next: (message) => messages.push(message),
    complete: () => (end = 'complete'),
    error: (error: unknown) => (end = String(error)),
  });
  return {
    ...{ clock, run, run$, ended$, reports, subscription },
    response: receiver.response ?? new Response(),
    push: (...payloads: readonly (string | number)[]) => {
      for (const payload of payloads) run.append(frame(payload));
      run$.next(run);
    },
    /** The types of the messages since the last call. */
    news: () => messages.splice(0).map(({ type }) => type ?? 'events'),
    /** The watermarks since the last call. */
    marks: () => messages.splice(0).flatMap((message) => (message.type === undefined ? [watermarkIn(message)] : [])),
    end: () => end,
    beating: () => beating,
  };
};

const full = (response: Response): void => {
  response.writableNeedDrain = true;
};

describe('clientMessages$', () => {
  it('waits for the run, then sends `hello`, and new events each time the run emits', () => {
    const { run, run$, news, push, reports } = one();
    expect([news(), reports]).toEqual([[], []]);
    run$.next(run);
    expect([news(), reports]).toEqual([['hello'], ['new']]);
    push('a', 'b');
    push('c');
    expect(news()).toEqual(['events', 'events']);
    run$.next(run);
    expect(news()).toEqual([]);
  });

  it('sends heartbeats, except while the response is full', () => {
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

  it('sends a watermark four times a second after the first event, except while the response is full', () => {
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

  it('sends the watermarks of a late source, not the local time', () => {
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

  it('sends nothing while the response is full, and all events once it has drained', () => {
    const { run, run$, news, push, response } = one();
    run$.next(run);
    news();
    full(response);
    for (const n of range(1, 50)) push(n);
    expect(news()).toEqual([]);
    response.drain();
    expect(news()).toEqual(['events']);
  });

  it('sends a gap when the response was full for too long', () => {
    const { run, run$, news, push, response, reports } = one();
    run$.next(run);
    full(response);
    for (const n of range(1, 250)) push(n);
    news();
    response.drain();
    expect(news()).toEqual(['events', 'events']);
    expect(reports).toEqual(['new', 'behind 150']);
  });

  it('ends the stream of a client that reads nothing for four heartbeats', () => {
    const { beating, clock, end, response, run, run$, reports } = one();
    run$.next(run);
    clock.pass(500);
    full(response);
    clock.pass(3_500);
    expect([reports, response.isDestroyed, end()]).toEqual([['new', 'stuck'], true, 'complete']);
    expect([beating(), response.listenerCount('drain'), run$.observed]).toEqual([0, 0, false]);
  });

  it('continues with a client that reads from time to time', () => {
    const { clock, end, response, run, run$ } = one();
    run$.next(run);
    for (let n = 0; n < 10; n += 1) {
      full(response);
      clock.pass(3_000);
      response.drain();
    }
    expect([response.isDestroyed, end()]).toEqual([false, undefined]);
  });

  it('continues with a slow client whose response drains between heartbeats and is full again at once', () => {
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

  it.each(['connect-again', 'complete'] as const)('completes after the message `%s`, once it was sent', (type) => {
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
  });

  it('emits messages at once when there is no response', () => {
    const { clock, news, push, end } = one({});
    push(...range(1, 50));
    expect(news()).toEqual(['hello', 'events']);
    clock.pass(9_000);
    expect([news().filter((type) => type === 'heartbeat').length, end()]).toEqual([9, undefined]);
  });

  it('removes its timers and listeners when it is unsubscribed', () => {
    const { beating, response, run, run$, subscription } = one();
    run$.next(run);
    expect([beating() > 0, response.listenerCount('drain') > 0]).toEqual([true, true]);
    subscription.unsubscribe();
    expect([beating(), response.listenerCount('drain'), run$.observed]).toEqual([0, 0, false]);
  });

  it('starts at the position of `lastEventId`', () => {
    const { run, run$, news, reports } = one({ lastEventId: 'otherrun.1.1.1' });
    run$.next(run);
    expect([news(), reports]).toEqual([['hello'], ['behind']]);
  });
});
