import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createDecoder } from '../../src/cluster/messages/decoder.js';
import { createOutbox } from '../../src/cluster/outbox.js';
import { Frame } from '../../src/index.js';
import { ReceivedFrame } from '../../src/frames/received-frame.js';

const maxBytes = 1_024;

const head = (sequence: number) =>
  ({ epoch: 1, gen: 1, owner: 'a', phase: 'open', revision: 1, sequence, frames: sequence, at: 5 }) as const;

const frameOf = (text: string): Frame => new Frame('market', Buffer.from(text), false, 5, 1);

/** Creates an outbox that records its messages: the generation, the sequence and the texts of each. */
const outboxOf = (limit = maxBytes) => {
  const sent: (readonly [number, number, ...string[]])[] = [];
  const sizes: number[] = [];
  const decoder = createDecoder('market', 1_000_000, () => 'self');
  const outbox = createOutbox((bytes) => {
    sizes.push(bytes.byteLength);
    const message = decoder.decode(bytes);
    if (message === undefined) return;
    const texts = message.kind === 'batch' ? message.batch.map((frame) => frame.text()) : [message.kind];
    sent.push([message.gen, message.sequence, ...texts]);
  }, limit);
  return { outbox, sent, sizes };
};

describe('the outbox of an owner', () => {
  it('sends the frames of a turn in one message, after the turn', async () => {
    const { outbox, sent } = outboxOf();
    for (const n of [0, 1, 2]) outbox.frame(frameOf(`f${n}`), () => head(n));
    expect(sent).toEqual([]);
    await nextTurn();
    outbox.frame(frameOf('f3'), () => head(3));
    await nextTurn();
    expect(sent).toEqual([
      [1, 0, 'f0', 'f1', 'f2'],
      [1, 3, 'f3'],
    ]);
  });

  it('copies the bytes of a frame before the read buffer is used again', async () => {
    const { outbox, sent } = outboxOf();
    const memory = Buffer.from('onetwo');
    outbox.frame(new ReceivedFrame('market', memory, 0, 3, false, true, 5, 1, true), () => head(0));
    outbox.frame(new ReceivedFrame('market', memory, 3, 6, true, false, 5, 1, true), () => head(1));
    memory.fill('x');
    await nextTurn();
    expect(sent).toEqual([[1, 0, 'one', 'two']]);
  });

  it('copies a frame whose text was read', async () => {
    const { outbox, sent } = outboxOf();
    const frame = new ReceivedFrame('market', Buffer.from('naïve'), 0, 6, false, false, 5, 1, true);
    frame.text();
    outbox.frame(frame, () => head(0));
    await nextTurn();
    expect(sent).toEqual([[1, 0, 'naïve']]);
  });

  it('sends events in their place', async () => {
    const { outbox, sent } = outboxOf();
    outbox.frame(frameOf('a'), () => head(0));
    outbox.message({ ...head(1), kind: 'beat' });
    outbox.frame(frameOf('b'), () => head(1));
    outbox.flush();
    outbox.message({ ...head(2), kind: 'end' });
    await nextTurn();
    expect(sent).toEqual([
      [1, 0, 'a'],
      [1, 1, 'beat'],
      [1, 1, 'b'],
      [1, 2, 'end'],
    ]);
  });

  it('keeps messages below the limit: more messages for small frames, parts for a large one', async () => {
    const { outbox, sent, sizes } = outboxOf();
    const texts = [...Array.from({ length: 9 }, (_, n) => String(n).repeat(300)), 'x'.repeat(5_000), 'end'];
    texts.forEach((text, n) => outbox.frame(frameOf(text), () => head(n)));
    await nextTurn();
    expect(sent.flatMap(([, , ...each]) => each)).toEqual(texts);
    expect(sent.map(([, sequence]) => sequence)).toEqual([0, 3, 6, 9, 10]);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBytes);
  });

  it('sends frames that are larger than its first memory in one message', async () => {
    const { outbox, sent, sizes } = outboxOf(256 * 1024);
    const texts = ['a', 'b', 'c'].map((letter) => letter.repeat(20_000));
    texts.forEach((text, n) => outbox.frame(frameOf(text), () => head(n)));
    await nextTurn();
    expect(sent).toEqual([[1, 0, ...texts]]);
    expect(sizes).toHaveLength(1);
  });

  it('sends nothing without frames', async () => {
    const { outbox, sizes } = outboxOf();
    outbox.flush();
    await nextTurn();
    expect(sizes).toEqual([]);
  });
});
