/** @ci */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import * as ws from 'ws';
import { benchModule } from './library.js';

interface OnRead {
  readonly buffer: Buffer | (() => Buffer);
  readonly callback: (length: number, into: Buffer) => boolean;
}
let ReplayedSocket: new (origin: string, onread?: OnRead) => Socket;
beforeAll(async () => {
  ({ ReplayedSocket } = (await benchModule('replay/replayed-socket.mjs')) as { ReplayedSocket: typeof ReplayedSocket });
});

describe('a replayed socket', () => {
  const upgrade = 'GET /4096/text/plain HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n';
  const { length } = Buffer.from('HTTP/1.1 101 Switching Protocols\r\n');
  const expected = () => batch({ size: 4096, kind: 'text', protocol: 'plain' }).bytes.subarray(0, 300_000);

  /** Resolves with the first bytes after the response, which the socket passes to `take`. */
  const received = (open: (take: (bytes: Buffer) => void) => Socket) =>
    new Promise<Buffer>((resolve) => {
      let all = Buffer.alloc(0);
      const socket = open((bytes) => {
        all = Buffer.concat([all, bytes]);
        const end = all.indexOf('\r\n\r\n') + 4;
        if (all.length < end + 300_000 || end < length) return;
        socket.destroy();
        resolve(all.subarray(end, end + 300_000));
      });
      socket.write(upgrade);
    });

  it('emits the frames of the sender as data', async () => {
    const bytes = await received((take) => new ReplayedSocket('ws://127.0.0.1:1').on('data', take));
    expect(bytes.equals(expected())).toBe(true);
  });

  it.each([1_000, 100_000])('reads them into a buffer of %d bytes of the caller', async (size) => {
    const memory = Buffer.alloc(size);
    const bytes = await received((take) => {
      const callback = (count: number) => {
        take(Buffer.from(memory.subarray(0, count)));
        return true;
      };
      return new ReplayedSocket('ws://127.0.0.1:1', { buffer: () => memory, callback });
    });
    expect(bytes.equals(expected())).toBe(true);
  });
});

type Kind = 'text' | 'unicode' | 'binary';
interface Batch {
  readonly bytes: Buffer;
  readonly frames: number;
  readonly frameBytes: number;
}
let batch: (of: { size: number; kind: Kind; protocol: string }) => Batch;
beforeAll(async () => {
  ({ batch } = (await benchModule('support/frames.mjs')) as { batch: typeof batch });
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

describe('a batch', () => {
  it.each([200, 1024, 4096, 65_536])('has complete frames of JSON of exactly %d bytes', async (size) => {
    const { bytes, frames, frameBytes } = batch({ size, kind: 'text', protocol: 'plain' });
    const messages = await messagesOf(bytes);
    expect(messages.length).toBe(frames);
    expect(bytes.length).toBe(frames * frameBytes);
    expect(new Set(messages.map(({ data }) => data.length))).toEqual(new Set([size]));
    expect(messages.some(({ isBinary }) => isBinary)).toBe(false);
    for (const { data } of messages.slice(0, 8))
      expect(JSON.stringify(JSON.parse(data.toString()))).toBe(data.toString());
  });

  it('can be binary or text that is not ASCII, of the same size', async () => {
    const [binary] = await messagesOf(batch({ size: 200, kind: 'binary', protocol: 'plain' }).bytes);
    const [unicode] = await messagesOf(batch({ size: 200, kind: 'unicode', protocol: 'plain' }).bytes);
    expect([binary?.isBinary, binary?.data.length]).toEqual([true, 200]);
    expect([unicode?.isBinary, unicode?.data.length, unicode?.data.toString().length]).toEqual([false, 200, 199]);
  });

  it.each([
    ['graphql', (message: { payload: { data: { feed: unknown } } }) => message.payload.data.feed],
    ['centrifuge', (message: { push: { pub: { data: unknown } } }) => message.push.pub.data],
  ])('has a payload of the same size in the protocol of %s', async (protocol, payloadOf) => {
    const [message] = await messagesOf(batch({ size: 1024, kind: 'text', protocol }).bytes);
    const payload = payloadOf(JSON.parse(String(message?.data)) as never);
    expect(JSON.stringify(payload).length).toBe(1024);
  });
});
