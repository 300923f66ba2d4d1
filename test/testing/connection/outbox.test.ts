import { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import type { Duplex } from 'node:stream';
import { createOutbox } from '../../../src/testing/connection/outbox.js';

/** A socket whose other side reads only when the test calls `take`. */
const slowSocket = () => {
  const writes: number[] = [];
  let taken: (() => void) | undefined;
  const socket = new Writable({
    writev: (chunks, done) => {
      writes.push(chunks.reduce((sum, { chunk }) => sum + (chunk as Buffer).length, 0));
      taken = done;
    },
  }) as unknown as Duplex;
  return { socket, writes, take: () => taken?.() };
};

const endOfTurn = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
const kib = (count: number): Buffer => Buffer.alloc(count * 1024);

describe('the outbox of a connection', () => {
  it('writes the frames of a turn to the socket in one write', async () => {
    const { socket, writes } = slowSocket();
    const outbox = createOutbox(socket, 1_000);
    for (let i = 0; i < 5; i += 1) expect(outbox.write(Buffer.alloc(10))).toBe(true);
    expect(writes).toEqual([]);
    await endOfTurn();
    expect(writes).toEqual([50]);
  });

  it('writes them before the end of the turn when they are many', () => {
    const { socket, writes } = slowSocket();
    const outbox = createOutbox(socket, 1024 * 1024);
    for (let i = 0; i < 3; i += 1) outbox.write(kib(32));
    expect(writes).toEqual([64 * 1024]);
  });

  it('writes them at once on flush', () => {
    const { socket, writes } = slowSocket();
    const outbox = createOutbox(socket, 1_000);
    outbox.flush();
    outbox.write(Buffer.alloc(10));
    outbox.flush();
    expect(writes).toEqual([10]);
  });

  it('accepts a frame while the backlog is at the limit, and refuses it beyond', async () => {
    const { socket, take } = slowSocket();
    const outbox = createOutbox(socket, 100);
    outbox.write(Buffer.alloc(100));
    await endOfTurn();
    expect(socket.writableLength).toBe(100);
    expect(outbox.write(Buffer.alloc(1))).toBe(true);
    await endOfTurn();
    expect(socket.writableLength).toBe(101);
    expect(outbox.write(Buffer.alloc(1))).toBe(false);
    take();
    await endOfTurn();
    expect(outbox.write(Buffer.alloc(1))).toBe(true);
  });

  it('accepts one frame that is larger than the limit', () => {
    const { socket } = slowSocket();
    const outbox = createOutbox(socket, 10);
    expect(outbox.write(kib(1_000))).toBe(true);
    expect(outbox.write(Buffer.alloc(1))).toBe(false);
  });

  it('does not count bytes that are not yet written to the socket', () => {
    const { socket } = slowSocket();
    const outbox = createOutbox(socket, 10);
    for (let i = 0; i < 100; i += 1) expect(outbox.write(Buffer.alloc(100))).toBe(true);
  });
});
