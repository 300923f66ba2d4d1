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
import { tradeFeedError } from '../../src/protocol/classify.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createRelay, type Relay } from '../../src/relay/index.js';
import { RelayFullError } from '../../src/relay/relay-full-error.js';
import { Client, Clock, Source } from './support.js';

const replaced = tradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
const opened = { type: 'opened', at: 1, feed: 'market', connection: 1 } as const;

const scheduler = new VirtualTimeScheduler(undefined, 1_000);

/** What a client is told in its first second, by type; it leaves then. */
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
  ] as const)('lets the next client subscribe to a source that has %s, and nobody before', (_how, over$, last) => {
    let subscriptions = 0;
    const source$: Observable<RelayedEvent> = defer(() => {
      subscriptions += 1;
      return subscriptions === 1 ? over$ : concat(of(opened), NEVER);
    });
    const relay = createRelay(source$, { scheduler });
    expect(typesFor(relay)).toEqual(['hello', last]);
    // Who comes after a stop gets no stream.
    expect(typesFor(relay)).toEqual(last === 'complete' ? ['hello', last] : [last]);
    expect(subscriptions).toBe(1);

    relay.restart();
    expect(subscriptions).toBe(1);
    expect(typesFor(relay)).not.toContain(last);
    expect(subscriptions).toBe(2);
    relay.close();
  });

  it('changes nothing while the source goes on', () => {
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

  it('does not open a relay that is closed', () => {
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
  it('sends its stop to clients at once, as a disconnection: they stay', () => {
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
