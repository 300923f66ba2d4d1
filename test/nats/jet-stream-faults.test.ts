import { describe, expect, it } from '@jest/globals';
import { TimeoutError } from '@nats-io/transport-node';
import type { LogRecord } from '../../src/log/index.js';
import { recordLine } from '../../src/log/lines.js';
import { startOf } from '../../src/protocol/place.js';
import { JetStreamReader } from '../../src/nats/jet-stream-reader.js';
import { JetStreamWriter } from '../../src/nats/jet-stream-writer.js';
import type { MessageHead } from '../../src/nats/log-stream.js';
import { Frame } from '../../src/protocol/frame.js';
import { stopped } from '../operators/stream.js';
import { waitFor } from '../support/wait-for.js';
import { asStream, type FakeStream, fakeStream } from './fake-stream.js';

const frame = (n: number, at = 1_000 + n) => new Frame('market', Buffer.from(`{"n":${n}}`), false, at, 1);
const opened = { type: 'opened', at: 1_000, feed: 'market', connection: 1 } as const;

const limits = { maxBytes: Infinity, maxAgeMs: Infinity, maxWaitingBytes: 1e6, generation: undefined };

/** A writer that ends at its first failure, and the codes of its failures. */
const writerOf = (stream: FakeStream) => {
  const errors: string[] = [];
  const writer = new JetStreamWriter(asStream(stream), limits, ({ code }) => {
    errors.push(code);
    return false;
  });
  return { writer, errors };
};

/** Writes some events, and returns the types of what is stored, and the codes of the failures. */
const written = async (stream: FakeStream, events: readonly unknown[]) => {
  const { writer, errors } = writerOf(stream);
  for (const event of events) writer.add(event);
  await writer.end();
  return { types: typesIn(stream), errors };
};

const typesIn = (stream: FakeStream): readonly string[] =>
  stream
    .stored()
    .flatMap(({ bytes }) => bytes.toString().trimEnd().split('\n').slice(1))
    .map((line) => (JSON.parse(line) as { readonly type: string }).type);

/** The header of a message of a writer, with `count` frames from an offset on. */
const headerOf = (run: string, offset = 0, count = 0, more: Partial<MessageHead> = {}): MessageHead => {
  const begin = { ...startOf('log', offset), frames: offset, at: 1_000 + offset };
  const next = { ...begin, offset: offset + count, frames: offset + count };
  return { ...begin, boot: 'server', state: [], run, next, part: 0, parts: 1, ...more };
};

/** Calls a function of a stream as often as there are answers, and then the original one. */
const instead = <K extends 'append' | 'last'>(stream: FakeStream, name: K, ...answers: readonly FakeStream[K][]) => {
  const original = stream[name];
  const left = [...answers];
  const call = (...args: readonly unknown[]) =>
    ((left.shift() ?? original) as (...all: readonly unknown[]) => unknown)(...args);
  stream[name] = call as FakeStream[K];
};

describe('a writer on JetStream', () => {
  const isAway = () => Promise.reject(new TimeoutError());

  it('stores the gap of a new writer when its connection is complete, also without a frame', async () => {
    const stream = fakeStream();
    await written(stream, [opened, frame(1)]);
    const { writer, errors } = writerOf(stream);
    const at = Date.now();
    writer.add({ ...opened, at, connection: 2 });
    await waitFor(() => typesIn(stream).includes('gap'));
    writer.add(frame(2, Date.now()));
    await writer.end();
    expect([typesIn(stream), errors]).toEqual([['opened', 'frame', 'opened', 'gap', 'frame'], []]);
  });

  it.each<[string, (stream: FakeStream) => void, readonly string[], readonly string[]]>([
    [
      'ends if another writer was faster',
      (stream) =>
        instead(stream, 'append', () => {
          stream.store(headerOf('other'));
          return isAway();
        }),
      [],
      ['log-in-use'],
    ],
    [
      'stores records once whose confirmation is lost',
      (stream) => {
        const { append } = stream;
        instead(stream, 'append', append, (...args) => append(...args).then(isAway));
      },
      ['opened', 'frame'],
      [],
    ],
    [
      'ends if the stream is gone',
      (stream) =>
        instead(stream, 'append', stream.append, () => {
          instead(stream, 'last', () => Promise.resolve({}));
          return isAway();
        }),
      [],
      ['log-write-failed'],
    ],
  ])('%s', async (_what, prepare, types, codes) => {
    const stream = fakeStream();
    prepare(stream);
    expect(await written(stream, [opened, frame(1)])).toEqual({ types, errors: codes });
  });

  it('ignores what has no time, and says where an empty log ends', async () => {
    const stream = fakeStream();
    expect(await written(stream, [frame(1, NaN), { type: 'opened', at: Infinity }, 7])).toEqual({
      types: [],
      errors: [],
    });
    expect(stream.tips.at(-1)).toMatchObject({ offset: 0, at: 0, closed: true });
  });

  it('ends a feed once, if its source has said why', async () => {
    const stream = fakeStream();
    const { writer } = writerOf(stream);
    for (const event of [opened, stopped(1_001)]) writer.add(event);
    await writer.stopped(new Error('over'));
    expect(typesIn(stream)).toEqual(['opened', 'stopped']);
  });
});

describe('a reader on JetStream', () => {
  /** Stores a message of a writer, whose frames have their offsets. */
  const storeFrames = (stream: FakeStream, run: string, offset: number, count: number) => {
    const lines = Array.from({ length: count }, (_, n) => {
      const at = 1_000 + offset + n;
      return recordLine(offset + n, frame(offset + n, at), at, at);
    });
    stream.store(headerOf(run, offset, count), lines.join(''));
  };
  const readerOf = (stream: FakeStream, from: 'earliest' | { readonly offset: number } = 'earliest') =>
    new JetStreamReader(asStream(stream), { from, follow: false, onDamage: 'gap' });
  const inWords = (records: readonly LogRecord[] = []) =>
    records.map((record) =>
      record.type === 'frame' ? record.text() : record.type === 'gap' ? `${record.missed} are gone` : record.type,
    );
  const rest = async (reader: JetStreamReader) => {
    const records: LogRecord[] = [];
    for (let next = await reader.next(); next !== undefined; next = await reader.next()) records.push(...next);
    return inWords(records);
  };

  it('reads on where messages were removed, and says how many frames are gone', async () => {
    const stream = fakeStream();
    for (let n = 0; n < 8; n += 1) storeFrames(stream, 'a', n, 1);
    stream.remove((seq) => seq > 1 && seq < 5);
    expect(await rest(readerOf(stream))).toEqual(['{"n":0}', '3 are gone', ...[4, 5, 6, 7].map((n) => `{"n":${n}}`)]);
  });

  it('begins behind the second part of a record whose first part was removed', async () => {
    const stream = fakeStream();
    stream.store(headerOf('a', 0, 1, { part: 1, parts: 2 }), '"half of a record"}\n');
    storeFrames(stream, 'a', 1, 1);
    expect(await rest(readerOf(stream))).toEqual(['{"n":1}']);
  });

  it('searches its place again where another writer has stored others in place of lost messages', async () => {
    const stream = fakeStream();
    storeFrames(stream, 'a', 0, 1);
    storeFrames(stream, 'a', 1, 1);
    const reader = readerOf(stream);
    const first = [await reader.next(), await reader.next()].flatMap((records) => inWords(records));
    expect(first).toEqual(['{"n":0}', '{"n":1}']);
    stream.remove((seq) => seq === 2);
    storeFrames(stream, 'b', 1, 2);
    storeFrames(stream, 'b', 3, 1);
    expect(await rest(reader)).toEqual(['{"n":2}', '{"n":3}']);
  });

  it('finds nothing in a stream whose messages were all removed', async () => {
    const stream = fakeStream();
    stream.last = () => Promise.resolve({ seq: 9 });
    expect(await rest(readerOf(stream, { offset: 4 }))).toEqual([]);
  });

  it('does not report a request that fails after it was closed', async () => {
    const stream = fakeStream();
    const reader = readerOf(stream);
    stream.from = () => {
      reader.close();
      return Promise.reject(new Error('closed'));
    };
    storeFrames(stream, 'a', 0, 1);
    expect(await reader.next()).toBeUndefined();
  });
});
