/** @ci */
import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import * as ws from 'ws';
import { benchModule } from './library.js';

interface OnRead {
  readonly buffer: () => Buffer;
  readonly callback: (length: number, into: Buffer) => boolean;
}
interface Batch {
  readonly bytes: Buffer;
  readonly frames: number;
  readonly frameBytes: number;
}
const { ReplayedSocket } = (await benchModule('replay/replayed-socket.mjs')) as {
  ReplayedSocket: new (origin: string, onread?: OnRead) => Socket;
};
const { batch } = (await benchModule('support/frames.mjs')) as {
  batch: (of: { size: number; kind: string }) => Batch;
};

describe('a replayed socket', () => {
  const expected = batch({ size: 4096, kind: 'text' }).bytes.subarray(0, 300_000);

  /** Resolves with the first bytes after the response, which the socket passes to `take`. */
  const received = (open: (take: (bytes: Buffer) => void) => Socket) =>
    new Promise<Buffer>((resolve) => {
      let all = Buffer.alloc(0);
      const socket = open((bytes) => {
        all = Buffer.concat([all, bytes]);
        const end = all.indexOf('\r\n\r\n') + 4;
        if (end < 4 || all.length < end + 300_000) return;
        socket.destroy();
        resolve(all.subarray(end, end + 300_000));
      });
      socket.write('GET /4096/text HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n');
    });

  it('emits the frames of the sender as data', async () => {
    const bytes = await received((take) => new ReplayedSocket('ws://127.0.0.1:1').on('data', take));
    expect(bytes.equals(expected)).toBe(true);
  });

  it('reads them into a buffer of the caller, which is smaller than a chunk', async () => {
    const memory = Buffer.alloc(1_000);
    const bytes = await received((take) => {
      const callback = (count: number) => {
        take(Buffer.from(memory.subarray(0, count)));
        return true;
      };
      return new ReplayedSocket('ws://127.0.0.1:1', { buffer: () => memory, callback });
    });
    expect(bytes.equals(expected)).toBe(true);
  });
});

// The types of `ws` do not include it.
const { Receiver } = ws as unknown as { Receiver: new () => Writable };

/** Reads frames as `ws` does. */
const messagesOf = async (bytes: Buffer): Promise<readonly { data: Buffer; isBinary: boolean }[]> => {
  const receiver = new Receiver();
  const messages: { data: Buffer; isBinary: boolean }[] = [];
  receiver.on('message', (data: Buffer, isBinary: boolean) => messages.push({ data, isBinary }));
  receiver.end(bytes);
  await once(receiver, 'finish');
  return messages;
};

describe('a batch of the benchmarks', () => {
  it.each([
    [200, 'text'],
    [65_536, 'text'],
    [200, 'unicode'],
    [1024, 'batches'],
    [200, 'binary'],
  ])('has complete frames of JSON of exactly %d bytes: %s', async (size, kind) => {
    const { bytes, frames, frameBytes } = batch({ size, kind });
    const messages = await messagesOf(bytes);
    expect(messages.length).toBe(frames);
    expect(bytes.length).toBe(frames * frameBytes);
    expect(new Set(messages.map(({ data }) => data.length))).toEqual(new Set([size]));
    expect(messages.every(({ isBinary }) => isBinary === (kind === 'binary'))).toBe(true);
    for (const { data } of messages.slice(0, 8))
      expect(JSON.stringify(JSON.parse(data.toString()))).toBe(data.toString());
  });
});
