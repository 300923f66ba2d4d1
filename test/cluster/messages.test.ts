import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Decoder, encode, encodeParts, type FeedMessage, type FeedHead } from '../../src/cluster/messages.js';
import { timing } from '../../src/cluster/election/timing.js';
import { Outbox, Publisher } from '../../src/cluster/publisher.js';
import { createTradeFeedError, Frame, type LifecycleEvent } from '../../src/index.js';
import { cases } from '../support/cases.js';

const maxFrameBytes = 1_000_000;
const decoderOf = (self = 'self', limit = maxFrameBytes) => new Decoder('market', limit, () => self);

const counts = fc.maxSafeNat();
const heads: fc.Arbitrary<FeedHead> = fc
  .record({
    line: fc.stringMatching(/^[\w-]{0,28}$/),
    gen: counts,
    after: counts,
    began: counts,
    owner: fc.string({ maxLength: 60, unit: 'binary' }),
    phase: fc.constantFrom('opening', 'open', 'free', 'stopped'),
    revision: counts,
    offset: counts,
    frames: counts,
    holes: counts,
    count: fc.constant(1),
    at: fc.integer({ min: 2 ** 31, max: 8.64e15 - 2 ** 31 }),
    complete: fc.integer({ min: 0, max: 8.64e15 }),
    settling: fc.constantFrom<FeedHead['settling']>(undefined, 'auto', 1_766_000_000_000),
  })
  .map((head) => (head.settling === undefined ? { ...head, complete: head.at } : head));
const offsets = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).filter((ms) => ms >= 0 || ms < -timing.maxSkewMs);
const payloads = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
/**
 * The frames of a message: the first one was received at its time. Times don't go back, unless the clock was set back by
 * much.
 */
const framesOf = ({ at }: FeedHead): fc.Arbitrary<readonly Frame[]> =>
  fc
    .array(fc.tuple(payloads, fc.boolean(), offsets), { minLength: 1, maxLength: 20 })
    .map((all) =>
      all
        .toSorted(([, , one], [, , other]) => one - other)
        .map(([data, isBinary, offset], n) => new Frame('market', data, isBinary, n === 0 ? at : at + offset, 1)),
    );
const batches = heads.chain((head) => framesOf(head).map((frames) => ({ head, frames })));

const failure = createTradeFeedError({
  stage: 'stream',
  closeCode: 1001,
  reason: 'server shutdown',
  detail: 'planted',
  endedAt: 5,
});
const events: readonly LifecycleEvent[] = [
  { type: 'ticket-requested', at: 1, feed: 'market' },
  { type: 'ticket-issued', at: 2, feed: 'market', expiresAt: '2026-11-20T12:00:00Z' },
  { type: 'opened', at: 3, feed: 'market', connection: 1 },
  { type: 'disconnected', at: 4, failure },
  { type: 'reconnecting', at: 5, delayMs: 100, attempt: 1, verdict: 'backoff' },
  { type: 'gap', from: 4, to: 6, durationMs: 2, failure },
];
const others = fc.oneof(
  fc
    .tuple(heads, fc.constantFrom(...events), fc.constantFrom('event', 'beat'))
    .map(([head, event, kind]) => ({ ...head, kind, event })),
  fc.tuple(heads, fc.constantFrom('beat', 'end')).map(([head, kind]) => ({ ...head, kind, count: 0 })),
);

const plain = ({ data, isBinary, receivedAt }: Frame) => ({ data, isBinary, receivedAt });
const framesIn = (message: FeedMessage | undefined): readonly Frame[] =>
  message?.kind === 'batch' ? message.framesOf(1, 0) : [];

const head0: FeedHead = {
  ...{ line: 'l', gen: 1, after: 0, began: 0, owner: 'a', phase: 'open', revision: 1 },
  ...{ offset: 7, frames: 7, holes: 0, count: 0, at: 1, complete: 1, settling: undefined },
};

/** An outbox whose publisher is at a head, and the messages that it sends. */
const outboxAt = (head: Partial<FeedHead>, limit = Infinity) => {
  const publisher = new Publisher();
  const sent: Buffer[] = [];
  Object.assign(publisher.place, { ...head0, offset: 0, frames: 0, at: 0 }, head);
  const outbox = new Outbox(
    publisher,
    (bytes) => sent.push(Buffer.from(bytes)),
    () => limit,
  );
  const push = (...frames: readonly Frame[]): void => {
    for (const frame of frames) {
      outbox.frame(frame);
      publisher.count(publisher.timeOf(frame));
    }
  };
  return { outbox, publisher, sent, push };
};

const bytesOf = (head: FeedHead, frames: readonly Frame[]): Buffer => {
  const { outbox, sent, push } = outboxAt(head);
  push(...frames);
  outbox.flush();
  return sent[0]!;
};

const ofSize = (bytes: number): Frame => new Frame('market', Buffer.alloc(bytes, 'x'), false, 1, 0);

describe('the messages of an owner', () => {
  it('are read as they were written: frames', () => {
    fc.assert(
      fc.property(batches, ({ head, frames }) => {
        const read = decoderOf().decode(bytesOf(head, frames));
        expect(read).toMatchObject({ ...head, kind: 'batch', count: frames.length });
        expect(framesIn(read).map(plain)).toEqual(frames.map(plain));
      }),
      { numRuns: cases(1_000) },
    );
  });

  it('have times that do not go back from one message to the next, although the clock of the owner does', () => {
    const { outbox, sent, push } = outboxAt({ at: 1_000 });
    const times = [900, 940, 980, 1_020.5, 1_040.2].map((at) => new Frame('market', Buffer.of(1), false, at, 1));
    for (const frame of times) push(frame);
    outbox.flush();
    const read = framesIn(decoderOf().decode(sent[0]!)).map(({ receivedAt }) => receivedAt);
    expect(read).toEqual([1_000, 1_000, 1_000, 1_020, 1_040]);
  });

  it('are read as they were written, and contain only the fixed texts of a failure: events and beats', () => {
    fc.assert(
      fc.property(others, (message) => {
        const bytes = encode(message);
        expect(bytes.toString('latin1')).not.toContain('planted');
        const read = decoderOf().decode(bytes);
        if (!('event' in message) || !('failure' in message.event)) expect(read).toEqual(message);
        else expect(read).toMatchObject({ event: { type: message.event.type, failure: { code: failure.code } } });
      }),
      { numRuns: cases(2_000) },
    );
  });

  it('carry a frame of any size in parts of a limited size', () => {
    const limits = fc.integer({ min: 1_024, max: 4_096 });
    fc.assert(
      fc.property(heads, fc.integer({ min: 1, max: 20_000 }), limits, (head, size, limit) => {
        const frame = new Frame('market', Buffer.alloc(size, 'x'), true, head.at, 0);
        const parts = encodeParts(head, frame, limit);
        expect(Math.max(...parts.map((part) => part.byteLength))).toBeLessThanOrEqual(limit);
        const decoder = decoderOf();
        const read = parts.map((part) => decoder.decode(part));
        expect(read.slice(0, -1).every((each) => each === undefined)).toBe(true);
        expect(read.at(-1)).toMatchObject({ ...head, kind: 'batch', count: 1 });
        expect(framesIn(read.at(-1)).map(({ data, receivedAt }) => [data.equals(frame.data), receivedAt])).toEqual([
          [true, head.at],
        ]);
      }),
      { numRuns: cases(500) },
    );
  });

  it('give no frame if one of its parts is missing, and the next frame is read', () => {
    const parts = encodeParts(head0, ofSize(5_000), 1_024);
    const next = encodeParts({ ...head0, offset: 8, frames: 8 }, ofSize(5_000), 1_024);
    for (const missing of parts.keys()) {
      const decoder = decoderOf();
      const read = [...parts.filter((_, n) => n !== missing), ...next].map((part) => decoder.decode(part));
      expect(read.filter((each) => each !== undefined)).toMatchObject([{ offset: 8 }]);
    }
    const decoder = decoderOf();
    const mixed = [...parts.slice(0, 2), ...next.slice(2)].map((part) => decoder.decode(part));
    expect(mixed.filter((each) => each !== undefined)).toEqual([]);
  });

  it('never throw if they were corrupted on the way, or are something else', () => {
    const changed = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 });
    const bytesOfAny = fc.oneof(
      batches.map(({ head, frames }) => bytesOf(head, frames)),
      others.map((message) => encode(message)),
    );
    fc.assert(
      fc.property(bytesOfAny, changed, fc.nat(), fc.uint8Array({ maxLength: 200 }), (bytes, changes, cut, random) => {
        const decoder = decoderOf();
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        for (const hostile of [bytes, bytes.subarray(0, cut % (bytes.length + 1)), random]) {
          const size = framesIn(decoder.decode(hostile)).reduce((sum, { data }) => sum + data.byteLength, 0);
          expect(size).toBeLessThanOrEqual(hostile.byteLength);
        }
      }),
      { numRuns: cases(3_000) },
    );
  });

  it.each<[string, Decoder, () => readonly Uint8Array[]]>([
    ['of the reader itself', decoderOf('a'), () => [encode({ ...head0, kind: 'beat' })]],
    ['of another version', decoderOf(), () => [Buffer.from(encode({ ...head0, kind: 'beat' })).fill(1, 0, 1)]],
    ['that are a part without bytes', decoderOf(), () => [encodeParts(head0, ofSize(1), 1_024)[0]!.subarray(0, -1)]],
    ['larger than the limit for frames', decoderOf('', 4_999), () => encodeParts(head0, ofSize(5_000), 1_024)],
  ])('%s are dropped', (_, decoder, messages) => {
    for (const bytes of messages()) expect(decoder.decode(bytes)).toBeUndefined();
  });
});

describe('the outbox of an owner', () => {
  const frameOf = (text: string): Frame => new Frame('market', Buffer.from(text), false, 5, 1);

  /** Reads an outbox's messages: the offset and the texts of each. */
  const read = (sent: readonly Buffer[]) => {
    const decoder = decoderOf();
    return sent.flatMap((bytes) => {
      const message = decoder.decode(bytes);
      if (message === undefined) return [];
      const texts = message.kind === 'batch' ? framesIn(message).map((frame) => frame.text()) : [message.kind];
      return [[message.offset, ...texts]];
    });
  };

  it('sends the frames of a turn in one message, after the turn', async () => {
    const { sent, push } = outboxAt({});
    push(...['f0', 'f1', 'f2'].map(frameOf));
    expect(sent).toEqual([]);
    await nextTurn();
    push(frameOf('f3'));
    await nextTurn();
    expect(read(sent)).toEqual([
      [0, 'f0', 'f1', 'f2'],
      [3, 'f3'],
    ]);
  });

  it('sends other messages in their place', () => {
    const { outbox, publisher, sent, push } = outboxAt({});
    push(frameOf('a'));
    outbox.message(publisher.beat(1));
    push(frameOf('b'));
    outbox.flush();
    outbox.flush();
    outbox.message(publisher.end(1, 1)!);
    expect(publisher.end(2, 1)).toBeUndefined();
    expect(read(sent)).toEqual([
      [0, 'a'],
      [1, 'beat'],
      [1, 'b'],
      [2, 'end'],
    ]);
  });

  it('keeps messages below the limit: more messages for small frames, parts for a large one', async () => {
    const { sent, push } = outboxAt({}, 1_024);
    const texts = [...Array.from({ length: 9 }, (_, n) => String(n).repeat(300)), 'x'.repeat(5_000), 'end'];
    push(...texts.map(frameOf));
    await nextTurn();
    expect(read(sent).flatMap(([, ...each]) => each)).toEqual(texts);
    expect(read(sent).map(([offset]) => offset)).toEqual([0, 3, 6, 9, 10]);
    expect(Math.max(...sent.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(1_024);
  });

  it('sends frames that are larger than its first memory in one message', async () => {
    const { sent, push } = outboxAt({});
    const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(40_000));
    push(...texts.map(frameOf));
    await nextTurn();
    expect(read(sent)).toEqual([[0, ...texts]]);
  });
});
