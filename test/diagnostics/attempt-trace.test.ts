import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { tracingChannel } from 'node:diagnostics_channel';
import { type AttemptMessage, traceAttempts } from '../../src/diagnostics/attempt-trace.js';
import type { LoggableEvent } from '../../src/protocol/event-record.js';
import { disconnected, gapOf, issued, opened, reconnecting, requested, stopped } from '../operators/stream.js';

const origin = { feed: 'market', baseUrl: 'https://feed.example.com', where: 'test' } as const;
const channel = tracingChannel<AttemptMessage>('rx-trade-feed:attempt');
const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

/** The messages: their channel, the object, and a copy of it at that moment. */
let messages: { readonly name: string; readonly message: AttemptMessage; readonly then: AttemptMessage }[] = [];
const record = (name: string) => (message: unknown) =>
  void messages.push({ name, message: message as AttemptMessage, then: structuredClone(withoutError(message)) });
const withoutError = (message: unknown) => ({ ...(message as AttemptMessage), error: undefined }) as never;
const subscribers = Object.fromEntries(names.map((name) => [name, record(name)])) as Record<
  (typeof names)[number],
  (message: unknown) => void
>;

beforeEach(() => {
  messages = [];
  channel.subscribe(subscribers);
});
afterEach(() => channel.unsubscribe(subscribers));

const publish = (...events: readonly LoggableEvent[]) => {
  const trace = traceAttempts(origin);
  events.forEach(trace.event);
  return trace;
};
const published = () => messages.map(({ name }) => name);

describe('the trace of an attempt', () => {
  it('has one message, whose stage and times follow the attempt, and which ends with the failure', () => {
    const { failure } = disconnected(40);
    publish(requested(10), issued(20), opened(30), { type: 'disconnected', at: 41, failure });
    expect(published()).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(new Set(messages.map(({ message }) => message)).size).toBe(1);
    expect(messages[0]?.then).toEqual({
      ...{ origin, attempt: 1, stage: 'ticket', startedAt: { ticket: 10 }, error: undefined },
    });
    expect(messages[0]?.message).toEqual({
      ...{ origin, attempt: 1, stage: 'stream', startedAt: { ticket: 10, handshake: 20, stream: 30 } },
      ...{ endedAt: 41, error: failure },
    });
  });

  it.each<[string, readonly LoggableEvent[], AttemptMessage['stage']]>([
    ['ticket', [requested(1)], 'ticket'],
    ['handshake', [requested(1), issued(2)], 'handshake'],
    ['stream', [requested(1), issued(2), opened(3)], 'stream'],
  ])('shows that it ended in stage %s', (_name, events, stage) => {
    publish(...events, disconnected(5));
    expect(messages.at(-1)?.message.stage).toBe(stage);
  });

  it('is numbered: 1, 2, …; a wait and a gap are not part of it', () => {
    publish(requested(1), disconnected(2), reconnecting(2, 5), requested(7), issued(8), opened(9), gapOf(2, 9));
    const started = messages.filter(({ name }) => name === 'start').map(({ message }) => message);
    expect(started.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(started[0]?.endedAt).toBe(2);
    expect(started[1]?.endedAt).toBe(undefined);
    expect(started[1]?.origin).toBe(started[0]?.origin);
  });

  it('ends with the error of a stop', () => {
    const { failure } = stopped(3);
    publish(requested(1), { type: 'stopped', at: 3, failure });
    expect(published()).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
    expect(messages.at(-1)?.message.error).toBe(failure);
  });

  it('ends without an error when the subscription ends, and only once', () => {
    const trace = publish(requested(1), issued(2));
    trace.end();
    trace.end();
    expect(published()).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
    expect(messages.at(-1)?.message).not.toHaveProperty('error');
    expect(messages.at(-1)?.message.endedAt).toBeGreaterThan(0);
    messages = [];
    publish(requested(1), disconnected(2)).end();
    expect(published()).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
  });

  it('ends only if it has begun: a worker that does not start makes no attempt', () => {
    publish(disconnected(2), reconnecting(2, 5)).end();
    expect(published()).toEqual([]);
  });

  it('begins only while the channel has a subscriber, but the attempts are counted', () => {
    channel.unsubscribe(subscribers);
    const trace = publish(requested(1), issued(2));
    channel.subscribe(subscribers);
    trace.event(opened(3));
    trace.event(disconnected(4));
    expect(published()).toEqual([]);
    trace.event(requested(5));
    expect(messages.map(({ name, message }) => [name, message.attempt])).toEqual([
      ['start', 2],
      ['end', 2],
    ]);
  });
});
