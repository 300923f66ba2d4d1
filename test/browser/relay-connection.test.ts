import { afterEach, describe, expect, it } from '@jest/globals';
import type { ConnectionEnd } from '../../src/browser/connection-facts.js';
import type { RelayFeedOptions, TradeFeedError } from '../../src/browser/index.js';
import type { Received } from '../../src/protocol/event-line.js';
import { relayConnection$ } from '../../src/browser/relay-connection.js';
import { resolveRelayFeed } from '../../src/browser/relay-feed-options.js';
import { resumePoint } from '../../src/browser/resume-point.js';
import { frameLine } from '../../src/operators/node/recording/recording-line.js';
import { lost, opened } from '../operators/stream.js';
import { Clock, frame, isFrame, type Web } from '../relay/support.js';
import { connectAgain, ended, hello, message, silence, startSteps, status, type Step, stream } from './support.js';
import { waitFor } from '../support/wait-for.js';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const line = (text: string): string => frameLine(frame(text)).trim();

/** Opens one connection, on a virtual clock. */
const connect = async (steps: Step | readonly Step[], options: RelayFeedOptions = {}, web?: Web) => {
  const server = web ?? (await startSteps(...[steps].flat()));
  closing.push(() => server[Symbol.asyncDispose]());
  const clock = new Clock(Date.now());
  const settings = resolveRelayFeed(server.url, { ...options, scheduler: clock.scheduler });
  const point = resumePoint(settings);
  const events: Received[] = [];
  const seen: { error?: TradeFeedError; ended?: ConnectionEnd; isComplete?: true } = {};
  const subscription = relayConnection$(settings, point).subscribe({
    next: (event) => events.push(event),
    error: (ended: ConnectionEnd) => Object.assign(seen, { ended, error: ended.failure }),
    complete: () => (seen.isComplete = true),
  });
  closing.push(() => subscription.unsubscribe());
  const over = async () => {
    await waitFor(() => seen.error !== undefined || seen.isComplete === true);
    return seen;
  };
  const texts = () => events.filter(isFrame).map((each) => each.text());
  return { server, clock, point, events, seen, over, texts, subscription };
};

/** Writes the parts one after the other, each at a call of `next`. */
const parts = (...texts: readonly string[]) => {
  let response: Parameters<Step>[0] | undefined;
  const step: Step = (target) => {
    response = target;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  let n = 0;
  return { step, next: () => response!.write(texts[n++]), isRequested: () => response !== undefined };
};

describe('relayConnection$', () => {
  it('streams the events of a relay, and records the id of each message', async () => {
    const { events, point, over } = await connect(
      ended(hello() + message('e.1.0.1', opened(5)) + message('e.3.2.1', line('a'), line('b'))),
    );
    await over();
    expect(events.map(({ type }) => type)).toEqual(['opened', 'frame', 'frame']);
    expect(point.lastEventId()).toBe('e.3.2.1');
  });

  it('completes at the message `complete`, and reads nothing after it', async () => {
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
    const failure = lost(5, { closeCode: 4001, reason: 'connection replaced', uptimeMs: 9 }).with({
      previous: lost(3),
    });
    const { server, over, texts, point } = await connect(
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
    expect([texts(), point.lastEventId()]).toEqual([[], hasOpened ? 'e.1.0.1' : 'e.0.0.1']);
    await waitFor(() => server.responses[0]!.destroyed);
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

  it('reads the reason of a relay without a feed from a 503 with `connect-again` alone', async () => {
    const { over } = await connect(status(503, { 'content-type': 'text/event-stream' }, connectAgain(lost(5))));
    expect((await over()).ended).toMatchObject({ isOfFeed: true, failure: { code: 'connection-lost' } });
  });

  it('treats a 503 without a stream as relay-full', async () => {
    const { over } = await connect(status(503, { 'retry-after': '7' }));
    expect((await over()).ended).toMatchObject({
      isOfFeed: false,
      failure: { code: 'relay-full', retryAfterMs: 7_000 },
    });
  });

  it.each<[string, Step, string]>([
    ['ends the stream after an event', ended(hello() + message('e.1.1.1', line('a'))), 'relay-lost'],
    [
      'ends the stream within a message',
      ended(`${hello()}${message('e.1.1.1', line('a'))}id: e.2.2.2\ndata: {"ty`),
      'relay-lost',
    ],
    ['ends the stream at once', ended(''), 'relay-unreachable'],
    [
      'sends a line that is not JSON',
      stream(hello() + message('e.1.1.1', line('a')) + message('e.2.2.2', 'garbage')),
      'invalid-relay-data',
    ],
    ['sends half of its first message', ended('event: hello\ndata: {'), 'relay-unreachable'],
  ])('errors when the relay %s', async (_how, step, code) => {
    const { over, texts, point } = await connect(step);
    const { error } = await over();
    expect(error).toMatchObject({ code, framesReceived: texts().length });
    if (texts().length > 0) expect(point.lastEventId()).toBe('e.1.1.1');
  });

  it('errors when the connection is reset within a message, after the events of whole messages', async () => {
    const { server, over, texts, point } = await connect(stream(`${hello()}${message('e.1.1.1', line('a'))}data: {`));
    await waitFor(() => texts().length === 1);
    server.reset();
    expect((await over()).error).toMatchObject({ code: 'relay-lost', framesReceived: 1, cause: expect.anything() });
    expect(point.lastEventId()).toBe('e.1.1.1');
  });

  it('emits no event of a message that cannot be read completely, so that the next request repeats it', async () => {
    const { over, texts, point } = await connect(
      stream(hello() + message('e.1.1.1', line('a')) + message('e.3.3.3', line('b'), '{"type":"opened"}')),
    );
    expect((await over()).error).toMatchObject({ code: 'invalid-relay-data' });
    expect([texts(), point.lastEventId()]).toEqual([['a'], 'e.1.1.1']);
  });

  it('ignores messages and events of an unknown type', async () => {
    const more = `event: new\nid: e.1.0.1\ndata: whatever\n\n${message('e.2.0.1', '{"type":"new","at":5}', line('a'))}`;
    const { over, texts, point } = await connect(ended(hello() + more));
    expect((await over()).error).toMatchObject({ code: 'relay-lost' });
    expect([texts(), point.lastEventId()]).toEqual([['a'], 'e.2.0.1']);
  });

  it.each<[string, RelayFeedOptions, number]>([
    ['10 s', {}, 10_000],
    ['connectTimeoutMs', { connectTimeoutMs: 700 }, 700],
    ['connectTimeoutMs, which is longer than idleTimeoutMs', { connectTimeoutMs: 700, idleTimeoutMs: 300 }, 700],
  ])('errors when the relay does not answer within %s', async (_what, options, ms) => {
    const { server, clock, seen, over } = await connect(silence, options);
    await waitFor(() => server.requests.length === 1);
    clock.pass(ms - 1);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({ code: 'relay-unreachable', stage: 'handshake' });
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it('errors when the relay does not send hello', async () => {
    const { step, isRequested } = parts();
    const { server, clock, over } = await connect(step);
    await waitFor(isRequested);
    clock.pass(10_000);
    expect((await over()).error).toMatchObject({ code: 'relay-unreachable' });
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it.each<[string, RelayFeedOptions, number]>([
    ['10 s', {}, 10_000],
    ['connectTimeoutMs', { connectTimeoutMs: 700 }, 700],
    ['connectTimeoutMs, which is longer than idleTimeoutMs', { connectTimeoutMs: 700, idleTimeoutMs: 300 }, 700],
  ])('errors when your headers do not resolve within %s', async (_what, options, ms) => {
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

  it('errors when the relay is silent, with the time of the last bytes as the end', async () => {
    const { step, next } = parts(hello(), message('e.1.1.1', line('a')));
    const { server, clock, seen, over, texts, point } = await connect(step, { idleTimeoutMs: 1_000 });
    await waitFor(() => server.requests.length === 1);
    next();
    await waitFor(() => point.lastEventId() !== undefined);
    clock.pass(900);
    next();
    await waitFor(() => texts().length === 1);
    const lastBytesAt = clock.now;
    clock.pass(999);
    expect(seen).toEqual({});
    clock.pass(1);
    expect((await over()).error).toMatchObject({
      code: 'relay-stalled',
      endedAt: lastBytesAt,
      uptimeMs: 900,
      framesReceived: 1,
    });
    await waitFor(() => server.responses[0]!.destroyed);
  });

  it('stays connected while only heartbeats arrive', async () => {
    // Without a network, written bytes arrive in the next turn.
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
  ])('corrects the times of a relay whose clock is %s', async (_what, off, isFar) => {
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

  it('sends the id in the store to the relay, and no id without one', async () => {
    const items = new Map<string, string>();
    const resumeIn = {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, id: string) => items.set(key, id),
    };
    const first = await connect([ended(hello() + message('e.4.4.4', line('a')))], { resumeIn: resumeIn });
    await first.over();
    const second = await connect(silence, { resumeIn: resumeIn }, first.server);
    await waitFor(() => first.server.requests.length === 2);
    second.subscription.unsubscribe();
    expect(first.server.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'e.4.4.4']);
  });
});
