import { afterEach, describe, expect, it } from '@jest/globals';
import type { Ended } from '../../src/browser/attempt.js';
import type { RelayFeedOptions, TradeFeedError } from '../../src/browser/index.js';
import type { Received } from '../../src/protocol/event-line.js';
import { relayConnection$ } from '../../src/browser/relay-connection.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { resumePoint } from '../../src/browser/resume-point.js';
import { frameLine } from '../../src/operators/node/recording-line.js';
import { lost, opened } from '../operators/stream.js';
import { Clock, eventually, frame, isFrame, type Web } from '../relay/support.js';
import { connectAgain, ended, hello, message, silence, startSteps, status, type Step, stream } from './support.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const line = (text: string): string => frameLine(frame(text)).trim();

/** One connection, on a clock that stands. */
const connect = async (steps: Step | readonly Step[], options: RelayFeedOptions = {}, web?: Web) => {
  const server = web ?? (await startSteps(...[steps].flat()));
  closing.push(() => server[Symbol.asyncDispose]());
  const clock = new Clock(Date.now());
  const settings = resolveRelayFeed(server.url, { ...options, scheduler: clock.scheduler });
  const place = resumePoint(settings);
  const events: Received[] = [];
  const seen: { error?: TradeFeedError; ended?: Ended; isComplete?: true } = {};
  const subscription = relayConnection$(settings, place).subscribe({
    next: (event) => events.push(event),
    error: (ended: Ended) => Object.assign(seen, { ended, error: ended.failure }),
    complete: () => (seen.isComplete = true),
  });
  closing.push(() => subscription.unsubscribe());
  const over = async () => {
    await eventually(() => seen.error !== undefined || seen.isComplete === true);
    return seen;
  };
  const texts = () => events.filter(isFrame).map((each) => each.text());
  return { server, clock, place, events, seen, over, texts, subscription };
};

/** Writes the parts one after the other, each when the test says so. */
const parts = (...texts: readonly string[]) => {
  let response: Parameters<Step>[0] | undefined;
  const step: Step = (given) => {
    response = given;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  let n = 0;
  return { step, next: () => response!.write(texts[n++]), isAsked: () => response !== undefined };
};

describe('relayConnection$', () => {
  it('streams the events of a relay, and knows the place behind each message', async () => {
    const { events, place, over } = await connect(
      ended(hello() + message('e.1.0.1', opened(5)) + message('e.3.2.1', line('a'), line('b'))),
    );
    await over();
    expect(events.map(({ type }) => type)).toEqual(['opened', 'frame', 'frame']);
    expect(place.lastEventId()).toBe('e.3.2.1');
  });

  it('completes when the relay says that its feed is complete, and reads nothing behind that', async () => {
    const { seen, over, texts } = await connect(
      stream(`${hello()}event: complete\nid: e.0.0.1\ndata: {}\n\n${message('e.9.9.9', line('never'))}`),
    );
    await over();
    expect([seen, texts()]).toEqual([{ isComplete: true }, []]);
  });

  it.each<[string, boolean, readonly string[]]>([
    ['a feed that was not opened', false, []],
    ['a feed that was opened', true, [message('e.1.0.1', opened(5))]],
  ])('errors with the failure of `connect-again`, and reads nothing after it: %s', async (_what, hasOpened, before) => {
    const failure = copyFailure(lost(5, { closeCode: 4001, reason: 'connection replaced', uptimeMs: 9 }), {
      previous: lost(3),
    });
    const { server, over, texts, place } = await connect(
      stream(`${hello()}${before.join('')}${connectAgain(failure)}${message('e.9.9.9', line('never'))}`),
    );
    const { ended } = await over();
    expect(ended).toMatchObject({ isOfFeed: true, hasOpened });
    expect(ended!.failure.toJSON()).toEqual({
      ...(JSON.parse(JSON.stringify(failure)) as object),
      previous: ended!.failure.previous,
      uptimeMs: 0,
      framesReceived: 0,
    });
    expect(ended!.failure.previous).toMatchObject({ code: 'connection-lost', endedAt: 3 });
    expect([texts(), place.lastEventId()]).toEqual([[], hasOpened ? 'e.1.0.1' : 'e.0.0.1']);
    await eventually(() => server.responses[0]!.destroyed);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no JSON', 'garbage'],
    ['no failure', '{}'],
    ['a failure of an unknown verdict', JSON.stringify({ ...lost(5).toJSON(), verdict: 'hope' })],
  ])('errors with invalid-relay-data for a `connect-again` with %s', async (_what, data) => {
    const { over } = await connect(stream(`${hello()}event: connect-again\nid: e.0.0.1\ndata: ${data}\n\n`));
    expect((await over()).error).toMatchObject({ code: 'invalid-relay-data', verdict: 'backoff' });
  });

  it('takes the reason of a relay without a feed, which says no more than `connect-again`: over 503', async () => {
    const { over } = await connect(status(503, { 'content-type': 'text/event-stream' }, connectAgain(lost(5))));
    expect((await over()).ended).toMatchObject({ isOfFeed: true, failure: { code: 'connection-lost' } });
  });

  it('takes a 503 that is no stream for one without a reason', async () => {
    const { over } = await connect(status(503, { 'retry-after': '7' }));
    expect((await over()).ended).toMatchObject({
      isOfFeed: false,
      failure: { code: 'relay-full', retryAfterMs: 7_000 },
    });
  });

  it.each<[string, Step, string]>([
    ['ends it behind an event', ended(hello() + message('e.1.1.1', line('a'))), 'relay-lost'],
    [
      'ends it amid a message',
      ended(`${hello()}${message('e.1.1.1', line('a'))}id: e.2.2.2\ndata: {"ty`),
      'relay-lost',
    ],
    ['ends it at once', ended(''), 'relay-unreachable'],
    [
      'sends what is no JSON',
      stream(hello() + message('e.1.1.1', line('a')) + message('e.2.2.2', 'garbage')),
      'invalid-relay-data',
    ],
    ['sends half of its first message', ended('event: hello\ndata: {'), 'relay-unreachable'],
  ])('errors when the relay %s', async (_how, step, code) => {
    const { over, texts, place } = await connect(step);
    const { error } = await over();
    expect(error).toMatchObject({ code, framesReceived: texts().length });
    if (texts().length > 0) expect(place.lastEventId()).toBe('e.1.1.1');
  });

  it('errors when the connection is reset amid a message; what was whole has been handed on', async () => {
    const { server, over, texts, place } = await connect(stream(`${hello()}${message('e.1.1.1', line('a'))}data: {`));
    await eventually(() => texts().length === 1);
    server.reset();
    expect((await over()).error).toMatchObject({ code: 'relay-lost', framesReceived: 1, cause: expect.anything() });
    expect(place.lastEventId()).toBe('e.1.1.1');
  });

  it('hands on nothing of a message that cannot be read as a whole: it is asked for again', async () => {
    const { over, texts, place } = await connect(
      stream(hello() + message('e.1.1.1', line('a')) + message('e.3.3.3', line('b'), '{"type":"opened"}')),
    );
    expect((await over()).error).toMatchObject({ code: 'invalid-relay-data' });
    expect([texts(), place.lastEventId()]).toEqual([['a'], 'e.1.1.1']);
  });

  it('takes no notice of messages and events of a type that it does not know', async () => {
    const more = `event: new\nid: e.1.0.1\ndata: whatever\n\n${message('e.2.0.1', '{"type":"new","at":5}', line('a'))}`;
    const { over, texts, place } = await connect(ended(hello() + more));
    expect((await over()).error).toMatchObject({ code: 'relay-lost' });
    expect([texts(), place.lastEventId()]).toEqual([['a'], 'e.2.0.1']);
  });

  it.each<[string, RelayFeedOptions, number]>([
    ['10 s', {}, 10_000],
    ['connectTimeoutMs', { connectTimeoutMs: 700 }, 700],
    ['connectTimeoutMs, which is longer than idleTimeoutMs', { connectTimeoutMs: 700, idleTimeoutMs: 300 }, 700],
  ])('gives up a relay that does not answer, after %s', async (_what, options, ms) => {
    const { server, clock, seen, over } = await connect(silence, options);
    await eventually(() => server.requests.length === 1);
    clock.pass(ms - 1);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({ code: 'relay-unreachable', stage: 'handshake' });
    await eventually(() => server.responses[0]!.destroyed);
  });

  it('gives up a relay that does not greet', async () => {
    const { step, isAsked } = parts();
    const { server, clock, over } = await connect(step);
    await eventually(isAsked);
    clock.pass(10_000);
    expect((await over()).error).toMatchObject({ code: 'relay-unreachable' });
    await eventually(() => server.responses[0]!.destroyed);
  });

  it.each<[string, RelayFeedOptions, number]>([
    ['10 s', {}, 10_000],
    ['connectTimeoutMs', { connectTimeoutMs: 700 }, 700],
    ['connectTimeoutMs, which is longer than idleTimeoutMs', { connectTimeoutMs: 700, idleTimeoutMs: 300 }, 700],
  ])('gives up when your headers do not come, after %s', async (_what, options, ms) => {
    const { server, clock, seen, over } = await connect(silence, { ...options, headers: () => new Promise(() => 0) });
    clock.pass(ms - 1);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({
      ...{ code: 'relay-headers-failed', stage: 'handshake', verdict: 'backoff' },
      cause: { name: 'TimeoutError' },
    });
    expect([server.requests, clock.scheduler.actions]).toEqual([[], []]);
  });

  it('gives up a relay that has fallen silent, as of when it was last heard', async () => {
    const { step, next } = parts(hello(), message('e.1.1.1', line('a')));
    const { server, clock, seen, over, texts, place } = await connect(step, { idleTimeoutMs: 1_000 });
    await eventually(() => server.requests.length === 1);
    next();
    await eventually(() => place.lastEventId() !== undefined);
    clock.pass(900);
    next();
    await eventually(() => texts().length === 1);
    const heardAt = clock.now;
    clock.pass(999);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({
      code: 'relay-stalled',
      endedAt: heardAt,
      uptimeMs: 900,
      framesReceived: 1,
    });
    await eventually(() => server.responses[0]!.destroyed);
  });

  it('stays with one that sends nothing but heartbeats', async () => {
    // No network in between: what is written is there in the next turn.
    let relay: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => (relay = controller) });
    const { fetch } = globalThis;
    closing.push(() => (globalThis.fetch = fetch));
    globalThis.fetch = () => Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
    const write = async (text: string) => {
      relay!.enqueue(new TextEncoder().encode(text));
      await new Promise((resolve) => setImmediate(resolve));
    };
    const { clock, seen, texts } = await connect(silence, { idleTimeoutMs: 1_000 });
    await write(hello());
    for (let n = 0; n < 6; n += 1) {
      clock.pass(900);
      await write(': heartbeat\n\n');
    }
    clock.pass(900);
    await write(message('e.1.1.1', line('a')));
    expect([seen, texts()]).toEqual([{}, ['a']]);
    clock.pass(1_000);
    expect(seen.error).toMatchObject({ code: 'relay-stalled' });
  });

  it.each([
    ['ten minutes behind', -600_000, true],
    ['ten minutes ahead', 600_000, true],
    ['half a second ahead', 500, false],
    ['half a second behind', -500, false],
  ])('puts the times of a relay right whose clock is %s', async (_what, off, isFar) => {
    const at = Date.now();
    const { events, over } = await connect(
      ended(hello(at + off) + message('e.2.1.1', opened(at + off), frameLine(frame('a', at + off)).trim())),
    );
    await over();
    const times = events.map((event) => (event.type === 'frame' ? event.receivedAt : (event as { at: number }).at));
    for (const time of times) {
      if (isFar) expect(Math.abs(time - at)).toBeLessThan(5_000);
      else expect(time).toBe(at + off);
    }
  });

  it('gives the place in the store to the relay, and asks from the start without one', async () => {
    const items = new Map<string, string>();
    const resumeIn = {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, id: string) => items.set(key, id),
    };
    const first = await connect([ended(hello() + message('e.4.4.4', line('a')))], { resumeIn: resumeIn });
    await first.over();
    const second = await connect(silence, { resumeIn: resumeIn }, first.server);
    await eventually(() => first.server.requests.length === 2);
    second.subscription.unsubscribe();
    expect(first.server.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e.4.4.4']);
  });
});
