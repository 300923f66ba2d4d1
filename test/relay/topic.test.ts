import { describe, expect, it } from '@jest/globals';
import * as t from 'io-ts';
import { concat, defer, filter, map, range as numbers, scan, startWith, take, tap, throwError } from 'rxjs';
import { conflate } from '../../src/operators/conflate.js';
import { decodeWith } from '../../src/operators/decode-with.js';
import { frames } from '../../src/operators/frames.js';
import { Conflated, Decoded, timeOf } from '../../src/operators/items/item.js';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { tumblingWindow } from '../../src/operators/tumbling-window.js';
import type { RelayedEvent } from '../../src/protocol/event.js';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { copyFailure } from '../../src/protocol/failures/trade-feed-error.js';
import type { RelayOptions, RelayReceiver, RelayTopic } from '../../src/relay/index.js';
import { publicJson } from '../../src/relay/public-json.js';
import { disconnected, gapOf, joined, opened, reconnecting, stopped, watermark } from '../operators/stream.js';
import { type Client, frame, inOrder, range, timeIn, virtualRelay, watermarkIn } from './support.js';
import type { WireEvent } from './support.js';

const begin = 1_000_000;
const Numbered = t.type({ n: t.number });
const json = (n: number, at = begin + n) => frame(JSON.stringify({ n }), at);
const isEven: RelayTopic = filter((event) => event.type !== 'frame' || Number(event.text()) % 2 === 0);

const start = (options: RelayOptions = {}) => {
  const virtual = virtualRelay({ batchMs: 0, ...options });
  const { source, clock, join } = virtual;
  return {
    ...virtual,
    of: (select: RelayTopic, receiver: RelayReceiver = {}) => join({ select, ...receiver }),
    /** Emits each event at its time. */
    emit: (...events: readonly RelayedEvent[]) => {
      for (const event of events) {
        clock.pass(Math.max(0, timeOf(event)! - clock.now));
        source.emit(event);
      }
      clock.pass(0);
    },
  };
};

const valuesOf = (client: Client): unknown[] =>
  client.events.flatMap(({ type, value }) => (type === 'value' ? [value] : []));
const marksOf = (client: Client): number[] =>
  client.batches.flatMap((message) => (watermarkIn(message) as number | undefined) ?? []);
const typesOf = (client: Client): string[] => client.events.map(({ type }) => type);

describe('a topic', () => {
  it('sends the outputs of its operator, and each lifecycle event of the feed once', () => {
    const { of: join, emit } = start();
    const client = join(isEven);
    emit(opened(begin), ...range(1, 4).map((n) => frame(n, begin + n)));
    emit(disconnected(begin + 10), reconnecting(begin + 10, 5), opened(begin + 20, 2), gapOf(begin + 10, begin + 20));
    emit(frame(6, begin + 21));
    expect(typesOf(client)).toEqual([
      ...['opened', 'frame', 'frame', 'disconnected', 'reconnecting', 'opened', 'gap', 'frame'],
    ]);
    expect(client.payloads).toEqual(['2', '4', '6']);
  });

  it('sends events that the operator creates', () => {
    const { of: join, emit } = start();
    const created = gapOf(begin + 1, begin + 5);
    const client = join((events$) => events$.pipe(map((event) => (event.type === 'frame' ? created : event))));
    emit(opened(begin), frame('a', begin + 5));
    const sent = { ...created, failure: created.failure.toPublic() };
    expect(client.events).toEqual([opened(begin), JSON.parse(JSON.stringify(sent))]);
  });

  it('runs an operator once for all clients with the same function, and shares one subscription with the whole feed', () => {
    let runs = 0;
    const counted: RelayTopic = (events$) => {
      runs += 1;
      return events$;
    };
    const { of: join, join: joinAll, relay, source, clock, emit } = start({ lingerMs: 1_000 });
    const clients = [join(counted), join(counted), joinAll(), join(isEven)];
    expect([runs, source.subscriptions, relay.status().topics]).toEqual([1, 1, 2]);
    emit(opened(begin), frame(1, begin + 1), frame(2, begin + 2));
    expect(clients.map(({ payloads }) => payloads.length)).toEqual([2, 2, 2, 1]);
    expect(relay.status().stored.events).toBe(3 + 3 + 2);
    for (const client of clients) client.leave();
    clock.pass(1_000);
    expect([source.active, relay.status().topics, relay.status().stored.events]).toEqual([0, 0, 0]);
    join(counted);
    expect([runs, source.subscriptions]).toEqual([2, 2]);
  });

  it.each<[string, readonly RelayedEvent[], readonly RelayedEvent[]]>([
    [
      'in an outage, with a watermark that is no later',
      [disconnected(begin + 5), reconnecting(begin + 5, 50)],
      [watermark(begin + 5), disconnected(begin + 5), reconnecting(begin + 5, 50)],
    ],
    [
      'with the watermark of the source, if it sends any',
      [watermark(begin + 1), frame('a', begin + 95)],
      [joined(begin + 95), watermark(begin + 1)],
    ],
  ])('that starts late gives its operator the state of the feed %s', (_what, events, received) => {
    const { of: join, join: joinAll, emit, clock } = start();
    const inputs: RelayedEvent[] = [];
    joinAll();
    emit(opened(begin), ...events);
    clock.pass(1_000);
    join(tap((event) => inputs.push(event)));
    expect(inputs).toEqual(received);
  });

  it('resumes for a returning client, and treats the id of another topic like that of another relay', () => {
    const { of: join, join: joinAll, emit } = start();
    const whole = joinAll();
    const client = join(isEven);
    emit(opened(begin), ...range(1, 4).map((n) => frame(n, begin + n)));
    client.leave();
    emit(...range(5, 8).map((n) => frame(n, begin + n)));
    expect(join(isEven, { lastEventId: client.lastEventId }).payloads).toEqual(['6', '8']);
    const other = join(isEven, { lastEventId: client.lastEventId.replace(/^[^.]+/, 'lelsewhere-0') });
    expect([typesOf(other), other.payloads]).toEqual([
      ['opened', 'gap', 'frame', 'frame'],
      ['6', '8'],
    ]);
    whole.leave();
    expect(join(isEven, { lastEventId: whole.lastEventId }).payloads).toEqual([]);
  });
});

describe('a topic of values', () => {
  it('sends conflated values with key and count; times do not decrease, and watermarks wait with the values', () => {
    const { of: join, emit, clock } = start();
    const select: RelayTopic = (events$) =>
      events$.pipe(
        decodeWith(Numbered),
        conflate(({ value }) => value.n % 2, 1_000, { scheduler: clock.scheduler }),
      );
    const client = join(select);
    emit(opened(begin), json(1), json(2), json(300), json(301), json(302));
    clock.pass(690);
    expect(valuesOf(client)).toEqual([]);
    expect(Math.max(...marksOf(client))).toBeLessThanOrEqual(begin + 1);
    clock.pass(10);
    expect(client.events.slice(1)).toEqual([
      { type: 'value', at: begin + 301, value: { key: 1, value: { n: 301 }, count: 2 } },
      { type: 'value', at: begin + 302, value: { key: 0, value: { n: 302 }, count: 3 } },
    ]);
    clock.pass(600);
    expect(marksOf(client).at(-1)).toBeGreaterThan(begin + 1_000);
    inOrder(marksOf(client));
  });

  it('sends windows with the time of their end, and with their gaps', () => {
    const { of: join, emit, clock } = start();
    const select: RelayTopic = (events$) =>
      events$.pipe(
        decodeWith(Numbered),
        tumblingWindow({
          lengthMs: 1_000,
          scheduler: clock.scheduler,
          seed: () => 0,
          add: (sum, { value }) => sum + value.n,
        }),
      );
    const client = join(select);
    emit(opened(begin), json(1), json(2), disconnected(begin + 500), reconnecting(begin + 500, 1));
    emit(opened(begin + 700, 2), gapOf(begin + 500, begin + 700), json(3, begin + 1_200));
    clock.pass(1_000);
    const windows = client.events.filter(({ type }) => type === 'value');
    expect(windows).toEqual([
      expect.objectContaining({
        at: begin + 1_000,
        value: expect.objectContaining({ type: 'window', start: begin, end: begin + 1_000, value: 3, complete: false }),
      }),
      expect.objectContaining({
        at: begin + 2_000,
        value: expect.objectContaining({ value: 3, complete: true, gaps: [] }),
      }),
    ]);
    const [{ gaps }] = valuesOf(client) as [{ gaps: WireEvent[] }];
    expect(gaps).toEqual([expect.objectContaining({ type: 'gap', from: begin + 500, to: begin + 700 })]);
    inOrder(client.events.map(timeIn));
  });
});

describe('an output before the first event', () => {
  const counting: RelayTopic = (events$) =>
    events$.pipe(
      frames(),
      scan((count) => count + 1, 0),
      startWith(0),
    );

  it.each([
    ['in time', 0],
    ['late', -500_000],
    ['ahead', 3_000],
  ])('waits for the event, and has its time, when the source is %s', (_what, shift) => {
    const { of: join, source, clock } = start();
    const client = join(counting);
    clock.pass(100);
    expect(client.events).toEqual([]);
    const at = begin + shift;
    source.emit(opened(at), frame('a', at + 7));
    clock.pass(0);
    expect(client.events).toEqual([
      { type: 'value', at, value: 0 },
      opened(at),
      { type: 'value', at: at + 7, value: 1 },
    ]);
    inOrder(marksOf(client));
  });

  it('is kept if it is among the newest 1,000', () => {
    const { of: join, emit } = start();
    const client = join((events$) => events$.pipe(frames(), startWith(...range(1, 1_003))));
    emit(opened(begin));
    expect(valuesOf(client)).toEqual(range(4, 1_003));
  });

  it('has the time of the clock when the operator completes before the first event', () => {
    const { of: join, clock } = start();
    const client = join(() => numbers(1, 2));
    clock.pass(0);
    expect(client.events).toEqual([1, 2].map((value) => ({ type: 'value', at: begin, value })));
    expect(client.isComplete).toBe(true);
  });

  it('may be an error, which clients receive with the time of the clock', () => {
    const { of: join, clock } = start();
    const client = join(() => throwError(() => new Error('private text')));
    clock.pass(0);
    expect(client.events).toMatchObject([{ type: 'disconnected', at: begin, failure: { endedAt: begin } }]);
    expect(client.types.at(-1)).toBe('connect-again');
  });
});

describe('a value that looks like an event', () => {
  const parsed: RelayTopic = (events$) =>
    events$.pipe(map((event) => (event.type === 'frame' ? (JSON.parse(event.text()) as unknown) : event)));
  const failure = { code: 'connection-lost', endedAt: 1 };
  const payloads = [
    { type: 'opened', at: 1, market: 'NYSE' },
    { type: 'opened', at: 9e15 },
    { type: 'watermark', at: 1 },
    { type: 'watermark', at: 9e15 },
    { type: 'ticket-requested', at: 9e15 },
    { type: 'ticket-issued', at: 9e15 },
    { type: 'reconnecting', at: 9e15 },
    { type: 'disconnected', at: 9e15, failure },
    { type: 'stopped', at: 9e15, failure },
    { type: 'gap', from: 1, to: 9e15, failure },
    { type: 'frame', receivedAt: 9e15, feed: 'market', data: 'x', connection: 1, isBinary: false },
    { type: 'value', at: 9e15, value: 1 },
    { type: 'value', at: 1, json: '}' },
    { type: 'window', start: 1, end: 9e15, gaps: [] },
    { type: 'window', start: 1, end: 1, gaps: [] },
    { _tag: 'Left', left: { receivedAt: 'text' } },
    { _tag: 'Left', left: { receivedAt: 9e15 } },
    { _tag: 'Left', left: null },
  ];

  it.each(payloads.map((payload) => [JSON.stringify(payload), payload]))(
    'is sent as a value, and does not change the time: %s',
    (text, payload) => {
      const { of: join, emit, clock } = start();
      const client = join(parsed);
      emit(opened(begin), frame(text as string, begin + 1), frame('5', begin + 2), disconnected(begin + 3));
      expect(client.events.slice(0, 3)).toEqual([
        opened(begin),
        { type: 'value', at: expect.any(Number), value: payload },
        { type: 'value', at: begin + 2, value: 5 },
      ]);
      expect(client.events[3]).toMatchObject({ type: 'disconnected', at: begin + 3 });
      expect(client.events).toHaveLength(4);
      inOrder(client.events.map(timeIn));
      clock.pass(1_000);
      inOrder(marksOf(client));
      expect(Math.max(...marksOf(client))).toBeLessThanOrEqual(clock.now);
    },
  );
});

describe('a topic that fails', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;

  const fail = () => {
    throw new Error('private text');
  };

  it.each<[string, RelayTopic]>([
    ['an operator that throws', map(fail)],
    ['an operator that errors', (events$) => concat(events$.pipe(take(1)), defer(fail))],
    ['a TradeFeedError', () => throwError(() => createTradeFeedError({ stage: 'ticket', status: 401 }))],
    ['an operator that throws when it is called', fail],
    ['an operator that does not return an Observable', () => 5 as never],
    ['a BigInt', map(() => 5n)],
    ['a cycle', map(() => cyclic)],
    ['undefined', map(() => undefined)],
  ])('by %s stops this topic alone', (_what, topic) => {
    const { of: join, join: joinAll, emit, reports, source, clock } = start({ lingerMs: 1_000 });
    const whole = joinAll();
    const client = join(topic);
    emit(opened(begin), frame('a', begin + 1));
    expect(client.types.at(-1)).toBe('connect-again');
    expect(JSON.parse(client.messages.at(-1)!.data)).toMatchObject({ code: 'relay-source-failed', verdict: 'stop' });
    expect(JSON.stringify(client.messages)).not.toContain('private text');
    expect(client.events.at(-1)).toMatchObject({ type: 'disconnected', failure: { code: 'relay-source-failed' } });
    expect(reports.filter(({ type }) => type.endsWith('stopped'))).toEqual([
      { type: 'topic-stopped', at: expect.any(Number), error: expect.any(Error) },
    ]);
    emit(frame('b', begin + 2));
    expect([whole.payloads, whole.isComplete, source.subscriptions]).toEqual([['a', 'b'], false, 1]);
    // A client that joins within `lingerMs` receives the same end. After that the operator runs again.
    const soon = join(topic);
    expect([soon.types.at(-1), typesOf(soon).includes('opened')]).toEqual(['connect-again', false]);
    clock.pass(1_000);
    join(topic);
    emit(frame('c', begin + 2_000));
    expect(reports.filter(({ type }) => type === 'topic-stopped')).toHaveLength(2);
  });

  it('after the end of the feed reports its own error; a topic that starts then ends with the feed', () => {
    const { of: join, join: joinAll, emit, reports, source, clock } = start();
    joinAll();
    emit(opened(begin));
    source.subject.complete();
    const clients = [join(isEven), join((events$) => concat(events$, defer(fail)))];
    clock.pass(0);
    expect(clients.map(({ types }) => types.at(-1))).toEqual(['complete', 'connect-again']);
    expect(reports.flatMap(({ type }) => (type.endsWith('stopped') ? type : []))).toEqual(['topic-stopped']);
  });

  it('by a frame without a time, like the complete feed', () => {
    const { of: join, join: joinAll, source, clock } = start();
    const clients = [join(isEven), joinAll()];
    source.emit(frame(2, NaN));
    clock.pass(0);
    expect(clients.map(({ types }) => types.at(-1))).toEqual(['connect-again', 'connect-again']);
  });

  it('because the feed failed sends the failure of the feed, and the relay reports the error once', () => {
    const { of: join, join: joinAll, emit, reports, source, clock, relay } = start();
    const failure = createTradeFeedError({ stage: 'stream', closeCode: 4001, reason: 'connection replaced' });
    const clients = [join(isEven), join(decodeWith(Numbered)), joinAll()];
    emit(opened(begin), { ...stopped(begin + 5), failure });
    source.subject.error(failure);
    clock.pass(0);
    clients.push(join(conflate(() => 1, 100)));
    clock.pass(0);
    for (const client of clients) {
      expect(client.events.at(-1)).toMatchObject({ type: 'disconnected', failure: { code: 'connection-replaced' } });
      expect(JSON.parse(client.messages.at(-1)!.data)).toMatchObject({ code: 'connection-replaced' });
    }
    expect(reports.filter(({ type }) => type.endsWith('stopped')).map(({ type }) => type)).toEqual(['source-stopped']);
    expect(source.subscriptions).toBe(1);
    relay.restart();
    expect(join(isEven).isComplete).toBe(false);
    expect(source.subscriptions).toBe(2);
  });
});

it('maxTopics limits the number of topics: clients of further topics are refused, those of the whole feed are not', () => {
  const { of: join, join: joinAll, relay, reports, clock } = start({ maxTopics: 2, lingerMs: 1_000 });
  const topics = range(1, 3).map((): RelayTopic => (events$) => events$);
  const [first, , third] = topics.map((topic) => join(topic));
  expect(third!.error).toMatchObject({ name: 'RelayFullError', reason: 'topics' });
  expect(reports.at(-1)).toMatchObject({ type: 'client-refused', reason: 'topics' });
  const again = join(topics[0]!);
  expect([joinAll().error, again.error, relay.status().topics]).toEqual([undefined, undefined, 2]);
  expect(relay.status().clients).toHaveLength(4);
  first!.leave();
  clock.pass(5_000);
  expect(join(topics[2]!).error).toMatchObject({ reason: 'topics' });
  again.leave();
  clock.pass(1_000);
  expect(join(topics[2]!).error).toBeUndefined();
});

describe('public JSON', () => {
  const mark = 'private text';
  const previous = createTradeFeedError({ stage: 'stream', closeCode: 1006, reason: mark });
  const failure = copyFailure(
    createTradeFeedError({
      ...{ stage: 'ticket', code: 'api-key-unavailable', detail: mark, cause: new Error(mark), endedAt: 5 },
    }),
    { previous },
  );
  const line: unknown = JSON.parse(writeFrame(frame('a', 7)));

  /** Has private fields, and a `toJSON` that returns the public part. */
  class WithJson {
    readonly internal = mark;
    readonly #json: unknown;
    calls = 0;

    constructor(json: unknown) {
      this.#json = json;
    }

    toJSON(): unknown {
      this.calls += 1;
      return this.#json;
    }
  }

  const decoded = (value: unknown): Decoded<unknown> => new Decoded(value, frame(mark));

  /** Where in a value an object can be, and the expected JSON. */
  const places: readonly (readonly [string, (value: unknown) => unknown, (json: unknown) => unknown])[] = [
    ['alone', (value) => value, (json) => json],
    ['in an object', (value) => ({ deep: [value] }), (json) => ({ deep: [json] })],
    ['in a Decoded', decoded, (json) => json],
    ['in a Decoded in a Decoded', (value) => decoded(decoded(value)), (json) => json],
    ['in an object in a Decoded', (value) => decoded({ deep: [value] }), (json) => ({ deep: [json] })],
    [
      'in a Conflated of a Decoded',
      (value) => new Conflated('k', decoded(value), 2),
      (json) => ({ key: 'k', value: json, count: 2 }),
    ],
    ['in the result of a toJSON', (value) => new WithJson({ deep: value }), (json) => ({ deep: json })],
    ['as the result of a toJSON', (value) => new WithJson(decoded(value)), (json) => json],
    ['as the result of a toJSON in a Decoded', (value) => decoded(new WithJson([decoded(value)])), (json) => [json]],
  ];

  describe.each(places)('publicJson of a value %s', (_where, put, expected) => {
    it.each<[string, () => unknown, unknown]>([
      ['a plain object', () => ({ n: 1, none: undefined, list: [null, 'x'] }), { n: 1, list: [null, 'x'] }],
      ['an object with toJSON', () => new WithJson('price 1.5'), 'price 1.5'],
      ['a Date', () => new Date(0), '1970-01-01T00:00:00.000Z'],
      ['a frame', () => frame('a', 7), line],
      ['a Decoded', () => decoded({ n: 1 }), { n: 1 }],
      ['a Conflated', () => new Conflated('k', frame('a', 7), 3), { key: 'k', value: line, count: 3 }],
    ])('writes %s', (_what, make, json) => {
      expect(JSON.parse(publicJson(put(make())))).toEqual(expected(json));
    });

    it.each([
      ['a failure', failure],
      ['a failure that a toJSON returns', new WithJson(failure)],
    ])('writes %s with its public text only', (_what, value) => {
      const text = publicJson(put(value));
      expect(text).not.toContain(mark);
      expect(JSON.parse(text)).toEqual(expected(JSON.parse(JSON.stringify(failure.toPublic()))));
      expect(text).toContain(JSON.stringify(failure.toPublic().message));
    });
  });

  describe('publicJson', () => {
    it('calls toJSON once, with its key', () => {
      const keys: unknown[] = [];
      const shown = { toJSON: (key: unknown) => keys.push(key) };
      publicJson({ a: shown, b: decoded(shown), c: [shown] });
      expect(keys).toEqual(['a', 'b', '0']);
    });

    it.each([
      ['undefined', undefined],
      ['a Decoded of undefined', decoded(undefined)],
      ['a toJSON of undefined', new WithJson(undefined)],
      ['a function', () => 1],
      ['a BigInt', decoded(5n)],
    ])('throws for %s', (_what, value) => {
      expect(() => publicJson(value)).toThrow(TypeError);
    });
  });
});
