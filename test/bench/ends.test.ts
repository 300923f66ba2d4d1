import { beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import * as ws from 'ws';
import { type BenchLibrary, benchLibrary, benchModule } from './library.js';

interface OnRead {
  readonly buffer: Buffer | (() => Buffer);
  readonly callback: (length: number, into: Buffer) => boolean;
}
let hold: (size: number, read: (frame: number) => void) => (frame: number) => void;
let HELD_BYTES: number;
let ReplayedSocket: new (origin: string, onread?: OnRead) => Socket;
let batchOf: (of: object) => { readonly bytes: Buffer };
let bench: BenchLibrary;
beforeAll(async () => {
  ({ hold, HELD_BYTES } = (await benchModule('support/hold.mjs')) as { hold: typeof hold; HELD_BYTES: number });
  ({ ReplayedSocket } = (await benchModule('replay/replayed-socket.mjs')) as { ReplayedSocket: typeof ReplayedSocket });
  ({ batch: batchOf } = (await benchModule('support/frames.mjs')) as { batch: typeof batchOf });
  bench = await benchLibrary();
});

it('a receiver that holds frames reads them in order, when newer ones need the memory', () => {
  const read: number[] = [];
  const push = hold(HELD_BYTES / 3, (frame) => read.push(frame));
  for (let frame = 1; frame <= 3; frame += 1) push(frame);
  expect(read).toEqual([]);
  for (let frame = 4; frame <= 8; frame += 1) push(frame);
  expect(read).toEqual([1, 2, 3, 4, 5]);
});

it('the live objects take the memory that they should, and stay', async () => {
  const file = join(import.meta.dirname, 'live-heap.mjs');
  const { grown } = (await bench.sample(file, ['30'], { nodeArgs: ['--expose-gc'] })) as { grown: number };
  expect(grown).toBeGreaterThan(27);
  expect(grown).toBeLessThan(33);
});

describe('a replayed socket', () => {
  const upgrade = 'GET /4096/text/plain HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n';
  const { length } = Buffer.from('HTTP/1.1 101 Switching Protocols\r\n');
  const expected = () => batchOf({ size: 4096, kind: 'text', protocol: 'plain' }).bytes.subarray(0, 300_000);

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
interface Session {
  readonly origin: string;
  readonly write: (bytes: Buffer) => void;
  readonly start: (path: string) => void;
  readonly hangUp?: (answer: Buffer) => void;
}

let batch: (of: { size: number; kind: Kind; protocol: string }) => Batch;
let session: (of: Session) => (bytes: Buffer) => void;
let stampedFrames: (size: number) => (seq: number, sentUs?: number) => Buffer;
let readStamp: (data: Buffer | string) => { seq: number; sentUs: number };
beforeAll(async () => {
  ({ batch } = (await benchModule('support/frames.mjs')) as { batch: typeof batch });
  ({ session } = (await benchModule('support/session.mjs')) as { session: typeof session });
  ({ stampedFrames, readStamp } = (await benchModule('support/stamp.mjs')) as {
    stampedFrames: typeof stampedFrames;
    readStamp: typeof readStamp;
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

describe('a session', () => {
  const opened = () => {
    const calls: { written: string; started: string[]; hungUp: number } = { written: '', started: [], hungUp: 0 };
    const read = session({
      origin: 'ws://127.0.0.1:1',
      write: (bytes) => (calls.written += bytes.toString('latin1')),
      start: (path) => calls.started.push(path),
      hangUp: () => (calls.hungUp += 1),
    });
    return { calls, read };
  };
  const upgrade = (path: string) =>
    Buffer.from(
      `GET ${path} HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: a, b\r\n\r\n`,
    );

  it('answers an upgrade that arrives in any pieces, and starts the frames of the path', () => {
    const { calls, read } = opened();
    for (const byte of upgrade('/200/text/plain')) read(Buffer.from([byte]));
    // The example of RFC 6455, 1.3.
    expect(calls.written).toMatch(/^HTTP\/1.1 101 [^]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
    expect(calls.written).toMatch(/Sec-WebSocket-Protocol: a\r\n\r\n$/);
    expect(calls.started).toEqual(['/200/text/plain']);
  });

  it('answers a ticket request with a ticket for the same path', () => {
    const { calls, read } = opened();
    read(Buffer.from('POST /200/text/plain/v1/wss/tickets HTTP/1.1\r\ncontent-length: 2\r\n\r\n{'));
    expect(calls.written).toBe('');
    read(Buffer.from('}'));
    expect(JSON.parse(calls.written.split('\r\n\r\n')[1] ?? '')).toMatchObject({
      wss_url: 'ws://127.0.0.1:1/200/text/plain',
    });
    expect(calls.started).toEqual([]);
  });

  it('waits for the first messages of a protocol', () => {
    const { calls, read } = opened();
    read(upgrade('/200/text/graphql'));
    const message = (text: string) =>
      Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
    const [head, tail] = [
      message('{"type":"connection_init"}').subarray(0, 9),
      message('{"type":"connection_init"}').subarray(9),
    ];
    read(head);
    expect(calls.written).not.toContain('connection_ack');
    read(tail);
    expect(calls.written).toContain('connection_ack');
    expect(calls.started).toEqual([]);
    // Two in one read.
    read(Buffer.concat([message('{"type":"ping"}'), message('{"type":"subscribe"}')]));
    expect(calls.started).toEqual(['/200/text/graphql']);
  });

  it('hangs up on a close frame, and knows no other path', () => {
    const { calls, read } = opened();
    read(upgrade('/200/text/plain'));
    read(Buffer.from([0x88, 0x82, 0, 0, 0, 0, 3, 232]));
    expect(calls.hungUp).toBe(1);
    expect(() => opened().read(upgrade('/200/text/soap'))).toThrow('Invalid path: /200/text/soap');
  });
});

it('a stamped frame says which it is and when it was sent', async () => {
  const make = stampedFrames(512);
  const messages = await messagesOf(Buffer.concat([make(0, 5), make(123_456, 1_763_671_234_567_890)]));
  expect(messages.map(({ data }) => [data.length, readStamp(data), readStamp(data.toString())])).toEqual([
    [512, { seq: 0, sentUs: 5 }, { seq: 0, sentUs: 5 }],
    [512, { seq: 123_456, sentUs: 1_763_671_234_567_890 }, { seq: 123_456, sentUs: 1_763_671_234_567_890 }],
  ]);
  expect(() => JSON.parse(String(messages[0]?.data)) as unknown).not.toThrow();
});
