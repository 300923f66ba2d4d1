import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MessageChannel } from 'node:worker_threads';
import { createDecoder } from '../../src/cluster/messages/decoder.js';
import { encode, encodeParts, headBytesOf } from '../../src/cluster/messages/encode.js';
import type { FeedMessage, MessageHead } from '../../src/cluster/messages/feed-message.js';
import { createOpenBatch } from '../../src/cluster/messages/open-batch.js';
import { phases } from '../../src/cluster/messages/layout.js';
import { createTradeFeedError, type LifecycleEvent, Frame } from '../../src/index.js';
import { cases } from '../support/cases.js';

const maxFrameBytes = 1_000_000;
const counts = fc.maxSafeNat();
const heads: fc.Arbitrary<MessageHead> = fc.record({
  epoch: counts,
  gen: counts,
  owner: fc.string({ maxLength: 60, unit: 'binary' }),
  phase: fc.constantFrom(...phases),
  revision: counts,
  sequence: counts,
  frames: counts,
  at: fc.integer({ min: 0, max: 8.64e15 - 2 ** 31 }),
});
const payloads = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
const framesOf = (at: number) =>
  fc
    .tuple(payloads, fc.boolean(), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))
    .map(([data, isBinary, offset]) => new Frame('market', data, isBinary, at + offset, 0));
const batches: fc.Arbitrary<FeedMessage> = heads.chain((head) =>
  fc.array(framesOf(head.at), { minLength: 1, maxLength: 20 }).map((batch) => ({ ...head, kind: 'batch', batch })),
);
const failure = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', endedAt: 5 });
const lifecycle: readonly LifecycleEvent[] = [
  { type: 'ticket-requested', at: 1, feed: 'market' },
  { type: 'ticket-issued', at: 2, feed: 'market', expiresAt: '2026-11-20T12:00:00Z' },
  { type: 'opened', at: 3, feed: 'market', connection: 1 },
  { type: 'disconnected', at: 4, failure },
  { type: 'reconnecting', at: 5, delayMs: 100, attempt: 1, verdict: 'backoff' },
  { type: 'gap', from: 4, to: 6, durationMs: 2, failure },
];
const others: fc.Arbitrary<FeedMessage> = fc.oneof(
  fc
    .tuple(heads, fc.constantFrom(...lifecycle))
    .map(([head, event]): FeedMessage => ({ ...head, kind: 'event', event })),
  fc.tuple(heads, fc.constantFrom('beat', 'end')).map(([head, kind]): FeedMessage => ({ ...head, kind })),
);

const plain = (message: FeedMessage | undefined): unknown =>
  message?.kind === 'batch'
    ? { ...message, batch: message.batch.map(({ data, isBinary, receivedAt }) => ({ data, isBinary, receivedAt })) }
    : message;

const bytesOf = (message: FeedMessage): Buffer => {
  if (message.kind !== 'batch') return encode(message);
  const open = createOpenBatch(Infinity);
  for (const frame of message.batch) open.add(frame, () => message);
  return open.seal()!;
};

describe('the messages of an owner', () => {
  it('are read as they were written', () => {
    fc.assert(
      fc.property(fc.oneof(batches, others), (message) => {
        const read = createDecoder('market', maxFrameBytes, () => 'self').decode(bytesOf(message));
        if (message.kind === 'event' && 'failure' in message.event) {
          expect(read).toMatchObject({
            kind: 'event',
            event: { type: message.event.type, failure: { code: failure.code } },
          });
        } else expect(plain(read)).toEqual(plain(message));
      }),
      { numRuns: cases(5_000) },
    );
  });

  it('contain only the fixed texts of a failure', () => {
    const secret = createTradeFeedError({
      stage: 'stream',
      closeCode: 1001,
      reason: 'server shutdown',
      detail: 'planted',
    });
    const head = { epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence: 0, frames: 0, at: 1 } as const;
    const bytes = encode({ ...head, kind: 'event', event: { type: 'disconnected', at: 1, failure: secret } });
    expect(bytes.toString('latin1')).not.toContain('planted');
    expect(bytes.toString('latin1')).toContain('server-shutdown');
  });

  it('carry a frame of any size in parts of a limited size', () => {
    fc.assert(
      fc.property(
        heads,
        fc.integer({ min: 1, max: 20_000 }),
        fc.integer({ min: 1_024, max: 4_096 }),
        (head, size, limit) => {
          const frame = new Frame('market', Buffer.alloc(size, 'x'), true, head.at, 0);
          const parts = encodeParts(head, frame, limit);
          expect(Math.max(...parts.map((part) => part.byteLength))).toBeLessThanOrEqual(limit);
          const decoder = createDecoder('market', maxFrameBytes, () => 'self');
          const read = parts.map((part) => decoder.decode(part));
          expect(read.slice(0, -1).every((each) => each === undefined)).toBe(true);
          expect(plain(read.at(-1))).toEqual(plain({ ...head, kind: 'batch', batch: [frame] }));
        },
      ),
      { numRuns: cases(1_000) },
    );
  });

  it('are undefined for a part without bytes', () => {
    const head = { epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence: 0, frames: 0, at: 1 } as const;
    const [part] = encodeParts(head, new Frame('market', Buffer.from('x'), false, 1, 0), 1_024);
    expect(createDecoder('market', maxFrameBytes, () => 'self').decode(part!.subarray(0, -1))).toBeUndefined();
  });

  it('of a frame without one of its parts are no frame, and the next frame is read', () => {
    const head = { epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence: 7, frames: 7, at: 1 } as const;
    const frame = new Frame('market', Buffer.alloc(5_000, 'x'), false, 1, 0);
    const parts = encodeParts(head, frame, 1_024);
    const next = encodeParts({ ...head, sequence: 8, frames: 8 }, frame, 1_024);
    for (const missing of parts.keys()) {
      const decoder = createDecoder('market', maxFrameBytes, () => 'self');
      const read = [...parts.filter((_, n) => n !== missing), ...next].map((part) => decoder.decode(part));
      expect(read.filter((each) => each !== undefined)).toMatchObject([{ sequence: 8 }]);
    }
  });

  it('larger than the limit for frames are dropped', () => {
    const head = { epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence: 7, frames: 7, at: 1 } as const;
    const parts = encodeParts(head, new Frame('market', Buffer.alloc(5_000), false, 1, 0), 1_024);
    const decoder = createDecoder('market', 4_999, () => 'self');
    expect(parts.map((part) => decoder.decode(part)).every((each) => each === undefined)).toBe(true);
  });

  it('that were changed on the way, or are something else, never throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(batches, others),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 5 }),
        fc.nat(),
        fc.uint8Array({ maxLength: 200 }),
        (message, changes, cut, random) => {
          const decoder = createDecoder('market', maxFrameBytes, () => 'self');
          const bytes = bytesOf(message);
          for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
          for (const hostile of [bytes, bytes.subarray(0, cut % (bytes.length + 1)), random]) {
            const read = decoder.decode(hostile);
            if (read?.kind !== 'batch') continue;
            const size = read.batch.reduce((sum, { data }) => sum + data.byteLength, 0);
            expect(size).toBeLessThanOrEqual(maxFrameBytes);
          }
        },
      ),
      { numRuns: cases(10_000) },
    );
  });

  it('cannot be transferred to another thread: that would empty the other frames of the message', () => {
    const frames = ['one', 'two', 'three'].map((text) => new Frame('market', Buffer.from(text), false, 1, 0));
    const received = Uint8Array.from(bytesOf({ ...head0, kind: 'batch', batch: frames }));
    const message = createDecoder('market', maxFrameBytes, () => 'self').decode(received);
    const batch = message?.kind === 'batch' ? message.batch : [];
    const { port1, port2 } = new MessageChannel();
    for (const { data } of batch) {
      try {
        port1.postMessage(data, [data.buffer as ArrayBuffer]);
      } catch (error) {
        expect((error as Error).name).toBe('DataCloneError');
      }
    }
    port1.close();
    port2.close();
    expect(batch.map((frame) => frame.text())).toEqual(['one', 'two', 'three']);
  });

  it('of the reader itself are dropped', () => {
    expect(
      createDecoder('market', maxFrameBytes, () => 'a').decode(encode({ ...head0, kind: 'beat' })),
    ).toBeUndefined();
  });

  it('of another version are dropped', () => {
    const bytes = encode({ ...head0, kind: 'beat' });
    bytes[0] = 2;
    expect(createDecoder('market', maxFrameBytes, () => 'self').decode(bytes)).toBeUndefined();
  });

  it('have the size that is announced', () => {
    fc.assert(
      fc.property(heads, (head) => {
        expect(encode({ ...head, kind: 'beat' })).toHaveLength(headBytesOf(head));
      }),
      { numRuns: cases(500) },
    );
  });
});

const head0 = { epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence: 0, frames: 0, at: 1 } as const;
