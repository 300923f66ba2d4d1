import { describe, expect, it } from '@jest/globals';
import {
  concat,
  defer,
  NEVER,
  type Observable,
  of,
  retry,
  Subject,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, type Relay, type RelayReceiver } from '../../src/relay/index.js';
import { RelayFullError } from '../../src/relay/relay-full-error.js';
import { Client, Clock, frame, Response, Source } from './support.js';

const replaced = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
const opened = { type: 'opened', at: 1, feed: 'market', connection: 1 } as const;

const scheduler = new VirtualTimeScheduler(undefined, 1_000);

/** A relay with a new source for each subscription. */
const restartable = () => {
  const clock = new Clock();
  const sources: Source[] = [];
  const source$ = defer(() => {
    sources.push(new Source());
    return sources.at(-1)!.events$;
  });
  const relay = createRelay(source$, { scheduler: clock.scheduler });
  const join = (receiver?: RelayReceiver) => new Client(relay, receiver);
  return { clock, sources, relay, join, source: () => sources.at(-1)! };
};

/** The message types that a client receives in its first second. */
const typesFor = (relay: Relay): readonly (string | undefined)[] => {
  const types: (string | undefined)[] = [];
  const client = relay.messages$().subscribe(({ type }) => types.push(type));
  scheduler.maxFrames = scheduler.frame + 1_000;
  scheduler.flush();
  client.unsubscribe();
  return types;
};

describe('restart', () => {
  it.each([
    ['stopped', throwError(() => replaced), 'connect-again'],
    ['completed', of(), 'complete'],
  ] as const)(
    'makes the next client subscribe again to a source that has %s, and no client before',
    (_how, over$, last) => {
      let subscriptions = 0;
      const source$: Observable<RelayedEvent> = defer(() => {
        subscriptions += 1;
        return subscriptions === 1 ? over$ : concat(of(opened), NEVER);
      });
      const relay = createRelay(source$, { scheduler });
      expect(typesFor(relay)).toEqual(['hello', last]);
      // A client that joins after a stop gets no stream.
      expect(typesFor(relay)).toEqual(last === 'complete' ? ['hello', last] : [last]);
      expect(subscriptions).toBe(1);

      relay.restart();
      expect(subscriptions).toBe(1);
      expect(typesFor(relay)).not.toContain(last);
      expect(subscriptions).toBe(2);
      relay.close();
    },
  );

  it('changes nothing while the source is active', () => {
    const source = new Subject<RelayedEvent>();
    const relay = createRelay(source, { scheduler });
    let isComplete = false;
    relay.messages$().subscribe({ complete: () => (isComplete = true) });
    relay.restart();
    expect(source.observed).toBe(true);
    expect(isComplete).toBe(false);
    relay.close();
    expect(isComplete).toBe(true);
  });

  const end = (how: 'stops' | 'completes', source: Source): void =>
    how === 'stops' ? source.subject.error(replaced) : source.subject.complete();

  it.each(['stops', 'completes'] as const)('lets current clients read to the end after a source that %s', (how) => {
    for (const select of [undefined, (events$: Observable<RelayedEvent>) => events$]) {
      const { clock, source, relay, join } = restartable();
      const response = new Response();
      const [slow, quick] = [join({ response, select }), join({ select })];
      source().frames('a');
      clock.pass(16);
      response.writableNeedDrain = true;
      source().frames('b', 'c');
      clock.pass(16);
      source().frames('d');
      end(how, source());
      relay.restart();
      expect(relay.status().topics).toBe(select === undefined ? 0 : 1);
      // The next run is separate from the previous one.
      const next = join({ select });
      source().frames('e');
      response.drain();
      clock.pass(16);
      const last = how === 'stops' ? 'connect-again' : 'complete';
      for (const client of [slow, quick]) {
        expect([client.payloads, client.types.at(-1), client.isComplete]).toEqual([['a', 'b', 'c', 'd'], last, true]);
      }
      expect([next.payloads, next.isComplete]).toEqual([['e'], false]);
      slow.leave();
      quick.leave();
      // A topic also stores `opened`.
      const storedFirst = select === undefined ? 1 : 2;
      expect(relay.status().stored.events).toBe(storedFirst);
      const later = join({ select });
      source().frames('f');
      clock.pass(16);
      expect([later.payloads, next.payloads]).toEqual([['f'], ['e', 'f']]);
      expect(relay.status().stored.events).toBe(storedFirst + 1);
    }
  });

  it.each([undefined, (events$: Observable<RelayedEvent>) => events$])(
    'may be called while the stop is reported (select: %s)',
    (select) => {
      const { clock, sources, source, relay, join } = restartable();
      const reports: string[] = [];
      relay.events$.subscribe(({ type }) => {
        if (!type.endsWith('-stopped')) return;
        reports.push(type);
        relay.restart();
      });
      const client = join({ select });
      source().frames('a');
      source().subject.error(replaced);
      clock.pass(16);
      expect([client.payloads, client.types.at(-1), reports]).toEqual([['a'], 'connect-again', ['source-stopped']]);
      const next = join({ select, lastEventId: client.lastEventId });
      source().frames('b');
      clock.pass(16);
      expect([sources.length, next.payloads, next.isComplete]).toEqual([2, ['b'], false]);
    },
  );

  it.each(['stops', 'completes'] as const)('begins without the state of a source that %s', (how) => {
    for (const select of [undefined, (events$: Observable<RelayedEvent>) => events$]) {
      const { clock, source, relay, join } = restartable();
      const begin = clock.now;
      join({ select });
      source().emit({ ...opened, at: begin }, frame('a', begin + 5_000), { type: 'watermark', at: begin + 6_000 });
      end(how, source());
      relay.restart();
      const next = join({ select });
      source().emit({ ...opened, at: begin + 1, connection: 2 }, frame('b', begin + 2, 2));
      clock.pass(16);
      expect(next.events).toMatchObject([
        { type: 'opened', at: begin + 1, connection: 2 },
        { type: 'frame', receivedAt: begin + 2 },
      ]);
    }
  });

  it('releases the log of an ended run with its last client', () => {
    const { clock, source, relay, join } = restartable();
    const response = new Response();
    const slow = join({ response });
    clock.pass(16);
    response.writableNeedDrain = true;
    source().frames('a', 'b');
    source().subject.error(replaced);
    relay.restart();
    expect(relay.status().stored.events).toBe(2);
    slow.leave();
    expect(relay.status().stored.events).toBe(0);
  });

  it('does not reopen a closed relay', () => {
    const relay = createRelay(
      throwError(() => replaced),
      { scheduler },
    );
    typesFor(relay);
    relay.close();
    relay.restart();
    const errors: unknown[] = [];
    relay.messages$().subscribe({ error: (error) => errors.push(error) });
    expect(errors).toEqual([expect.any(RelayFullError)]);
  });
});

describe('a source that is retried', () => {
  it('sends its stop to the clients at once as `disconnected`, and they stay', () => {
    const clock = new Clock();
    const { scheduler } = clock;
    const source = new Source();
    const relay = createRelay(source.events$.pipe(retry({ delay: () => timer(60_000, scheduler) })), { scheduler });
    const client = new Client(relay);
    source.emit(opened, { type: 'stopped', at: clock.now, failure: replaced });
    source.subject.error(replaced);
    clock.pass(1_000);
    expect(client.events.map(({ type }) => type)).toEqual(['opened', 'disconnected']);
    expect(client.isComplete).toBe(false);
    relay.close();
  });
});
