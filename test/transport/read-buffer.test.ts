import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createServer, type AddressInfo } from 'node:net';
import { connectSocket } from '../../src/transport/connect-socket.js';
import { ReadBuffer, readIntoBuffer } from '../../src/transport/read-buffer.js';
import { closed } from '../support/feed.js';
import { readInto } from '../support/read-into.js';

const space = ({ onread }: ReadBuffer): Buffer => (onread.buffer as () => Buffer)();

describe('a ReadBuffer', () => {
  it('shows each byte in order until it is used, wherever reads end and however many bytes are used', () => {
    const step = fc.record({
      bytes: fc.constantFrom(1, 300, 70_000, 300_000),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let [sent, used, share] = [0, 0, 0];
        const reads = new ReadBuffer((bytes) => {
          for (const at of [0, bytes.length >> 1, bytes.length - 1]) expect(bytes[at]).toBe((used + at) % 251);
          const count = Math.floor(bytes.length * share);
          used += count;
          return count;
        });
        for (const { bytes, used: part } of steps) {
          share = part;
          readInto(reads, Buffer.from(Uint8Array.from({ length: bytes }, (_, n) => (sent + n) % 251)));
          sent += bytes;
        }
        expect(used).toBeLessThanOrEqual(sent);
      }),
      { numRuns: 50 },
    );
  });

  it('uses the same memory for all reads whose bytes are used', () => {
    const reads = new ReadBuffer((bytes) => bytes.length);
    readInto(reads, Buffer.alloc(1));
    const first = space(reads);
    for (let n = 0; n < 5; n += 1) {
      readInto(reads, Buffer.alloc(1_000));
      expect(space(reads)).toBe(first);
    }
  });

  it('grows for a frame that is larger, and returns to its first size', () => {
    let wanted = 1;
    const reads = new ReadBuffer((bytes) => (bytes.length < wanted ? 0 : bytes.length));
    readInto(reads, Buffer.alloc(1));
    const { length } = space(reads);
    wanted = 10 * length;
    readInto(reads, Buffer.alloc(wanted - 1));
    expect(space(reads).buffer.byteLength).toBeGreaterThan(wanted);
    expect(space(reads).buffer.byteLength).toBeLessThanOrEqual(4 * wanted);
    readInto(reads, Buffer.alloc(1));
    wanted = 1;
    expect(space(reads).buffer.byteLength).toBe(length);
  });

  it('has little memory until the first read, and always space for a read after it', () => {
    const reads = new ReadBuffer(() => 0);
    expect(space(reads).buffer.byteLength).toBeLessThanOrEqual(4 * 1024);
    readInto(reads, Buffer.alloc(1));
    for (let n = 0; n < 40; n += 1) {
      expect(space(reads).length).toBeGreaterThanOrEqual(64 * 1024);
      readInto(reads, Buffer.alloc(10_000));
    }
  });
});

describe('readIntoBuffer', () => {
  const start = (write: string) =>
    new Promise<{ url: URL; stop: () => void }>((resolve) => {
      const server = createServer((socket) => socket.on('error', () => undefined).write(write));
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address() as AddressInfo;
        resolve({ url: new URL(`ws://127.0.0.1:${port}`), stop: () => server.close() });
      });
    });
  const connect = readIntoBuffer((url, onread) => connectSocket(url, undefined, undefined, onread));

  it('connects a socket that reads into a buffer', async () => {
    const { url, stop } = await start('some bytes');
    const socket = connect(url);
    const read = await new Promise((resolve) => {
      socket.reads.onBytes = (bytes) => {
        resolve(String(bytes));
        return bytes.length;
      };
    });
    expect(read).toBe('some bytes');
    socket.destroy();
    stop();
  });

  it('destroys a socket that receives bytes before anything was asked', async () => {
    const { url, stop } = await start('408');
    const socket = connect(url);
    await closed(socket);
    expect(socket.destroyed).toBe(true);
    stop();
  });
});
